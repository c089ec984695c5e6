"""What the exact models of schedules are made of: objectives stated, windows of time, pairs of unit sets, uses of items.

Everything is of one :class:`ScheduleProblem` and, where an answer is known, of the value that a better one stays below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import BoolArray, IntArray

#: Objectives that depend on the gaps between the activities of units.
OF_GAPS = frozenset({"idle", "energy", "waste"})


@dataclass(frozen=True)
class Pair:
    """An edge between processes of which one runs on unit set ``one`` and the other on ``other``: its delay and its hops."""

    edge: int
    one: int
    other: int
    delay: int
    hops: int


@dataclass(frozen=True, eq=False)
class ScheduleData:
    """A scheduling problem as its exact models see it.

    Attributes
    ----------
    most : no answer with a larger makespan is of interest
    """

    problem: ScheduleProblem
    most: int

    @cached_property
    def stated(self) -> frozenset[str]:
        """Names of the objectives that the model states: its own, those of its weights and those with ceilings."""
        p = self.problem
        own = {name for name, _ in p.weights} if p.objective == "weighted" else {p.objective}
        return frozenset(own | {name for name, _ in p.ceilings})

    @cached_property
    def gaps(self) -> bool:
        """Whether gaps between activities matter."""
        return bool(self.stated & OF_GAPS) and self.problem.sets.count > 0

    @cached_property
    def moves(self) -> bool:
        """Whether it matters how far data move, besides the time that it takes."""
        p = self.problem
        paid = "moved" in self.stated or ("energy" in self.stated and p.network.hop_energy > 0)
        return paid and bool((p.edges.bytes > 0).any()) and bool((p.sets.hops > 0).any())

    def modes_of(self, p: int) -> range:
        """Return the modes of a process."""
        first = self.problem.modes.first
        return range(int(first[p]), int(first[p + 1]))

    def sets_of(self, p: int) -> dict[int, list[int]]:
        """Return the modes of a process by the unit set that they take, -1 for none."""
        by: dict[int, list[int]] = {}
        for m in self.modes_of(p):
            by.setdefault(int(self.problem.modes.unit_set[m]), []).append(m)
        return by

    @cached_property
    def members(self) -> list[list[int]]:
        """Units of every unit set."""
        sets = self.problem.sets
        return [sets.of(k).tolist() for k in range(sets.count)]

    def units_of(self, mode: int) -> list[int]:
        """Return the units that a mode takes."""
        k = int(self.problem.modes.unit_set[mode])
        return self.members[k] if k >= 0 else []

    @cached_property
    def on_unit(self) -> list[dict[int, list[int]]]:
        """Of every unit, the processes that can use it and the modes in which they do."""
        found: list[dict[int, list[int]]] = [{} for _ in range(self.problem.units.count)]
        for m, p in enumerate(self.problem.modes.process.tolist()):
            for u in self.units_of(m):
                found[u].setdefault(p, []).append(m)
        return found

    @cached_property
    def pairs(self) -> list[list[Pair]]:
        """Of every edge, all pairs of unit sets of its two processes."""
        e, found = self.problem.edges, list[list[Pair]]()
        for k, (p, q) in enumerate(zip(e.source.tolist(), e.target.tolist(), strict=True)):
            one, other = self.sets_of(p), self.sets_of(q)
            a = np.repeat([some[0] for some in one.values()], len(other))
            b = np.tile([some[0] for some in other.values()], len(one))
            delay = self.problem.delay(np.full(len(a), k), a, b).tolist()
            hops = self.problem.hops_between(a, b).tolist()
            names = [(s, t) for s in one for t in other]
            found.append([Pair(k, s, t, d, h) for (s, t), d, h in zip(names, delay, hops, strict=True)])
        return found

    @cached_property
    def least_delay(self) -> IntArray:
        """(E,) the delay of every edge at least."""
        return np.array([delay.min() for _, _, delay in self._tables], np.int64)

    @cached_property
    def shortest(self) -> IntArray:
        """(P,) span of every process at least."""
        m = self.problem.modes
        spans: IntArray = np.minimum.reduceat(m.span, m.first[:-1])
        return spans

    @cached_property
    def longest(self) -> IntArray:
        """(P,) span of every process at most."""
        m = self.problem.modes
        spans: IntArray = np.maximum.reduceat(m.span, m.first[:-1])
        return spans

    @cached_property
    def _tables(self) -> list[tuple[int, int, IntArray]]:
        """Source, target and delays (modes of the source, modes of the target) of every edge."""
        e, first, found = self.problem.edges, self.problem.modes.first, list[tuple[int, int, IntArray]]()
        for k, (p, q) in enumerate(zip(e.source.tolist(), e.target.tolist(), strict=True)):
            a, b = np.arange(first[p], first[p + 1]), np.arange(first[q], first[q + 1])
            many = np.full((len(a), len(b)), k)
            found.append((p, q, self.problem.delay(many, a[:, None] + 0 * b, b + 0 * a[:, None])))
        return found

    @cached_property
    def first_start(self) -> IntArray:
        """(M,) start of every mode at least: releases, its load where no other process can have done that, and paths."""
        m = self.problem.modes
        alone = np.array([d >= 0 and len(self.users[d]) == 1 for d in m.item.tolist()], bool)
        begin = self.problem.earliest[m.process]
        first = np.maximum(
            self.problem.release[m.process], begin + np.where(alone, self.problem.mode_load, 0)
        )
        indptr, into = self.problem.before
        for q in self.problem.order.tolist():
            own = slice(int(m.first[q]), int(m.first[q + 1]))
            for k in into[indptr[q] : indptr[q + 1]].tolist():
                p, _, delay = self._tables[k]
                of = slice(int(m.first[p]), int(m.first[p + 1]))
                ready = (first[of] + m.span[of])[:, None] + delay
                first[own] = np.maximum(first[own], ready.min(axis=0))
        return first

    @cached_property
    def following(self) -> IntArray:
        """(M,) ticks between the end of every mode and the end of everything at least: paths."""
        m = self.problem.modes
        following = np.zeros(m.count, np.int64)
        indptr, out = self.problem.after
        for p in self.problem.order[::-1].tolist():
            own = slice(int(m.first[p]), int(m.first[p + 1]))
            for k in out[indptr[p] : indptr[p + 1]].tolist():
                _, q, delay = self._tables[k]
                of = slice(int(m.first[q]), int(m.first[q + 1]))
                following[own] = np.maximum(following[own], (delay + m.span[of] + following[of]).min(axis=1))
        return following

    @cached_property
    def users(self) -> list[set[int]]:
        """Of every item, the processes that can need it."""
        process = self.problem.modes.process
        return [{int(process[m]) for m in some} for some in self.uses]

    @cached_property
    def head(self) -> IntArray:
        """(P,) start of every process at least."""
        heads: IntArray = np.minimum.reduceat(self.first_start, self.problem.modes.first[:-1])
        return heads

    @cached_property
    def tail(self) -> IntArray:
        """(P,) ticks between the end of every process and the end of everything at least."""
        tails: IntArray = np.minimum.reduceat(self.following, self.problem.modes.first[:-1])
        return tails

    @cached_property
    def last(self) -> IntArray:
        """(P,) end of every process at most: what follows within :attr:`most`, and deadlines."""
        last = np.minimum(self.most - self.tail, self.problem.deadline)
        e, (indptr, out) = self.problem.edges, self.problem.after
        for p in self.problem.order[::-1].tolist():
            for k in out[indptr[p] : indptr[p + 1]].tolist():
                q = int(e.target[k])
                last[p] = min(int(last[p]), int(last[q] - self.shortest[q] - self.least_delay[k]))
        return last

    @cached_property
    def reaches(self) -> BoolArray:
        """(P, P) whether a process must end before another one starts, by paths."""
        reaches = np.zeros((self.problem.count, self.problem.count), bool)
        e, (indptr, out) = self.problem.edges, self.problem.after
        for p in self.problem.order[::-1].tolist():
            for q in e.target[out[indptr[p] : indptr[p + 1]]].tolist():
                reaches[p] |= reaches[q]
                reaches[p, q] = True
        return reaches

    def before(self, p: int, q: int) -> bool:
        """Return whether ``p`` can end before ``q`` starts."""
        return not bool(self.reaches[q, p]) and int(self.head[p] + self.shortest[p]) <= int(
            self.last[q] - self.shortest[q]
        )

    @cached_property
    def uses(self) -> list[list[int]]:
        """Of every item, the modes that need it."""
        found: list[list[int]] = [[] for _ in range(self.problem.items.count)]
        for m, d in enumerate(self.problem.modes.item.tolist()):
            if d >= 0:
                found[d].append(m)
        return found

    @cached_property
    def limited(self) -> list[int]:
        """Units whose memory could be asked for more than it has."""
        m, items, found = self.problem.modes, self.problem.items, []
        for u, own in enumerate(self.on_unit):
            modes = [k for some in own.values() for k in some]
            held = {int(m.item[k]) for k in modes} - {-1}
            need = sum(int(items.bytes[d]) for d in held) + max((int(m.working[k]) for k in modes), default=0)
            if need > int(self.problem.units.memory[u]):
                found.append(u)
        return found

    @cached_property
    def size(self) -> int:
        """Variables of a CP-SAT model, about."""
        arcs = sum(2 * len(own) ** 2 for own in self.on_unit) if self.gaps else 0
        kept = sum(len(some) ** 2 for some in self.uses)
        return 3 * self.problem.count + 2 * self.problem.modes.count + arcs + kept + self._pairs

    @cached_property
    def _pairs(self) -> int:
        """Pairs of unit sets of all edges."""
        m, e = self.problem.modes, self.problem.edges
        modes = np.diff(m.first)
        return int((modes[e.source] * modes[e.target]).sum())


def schedule_data(problem: ScheduleProblem, makespan: float = np.inf) -> ScheduleData:
    """Return the data of the models; ``makespan``: only answers that end by then are of interest."""
    most = horizon(problem)
    return ScheduleData(problem, most if makespan >= most else int(makespan))


def horizon(problem: ScheduleProblem) -> int:
    """Return ticks by which some best answer ends, if there is one.

    Where gaps do not count, any tick in which nothing runs, is loaded or moves can be taken out behind the last release, so that
    :attr:`ScheduleProblem.horizon` is enough. Where gaps count, that could make a gap too short to switch off in. But if nothing
    happens for more ticks than any unit needs to be switched off, all gaps around are longer than that, and one of these ticks
    can be taken out. There is one such stretch per process at most, before its start, and none before the first one.
    """
    names = {
        problem.objective,
        *(name for name, _ in problem.weights),
        *(name for name, _ in problem.ceilings),
    }
    if not names & OF_GAPS or not problem.units.count:
        return problem.horizon
    even = problem.units.break_even
    widest = int(even[even < NEVER].max(initial=0))
    return problem.horizon + (problem.count - 1) * widest
