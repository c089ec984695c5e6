"""That no routes keep the rules, shown again without a solver: by a flow that no way is left for, or by trying all routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any

import numpy as np

from nmsolve.model import clock
from nmsolve.model.errors import CertificateError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import hang_up


class _Late(Exception):
    """No time is left."""


def broken_rule(problem: RoutingProblem, ordered: bool, entry: Mapping[str, Any]) -> str | None:
    """Return the first rule that the routes in a certificate's entry break, with ``ordered`` freedom of deadlock too; None: none.

    Raises
    ------
    CertificateError : the entry holds no routes
    """
    found, most = entry.get("routes"), 4 * problem.machine.size * problem.channels
    if not isinstance(found, list) or not all(isinstance(one, list) for one in found):
        raise CertificateError("without: routes is not a list of lists")
    if not all(type(c) is int and 0 <= c < most for one in found for c in one):
        raise CertificateError("without: routes names a channel that does not exist")
    if len(found) != problem.flows.count:
        return f"{len(found)} routes for {problem.flows.count} flows"
    return _complaint(problem, ordered, found)


def _complaint(problem: RoutingProblem, ordered: bool, channels: list[list[int]]) -> str | None:
    flow = np.repeat(np.arange(len(channels)), [len(one) for one in channels])
    routes = hang_up(problem, flow, np.array([c for one in channels for c in one], np.int64))
    wrong = routes_complaint(problem, routes)
    return (
        "channels depend on each other in a cycle"
        if wrong is None and ordered and _cycle(problem, routes)
        else wrong
    )


def _straight_on(problem: RoutingProblem) -> Iterator[tuple[int, int]]:
    """Yield links and those straight behind them, which no choice of turns leaves out; none where turns are not chosen."""
    machine = problem.machine
    rings = machine.torus and (machine.rows > 2 or machine.cols > 2)
    if problem.turns is not None or problem.channels > 1 or rings:
        return
    works, ends = link_works(machine), link_ends(machine)
    for link in np.flatnonzero(works).tolist():
        behind = 4 * int(ends[link]) + link % 4
        if works[behind]:
            yield link, behind


def _cycle(problem: RoutingProblem, routes: Routes) -> bool:
    waits: dict[int, set[int]] = {}
    for a, b in _straight_on(problem):
        waits.setdefault(b, set()).add(a)
    for after, k in zip(routes.channel.tolist(), routes.parent.tolist(), strict=True):
        if k >= 0:
            waits.setdefault(after, set()).add(int(routes.channel[k]))
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return True
    return False


def impossible(problem: RoutingProblem, ordered: bool, seconds: float) -> bool | None:
    """Return True if no routes keep the rules, False if some do, None if that takes more than about ``seconds``."""
    flows, end = problem.flows, clock.now() + seconds
    legs = [(int(flows.source[f]), t) for f in range(flows.count) for t in flows.of(f).tolist()]
    try:
        if any(_cut_off(problem, s, t) for s, t in legs) or _full(problem):
            return True
        trees = [list(_trees(problem, f, end)) for f in range(flows.count)]
        for choice in product(*trees):
            if clock.now() > end:
                raise _Late
            if _complaint(problem, ordered, list(choice)) is None:
                return False
    except _Late:
        return None
    return True


def _ways(problem: RoutingProblem) -> tuple[list[int], list[bool]]:
    return link_ends(problem.machine).tolist(), link_works(problem.machine).tolist()


def _may_turn(problem: RoutingProblem, before: int, after: int) -> bool:
    """Return whether link ``after`` may follow link ``before``."""
    a, b = before % 4, after % 4
    return a != b ^ 1 and (problem.turns is None or bool(problem.turns.allowed[after // 4, a, b]))


def _most(problem: RoutingProblem, source: int, target: int) -> int:
    """Return links that a route may have; -1 if no way leads there."""
    goals, far = problem.distances
    length = int(far[goals.tolist().index(target), source])
    return length + problem.detour if length >= 0 else -1


def _cut_off(problem: RoutingProblem, source: int, target: int) -> bool:
    """Return whether no way from one core to the other keeps to working links, allowed turns and the length allowed."""
    ends, works = _ways(problem)
    here = {k for k in range(4 * source, 4 * source + 4) if works[k]}
    seen = set(here)
    for _ in range(_most(problem, source, target)):
        if any(ends[k] == target for k in here):
            return False
        here = {
            n for k in here for n in range(4 * ends[k], 4 * ends[k] + 4) if works[n] and _may_turn(problem, k, n)
        } - seen  # fmt: skip
        seen |= here
    return True


def _full(problem: RoutingProblem) -> bool:
    """Return whether a core needs more entries than it has for what starts and ends there."""
    if problem.table_limit is None:
        return False
    keys: dict[int, set[int]] = {}
    for f in range(problem.flows.count):
        source, targets = int(problem.flows.source[f]), problem.flows.of(f).tolist()
        if problem.form == "destination":
            keys.setdefault(source, set()).update(targets)
            continue
        for p in (source, *targets):
            keys.setdefault(p, set()).add(f if problem.form == "flow" else source)
    return any(len(some) > problem.table_limit for some in keys.values())


def _trees(problem: RoutingProblem, flow: int, end: float) -> Iterator[list[int]]:
    """Yield every tree of a flow: paths to its targets that agree, channels in the order of their distance from the source."""
    source, targets = int(problem.flows.source[flow]), problem.flows.of(flow).tolist()
    ends, _ = _ways(problem)
    seen: set[frozenset[int]] = set()
    for paths in product(*(list(_paths(problem, source, t, end)) for t in targets)):
        if clock.now() > end:
            raise _Late
        depth = {c: k for path in paths for k, c in enumerate(path)}
        into = [ends[c // problem.channels] for c in depth]
        if len(into) == len(set(into)) and frozenset(depth) not in seen:
            seen.add(frozenset(depth))
            yield sorted(depth, key=depth.__getitem__)


def _paths(problem: RoutingProblem, source: int, target: int, end: float) -> Iterator[list[int]]:
    """Yield every way over working links and allowed turns that is short enough, as channels."""
    ends, works = _ways(problem)
    most, todo = _most(problem, source, target), [([source], list[int]())]
    while todo:
        if clock.now() > end:
            raise _Late
        cores, channels = todo.pop()
        if cores[-1] == target:
            yield channels
            continue
        for link in range(4 * cores[-1], 4 * cores[-1] + 4) if len(channels) < most else ():
            last = channels[-1] // problem.channels if channels else None
            if works[link] and ends[link] not in cores and (last is None or _may_turn(problem, last, link)):
                for v in range(problem.channels):
                    todo.append(([*cores, ends[link]], [*channels, link * problem.channels + v]))
