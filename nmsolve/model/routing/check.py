"""The rules of the routing problem, stated against the problem alone and in plain Python: no engine's code is used here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray


def routes_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """The first broken rule in words, or None.

    Checked: one tree per flow that leaves its source, uses working links, enters no core twice, reaches every
    target and ends in targets only; length (``detour``), turns, form of the tables and their limit. *Not* checked here: that no
    cycle of channels can come of it.
    """
    flows = problem.flows
    if routes.count != flows.count or routes.channels != problem.channels:
        return f"{routes.count} routes on {routes.channels} channels for {flows.count} flows on {problem.channels} channels"
    ends, works = link_ends(problem.machine), link_works(problem.machine)
    if (
        len(routes.channel)
        and not 0 <= routes.channel.min() <= routes.channel.max() < len(works) * routes.channels
    ):
        return "a route names an unknown channel"
    longest = _longest(problem)
    for f in range(flows.count):
        wrong = _tree_complaint(flows, routes, f, ends, works, longest)
        if wrong is not None:
            return f"flow {f} ({flows.name(f)}): {wrong}"
    for rule in (_turn_complaint, _form_complaint, _table_complaint):
        wrong = rule(problem, routes)
        if wrong is not None:
            return wrong
    return None


def _longest(problem: RoutingProblem) -> Callable[[int, int], int]:
    """Most links between source and target."""
    goals, far = problem.distances
    where = {int(g): k for k, g in enumerate(goals)}
    return lambda source, goal: int(far[where[goal], source]) + problem.detour


def _tree_complaint(
    flows: Flows,
    routes: Routes,
    f: int,
    ends: IntArray,
    works: np.ndarray,
    longest: Callable[[int, int], int],
) -> str | None:
    source, goals = int(flows.source[f]), set(flows.of(f).tolist())
    depth, tails = {source: 0}, set()
    for k in range(int(routes.indptr[f]), int(routes.indptr[f + 1])):
        link, above = int(routes.channel[k]) // routes.channels, int(routes.parent[k])
        start, end = link // 4, int(ends[link])
        if not works[link]:
            return f"link {start} -> {end} is dead" if end >= 0 else f"link {link} does not exist"
        if above >= 0 and above < routes.indptr[f]:
            return "a channel hangs on another flow's"
        before = source if above < 0 else int(ends[int(routes.channel[above]) // routes.channels])
        if before != start:
            return f"the route jumps from core {before} to core {start}"
        if end in depth:
            return f"core {end} is entered twice"
        depth[end] = depth[start] + 1
        tails.add(start)
    for goal in sorted(goals):
        if goal not in depth:
            return f"core {goal} is not reached"
        if depth[goal] > longest(source, goal):
            return f"{depth[goal]} links to core {goal}, at most {longest(source, goal)} are allowed"
    useless = set(depth) - tails - goals - {source}
    return f"a branch ends in core {min(useless)}, which is no target" if useless else None


def _turn_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """The first turn taken that goes back or is prohibited."""
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
    """The first router where one key would need two different next (or last) channels."""
    if problem.form == "flow":
        return None
    ends, flow = link_ends(problem.machine), routes.flow
    links = routes.links
    by_source = problem.form == "source"
    if by_source:  # entered over one channel only
        key, at = problem.flows.source[flow].astype(np.int64), ends[links]
    else:  # left over one channel only
        key, at = problem.flows.targets[problem.flows.indptr[:-1]][flow].astype(np.int64), links // 4
    seen: dict[tuple[int, int], int] = {}
    for k in range(len(links)):
        name = (int(key[k]), int(at[k]))
        if seen.setdefault(name, int(routes.channel[k])) != int(routes.channel[k]):
            what = (
                "is entered over two channels by what core"
                if by_source
                else "is left over two channels towards core"
            )
            return f"core {name[1]} {what} {name[0]}{' sends' if by_source else ''}"
    return None


def _table_complaint(problem: RoutingProblem, routes: Routes) -> str | None:
    """The router with the most entries too many."""
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
    """(P,) int64 routing table entries of every core.

    ``flow``, ``source``: one entry per key (flow, or sending core) whose messages do anything but pass straight through in one
    piece: start, turn, branch or arrive (SpiNNaker's default routing sends on straight what no entry matches).
    ``destination``: one entry per destination core that messages are sent on to.
    """
    ends, flow, links = link_ends(machine), routes.flow, routes.links
    entries: set[tuple[int, int]] = set()
    if form == "destination":
        goal = flows.targets[flows.indptr[:-1]][flow]
        entries = set(zip((links // 4).tolist(), goal.tolist(), strict=True))
    else:
        keys = flows.source[flow] if form == "source" else flow
        ins: dict[tuple[int, int], set[int]] = {}
        outs: dict[tuple[int, int], set[int]] = {}
        for key, link in zip(keys.tolist(), links.tolist(), strict=True):
            outs.setdefault((link // 4, key), set()).add(link % 4)
            ins.setdefault((int(ends[link]), key), set()).add(link % 4)
        arrives = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
        key_of = flows.source[arrives] if form == "source" else arrives
        ending = set(zip(flows.targets.tolist(), key_of.tolist(), strict=True))
        for name in set(ins) | set(outs):
            straight = len(ins.get(name, ())) == 1 and ins[name] == outs.get(name)
            if not straight or name in ending:
                entries.add(name)
    count = np.zeros(machine.size, np.int64)
    for core, _ in entries:
        count[core] += 1
    return count
