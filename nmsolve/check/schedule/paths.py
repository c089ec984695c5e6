"""Longest paths of schedules and numbers of certificates, in plain Python, for the re-checks of this room."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.errors import CertificateError
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import IntArray

#: Certificates have no larger numbers.
LARGEST = 2**100
#: A start or tail of a mode that no schedule takes: later than any deadline.
FAR = 2**61


class Paths:
    """Earliest starts and least tails of all modes, by recursion over the dependencies, an edge with all modes of both ends at a
    time. Whole numbers; those of a problem stay below 2^43."""

    def __init__(self, problem: ScheduleProblem) -> None:
        self.problem = problem
        m = problem.modes
        self.modes = [range(a, b) for a, b in zip(m.first[:-1].tolist(), m.first[1:].tolist(), strict=True)]
        self.span, self.set, self.item = m.span.tolist(), m.unit_set.tolist(), m.item.tolist()
        self.load = [problem.items.load[i].item() if i >= 0 else 0 for i in self.item]
        self.hops = problem.sets.hops.tolist()
        self._span, self._set, self._hops = m.span, m.unit_set, problem.sets.hops
        self.process = [p for p, own in enumerate(self.modes) for _ in own]
        self.ceiling = min((most for name, most in problem.ceilings if name == "makespan"), default=math.inf)
        e = problem.edges
        self.edges = list(zip(*(x.tolist() for x in (e.source, e.target, e.bytes, e.convert)), strict=True))
        self.never = self._too_dear()
        self.head, self.tail = self._heads(), self._tails()
        late = problem.deadline.tolist()
        timely = [self.head[k] + self.span[k] <= late[p] for k, p in enumerate(self.process)]
        through = [self.head[k] + self.span[k] + self.tail[k] for k in range(len(self.span))]
        self.low = max(min((through[k] for k in own if timely[k]), default=math.inf) for own in self.modes)
        self.fine = [timely[k] and through[k] <= self.ceiling for k in range(len(through))]

    def delay(self, size: int, convert: int, a: int, b: int) -> int:
        """Return what a dependency of this many bytes and ticks of conversion delays its target by, between two modes."""
        far = self.hops[self.set[a]][self.set[b]] if self.set[a] >= 0 and self.set[b] >= 0 else 0
        net = self.problem.network
        return convert + (far * net.hop_time + _over(size, net.bandwidth) if far and size else 0)

    def _earliest(self, value: IntArray, edge: tuple[int, int, int], there: range, here: range) -> IntArray:
        """Return for every mode ``here`` the least ``value``, span and delay of a mode ``there``, over an edge of this many bytes
        and ticks of conversion; ``edge`` also names it."""
        _, size, convert = edge
        done, net = (
            value[there.start : there.stop] + self._span[there.start : there.stop],
            self.problem.network,
        )
        if not size or not len(self._hops) or not (net.hop_time or net.bandwidth):
            return np.full(len(here), int(done.min()) + convert)
        one, two = self._set[there.start : there.stop, None], self._set[None, here.start : here.stop]
        far = np.where((one >= 0) & (two >= 0), self._hops[one, two], 0)
        way = np.where(far > 0, far * net.hop_time + _over(size, net.bandwidth), 0)
        least: IntArray = (done[:, None] + way).min(axis=0) + convert
        return least

    def _too_dear(self) -> list[bool]:
        """Return which modes take so much of a budget that the other processes, in the modes that take least, have too little."""
        use, found = self.problem.budgets.use.tolist(), [False] * len(self.span)
        for b, amount in enumerate(self.problem.budgets.amount.tolist()):
            least = [min(use[k][b] for k in own) for own in self.modes]
            total = sum(least)
            for k, p in enumerate(self.process):
                found[k] = found[k] or use[k][b] + total - least[p] > amount
        return found

    def _heads(self) -> list[int]:
        """A start waits for its release, for the load of its data by whoever loads them, and for every input."""
        problem = self.problem
        into: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, target, size, convert in self.edges:
            into[target].append((source, size, convert))
        head = np.where(self.never, FAR, 0)
        for p in problem.order.tolist():
            own = self.modes[p]
            first = np.array(
                [max(int(problem.release[p]), int(problem.earliest[p]), self.load[k]) for k in own]
            )
            for edge in into[p]:
                first = np.maximum(first, self._earliest(head, edge, self.modes[edge[0]], own))
            head[own.start : own.stop] = np.maximum(head[own.start : own.stop], first)
        found: list[int] = head.tolist()
        return found

    def _tails(self) -> list[int]:
        """After an end come delays, spans and tails of whatever waits for it."""
        out: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, target, size, convert in self.edges:
            out[source].append((target, size, convert))
        tail = np.where(self.never, FAR, 0)
        for p in reversed(self.problem.order.tolist()):
            own = self.modes[p]
            for edge in out[p]:
                after = self._earliest(tail, edge, self.modes[edge[0]], own)
                tail[own.start : own.stop] = np.maximum(tail[own.start : own.stop], after)
        found: list[int] = tail.tolist()
        return found

    def infeasible(self) -> float:
        """Return inf if a process cannot end in time, or all of them not under the ceiling; else 0."""
        stuck = any(not any(self.fine[k] for k in own) for own in self.modes)
        return math.inf if stuck or self.low > self.ceiling else 0

    def late(self) -> int:
        """Return what all lateness costs at least."""
        total = 0
        for p, own in enumerate(self.modes):
            end = min(self.head[k] + self.span[k] for k in own if self.fine[k])
            total += int(self.problem.weight[p]) * max(0, end - int(self.problem.due[p]))
        return total

    def value(self) -> int:
        """Return the bound by paths alone."""
        name = self.problem.objective
        if name not in ("makespan", "tardiness"):
            raise CertificateError(f"paths do not bound {name}")
        return int(self.low) if name == "makespan" else self.late()


def least_ends(problem: ScheduleProblem) -> list[int] | None:
    """Return the least tick at which every process can end; None if longest paths prove that there is no schedule."""
    paths = Paths(problem)
    if paths.infeasible():
        return None
    return [min(paths.head[k] + paths.span[k] for k in own) for own in paths.modes]


def _over(size: int, bandwidth: int) -> int:
    """Return ticks for ``size`` bytes, rounded up; 0 where the amount takes no time."""
    return -(-size // bandwidth) if bandwidth else 0


def numbers_of(value: Any, what: str, count: int, signed: bool = False) -> list[int]:
    """Return a list of ``count`` whole numbers of a certificate."""
    found = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != count:
        raise CertificateError(f"{what} are not {count} numbers")
    for x in found:
        if isinstance(x, bool) or not isinstance(x, int) or not (-LARGEST if signed else 0) <= x <= LARGEST:
            raise CertificateError(f"{what} have {x!r:.40}, which is no whole number in range")
    return list(found)
