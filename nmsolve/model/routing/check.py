"""The rules of the routing problem, stated against the problem alone and in plain Python: no engine's code is used here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, IntArray


def routes_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """Return the first broken rule in words, or None.

    Checked: one tree per flow that leaves its source, uses working links, enters no core twice, reaches every
    target and ends in targets only; length (``detour``), turns, form of the tables and their limit. *Not* checked here: that no
    cycle of channels can come of it.
    """
    flows = problem.flows
    if routes.count != flows.count or routes.channels != problem.channels:
        return f"{routes.count} routes on {routes.channels} channels for {flows.count} flows on {problem.channels} channels"
    works = link_works(problem.machine)
    channel = routes.channel
    if len(channel) and not 0 <= channel.min() <= channel.max() < len(works) * routes.channels:
        return "a route names an unknown channel"
    others = np.flatnonzero(~_shortest_paths(problem, routes)).tolist()
    if others:
        links, parents, begins = routes.links.tolist(), routes.parent.tolist(), routes.indptr.tolist()
        ends, alive, longest = link_ends(problem.machine).tolist(), works.tolist(), _longest(problem)
    for f in others:
        first, last = begins[f], begins[f + 1]
        above = [p - first if p >= first else -1 if p < 0 else -2 for p in parents[first:last]]
        goals = flows.of(f).tolist()
        wrong = _tree_complaint(int(flows.source[f]), goals, links[first:last], above, ends, alive, longest)
        if wrong is not None:
            return f"flow {f} ({flows.name(f)}): {wrong}"
    for rule in (_turn_complaint, _form_complaint, _table_complaint):
        wrong = rule(problem, routes)
        if wrong is not None:
            return wrong
    return None


def _shortest_paths(problem: RoutingProblem, routes: Routes) -> BoolArray:
    """Return (F,) which flows have one target and a path of working links to it, link by link, that is as short as any.

    Such a path enters no core twice, has no branch and is never too long: no rule of a tree is broken.
    """
    flows, links, size = problem.flows, routes.links, np.diff(routes.indptr)
    one: BoolArray = (np.diff(flows.indptr) == 1) & (size > 0)
    if not one.any():
        return one
    ends, start = link_ends(problem.machine), links // 4
    first = np.zeros(len(links), np.bool_)
    first[routes.indptr[:-1][size > 0]] = True
    before = np.where(first, flows.source[routes.flow], np.roll(ends[links], 1))
    above = np.where(first, -1, np.arange(len(links)) - 1)
    joined = link_works(problem.machine)[links] & (start == before) & (routes.parent == above)
    gaps = np.bincount(routes.flow, ~joined, minlength=flows.count)
    goals, distances = problem.distances
    goal = flows.targets[flows.indptr[:-1]]
    shortest = size == distances[np.searchsorted(goals, goal), flows.source]
    reached = ends[links[np.maximum(routes.indptr[1:], 1) - 1]] == goal
    whole: BoolArray = one & (gaps == 0) & shortest & reached
    return whole


def _longest(problem: RoutingProblem) -> Callable[[int, int], int]:
    """Return the most links between source and target."""
    goals, distances = problem.distances
    far = dict(zip(goals.tolist(), distances.tolist(), strict=True))
    return lambda source, goal: far[goal][source] + problem.detour


def _tree_complaint(
    source: int,
    goals: list[int],
    links: list[int],
    parents: list[int],
    ends: list[int],
    works: list[bool],
    longest: Callable[[int, int], int],
) -> str | None:
    """Return what is wrong with the tree of one flow; ``parents`` are places in ``links``, -1 at the source, -2 outside."""
    depth, tails = {source: 0}, set()
    for link, above in zip(links, parents, strict=True):
        start, end = link // 4, ends[link]
        if not works[link]:
            return f"link {start} -> {end} is dead" if end >= 0 else f"link {link} does not exist"
        if above < -1:
            return "a channel hangs on another flow's"
        before = source if above < 0 else ends[links[above]]
        if before != start:
            return f"the route jumps from core {before} to core {start}"
        if end in depth:
            return f"core {end} is entered twice"
        depth[end] = depth[start] + 1
        tails.add(start)
    for goal in goals:
        if goal not in depth:
            return f"core {goal} is not reached"
        if depth[goal] > longest(source, goal):
            return f"{depth[goal]} links to core {goal}, at most {longest(source, goal)} are allowed"
    useless = set(depth) - tails - {source, *goals}
    return f"a branch ends in core {min(useless)}, which is not a target" if useless else None


def _turn_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """Return the first turn taken that goes back or is prohibited."""
    links = routes.links
    later = np.flatnonzero(routes.parent >= 0)
    before, after = links[routes.parent[later]], links[later]
    back = before % 4 == (after % 4 ^ 1)
    if problem.turns is not None:
        back = back | ~problem.turns.allowed[after // 4, before % 4, after % 4]
    if not back.any():
        return None
    k = int(np.flatnonzero(back)[0])
    letters = "EWSN"
    turn = letters[int(before[k]) % 4] + letters[int(after[k]) % 4]
    flow = int(routes.flow[later[k]])
    return f"flow {flow} ({problem.flows.name(flow)}) takes the prohibited turn {turn} in core {int(after[k]) // 4}"


def _form_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """Return the first router where one key would need two different next (or last) channels."""
    if problem.form == "flow":
        return None
    ends, flow = link_ends(problem.machine), routes.flow
    links = routes.links
    by_source = problem.form == "source"
    if by_source:  # entered over one channel only
        key, at = problem.flows.source[flow].astype(np.int64), ends[links]
    else:  # left over one channel only
        key, at = problem.flows.targets[problem.flows.indptr[:-1]][flow].astype(np.int64), links // 4
    name = key * problem.machine.size + at
    order = np.argsort(name, kind="stable")
    same = name[order][1:] == name[order][:-1]
    apart = np.flatnonzero(same & (routes.channel[order][1:] != routes.channel[order][:-1]))
    if not len(apart):
        return None
    k = int(order[apart[0]])
    if by_source:
        return f"core {int(at[k])} is entered over two channels by what core {int(key[k])} sends"
    return f"core {int(at[k])} is left over two channels towards core {int(key[k])}"


def _table_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """Return the router with the most entries too many."""
    if problem.table_limit is None:
        return None
    used = table_entries(problem.machine, problem.flows, routes, problem.form)
    worst = int(np.argmax(used))
    missing = int(used[worst]) - problem.table_limit
    return (
        f"core {worst} needs {int(used[worst])} table entries, {missing} more than its {problem.table_limit}"
        if missing > 0
        else None
    )


def table_entries(machine: Machine, flows: Flows, routes: Routes, form: str) -> IntArray:
    """Return (P,) int64 routing table entries of every core.

    ``flow``, ``source``: one entry per key (flow, or sending core) whose messages do anything but pass straight through in one
    piece: start, turn, branch or arrive (SpiNNaker's default routing sends on straight what no entry matches).
    ``destination``: one entry per destination core that messages are sent on to.
    """
    ends, links, size = link_ends(machine), routes.links, machine.size
    if form == "destination":
        goal = flows.targets[flows.indptr[:-1]][routes.flow].astype(np.int64)
        return np.bincount(_distinct(goal * size + links // 4) % size, minlength=size)
    ending = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    key, last = routes.flow, ending
    if form == "source":
        key, last = flows.source[key].astype(np.int64), flows.source[last].astype(np.int64)
    enters, leaves, stays = key * size + ends[links], key * size + links // 4, last * size + flows.targets
    name = _distinct(np.concatenate([enters, leaves, stays]))
    ways = np.zeros((2, len(name)), np.int64)  # directions in and out, one bit each
    for side, where in enumerate((enters, leaves)):
        np.bitwise_or.at(ways[side], np.searchsorted(name, where), 1 << links % 4)
    needed = (ways[0] != ways[1]) | ~np.isin(ways[0], [1, 2, 4, 8])
    needed[np.searchsorted(name, stays)] = True
    return np.bincount(name[needed] % size, minlength=size)


def _distinct(values: IntArray) -> IntArray:
    """Rising, each once (``np.unique`` hashes, which takes ten times as long)."""
    rising = np.sort(values)
    out: IntArray = rising[np.diff(rising, prepend=-1) > 0]
    return out
