"""What the makespan hangs on: the chain of processes, units and transfers that leads to the last end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units_in_turn
from nmsolve.model.types import IntArray, by_key

#: Why a process does not begin earlier: data of another arrive then, a unit or a resource is taken until then, it is released
#: then (or its units may not work for it before), or nothing holds it.
REASONS = ("data", "unit", "resource", "release", "start")


class Link(NamedTuple):
    """One process of the chain, and what it waits for.

    Attributes
    ----------
    process : its number
    reason : of :data:`REASONS`
    source : the process that it waits for, -1 for none
    load, run : ticks in the chain (a load that happens while data or a resource are waited for is none)
    away : ticks in which the data of ``source`` are moved and converted
    wait : ticks by which it could begin earlier as far as ``source`` is concerned, or its release
    """

    process: int
    reason: str
    source: int
    load: int
    run: int
    away: int
    wait: int


def critical_chain(problem: ScheduleProblem, answer: Schedule) -> list[Link]:
    """Return the chain to the last end of a legal schedule, from its first process on.

    At every process the reason that leaves least waiting is followed, the first of :data:`REASONS` among equal ones. Loads, runs,
    moving and waiting of all links, and the release of the first, add up to the makespan.
    """
    chain = _Chain(problem, answer)
    end = answer.end(problem)
    process, found = int(np.argmax(end)), []
    while process >= 0:
        link = chain.link(process)
        found.append(link)
        process = link.source
    return found[::-1]


def chain_parts(chain: list[Link], makespan: int) -> dict[str, int]:
    """Return where the ticks of a chain go: running, loading, moving data, waiting, and before the first release."""
    parts = {
        "run": sum(link.run for link in chain),
        "load": sum(link.load for link in chain),
        "transfer": sum(link.away for link in chain),
        "wait": sum(link.wait for link in chain),
    }
    return parts | {"release": makespan - sum(parts.values())}


class _Chain:
    """Looks up what a process waits for."""

    def __init__(self, problem: ScheduleProblem, answer: Schedule) -> None:
        self.problem, self.mode = problem, answer.mode
        self.begin, self.start, self.end = answer.begin(problem), answer.start, answer.end(problem)
        process, unit = on_units_in_turn(problem, answer)
        before = np.full(len(process), -1, np.int64)
        same = np.flatnonzero(unit[1:] == unit[:-1]) + 1
        before[same] = process[same - 1]
        self.ptr, by_process = by_key(process, problem.count)
        self.unit_before = before[by_process]
        self.ended = np.argsort(self.end, kind="stable")
        self.ends = self.end[self.ended]

    def link(self, p: int) -> Link:
        """Return the link of a process."""
        found = [
            c for c in (self._data(p), self._unit(p), self._resource(p), self._released(p)) if c is not None
        ]
        wait, _, reason, source, away = min(found, key=lambda c: (c[0], c[1]))
        # Data, resources and the release are waited for by the run: the load may come before.
        load = int(self.start[p] - self.begin[p]) if reason in ("unit", "start") else 0
        return Link(p, reason, source, load, int(self.end[p] - self.start[p]), away, wait)

    def _data(self, p: int) -> tuple[int, int, str, int, int] | None:
        indptr, edges = self.problem.before
        into = edges[indptr[p] : indptr[p + 1]]
        if not len(into):
            return None
        source = self.problem.edges.source[into]
        away = self.problem.delay(into, self.mode[source], self.mode[np.full(len(into), p)])
        k = int(np.argmax(self.end[source] + away))
        q = int(source[k])
        return int(self.start[p] - self.end[q] - away[k]), 0, "data", q, int(away[k])

    def _unit(self, p: int) -> tuple[int, int, str, int, int] | None:
        others = self.unit_before[self.ptr[p] : self.ptr[p + 1]]
        others = others[others >= 0]
        if not len(others):
            return None
        q = int(others[int(np.argmax(self.end[others]))])
        return int(self.begin[p] - self.end[q]), 1, "unit", q, 0

    def _resource(self, p: int) -> tuple[int, int, str, int, int] | None:
        """A process that gives back a resource at the very tick; others do not hold it."""
        own = self.problem.modes.demand[self.mode[p]] > 0
        if not own.any():
            return None
        a, b = np.searchsorted(self.ends, [self.start[p], self.start[p] + 1])
        for q in self.ended[a:b].tolist():
            if self.start[q] < self.end[q] and bool(
                (own & (self.problem.modes.demand[self.mode[q]] > 0)).any()
            ):
                return 0, 2, "resource", q, 0
        return None

    def _released(self, p: int) -> tuple[int, int, str, int, int]:
        release, ready = int(self.problem.release[p]), int(self.problem.earliest[p])
        held: IntArray = np.array([self.start[p] - release, self.begin[p] - ready])
        if release > 0 and held[0] <= held[1]:
            return int(held[0]), 3, "release", -1, 0
        return int(held[1]), 4, "start", -1, 0
