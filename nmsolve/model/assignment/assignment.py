"""The answer to an assignment problem, and its rules checked in plain Python, as they are stated; no engine uses the check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.decisions import Decisions
from nmsolve.model.types import BoolArray, IntArray


def assignment_complaint(problem: AssignProblem, answer: Assignment) -> str | None:
    """Return the first rule that the assignment breaks, with the names and numbers, or None.

    Ceilings are values of objectives: the evaluator compares them.
    """
    shapes = (answer.unit.shape, answer.fused.shape, answer.rank.shape)
    if shapes != ((problem.count,), (problem.groups.count,), (problem.count,)):
        return f"arrays of shapes {shapes} for {problem.count} operators and {problem.groups.count} groups"
    unit = [int(j) for j in answer.unit]
    for rule in (_units, _together, _fusion, _order, _memory):
        complaint = rule(problem, unit, answer)
        if complaint is not None:
            return complaint
    return None


def _units(problem: AssignProblem, unit: list[int], answer: Assignment) -> str | None:
    """Every operator is on a unit that can run it."""
    for i, j in enumerate(unit):
        if not 0 <= j < problem.units.count:
            return f"operator {problem.labels[i]!r} is on unit {j} of {problem.units.count}"
        if problem.time[i, j] < 0:
            return f"operator {problem.labels[i]!r} cannot run on {problem.units.names[j]!r}"
    return None


def _together(problem: AssignProblem, unit: list[int], answer: Assignment) -> str | None:
    """Operators with one number >= 0 share a unit."""
    first: dict[int, int] = {}
    for i, number in enumerate([] if problem.together is None else problem.together.tolist()):
        if number >= 0 and unit[first.setdefault(number, i)] != unit[i]:
            return f"operators {problem.labels[first[number]]!r} and {problem.labels[i]!r} must share a unit"
    return None


def _fusion(problem: AssignProblem, unit: list[int], answer: Assignment) -> str | None:
    """A fused group is on one unit that gains by it, and no operator is in two of them."""
    taken: dict[int, int] = {}
    for k in range(problem.groups.count):
        if not answer.fused[k]:
            continue
        own = problem.groups.of(k).tolist()
        j = unit[own[0]]
        if any(unit[i] != j for i in own):
            return f"fused group {k} with {problem.labels[own[0]]!r} is on several units"
        if problem.groups.time[k, j] == 0 and problem.groups.energy[k, j] == 0:
            return f"{problem.units.names[j]!r} cannot fuse group {k} with {problem.labels[own[0]]!r}"
        for i in own:
            if i in taken:
                return f"operator {problem.labels[i]!r} is in the fused groups {taken[i]} and {k}"
            taken[i] = k
    return None


def _order(problem: AssignProblem, unit: list[int], answer: Assignment) -> str | None:
    """Ranks are an order in which every operator comes after those whose tensors it uses, and the last of a fused group after
    its others: then all that the group waits for was taken before it."""
    if problem.objective != "makespan":
        return None
    rank = answer.rank.tolist()
    if sorted(rank) != list(range(problem.count)):
        return "ranks are not an order of the operators"
    makers, first, targets = (
        problem.flows.source.tolist(),
        problem.flows.indptr.tolist(),
        problem.flows.targets.tolist(),
    )
    for t, i in enumerate(makers):
        for k in targets[first[t] : first[t + 1]]:
            if rank[k] <= rank[i]:
                return (
                    f"operator {problem.labels[k]!r} comes before {problem.labels[i]!r}, whose result it uses"
                )
    for k in range(problem.groups.count):
        own = problem.groups.of(k).tolist()
        late = [i for i in own if answer.fused[k] and rank[i] > rank[own[-1]]]
        if late:
            return f"operator {problem.labels[late[0]]!r} comes after {problem.labels[own[-1]]!r}, the last of its fused group"
    return None


def _memory(problem: AssignProblem, unit: list[int], answer: Assignment) -> str | None:
    """No memory holds more bytes than it has, at any position.

    A tensor is in the memory of its maker, and copies of it in those of its users, from the position at which it is first held
    (``since``) until the last one at which a user there needs it, in any case that of its maker. A weight is in the memories of
    its users all the time. Tensors inside fused groups count as others do.
    """
    units, flows = problem.units, problem.flows
    memory = units.memory[units.site].tolist()
    # numbers one by one: lists are several times as fast as arrays
    source, sizes, kept, since = (a.tolist() for a in (flows.source, flows.bytes, flows.kept, flows.since))
    first, targets, until = flows.indptr.tolist(), flows.targets.tolist(), flows.until.tolist()
    change: list[dict[int, int]] = [{} for _ in units.memories]
    for t, maker in enumerate(source):
        last: dict[int, int] = {} if kept[t] else {memory[unit[maker]]: maker}
        for e in range(first[t], first[t + 1]):
            m = memory[unit[targets[e]]]
            last[m] = max(last.get(m, maker), until[e])
        for m, end in last.items():
            start, stop = (0, problem.count) if kept[t] else (since[t], end + 1)
            change[m][start] = change[m].get(start, 0) + sizes[t]
            change[m][stop] = change[m].get(stop, 0) - sizes[t]
    for m, steps in enumerate(change):
        held = 0
        for position in sorted(steps):
            held += steps[position]
            if held > units.capacity[m]:
                return (
                    f"memory {units.memories[m]!r} holds {held:,} bytes at operator "
                    f"{problem.labels[min(position, problem.count - 1)]!r}, the limit is {units.capacity[m]:,.0f}"
                )
    return None


@dataclass(frozen=True, eq=False)
class Assignment(Decisions):
    """Decisions, nothing else.

    Attributes
    ----------
    unit : (L,) unit of every operator
    fused : (G,) groups that run as one
    rank : (L,) place of every operator in the order in which a schedule takes them; matters to ``makespan`` only
    """

    unit: IntArray
    fused: BoolArray
    rank: IntArray

    def packed(self, problem: AssignProblem) -> IntArray:
        """As engines offer it: units (L,), groups (G,), and for ``makespan`` ranks (L,)."""
        parts = [self.unit, self.fused.astype(np.int64)]
        return np.concatenate([*parts, self.rank] if problem.objective == "makespan" else parts)

    @classmethod
    def unpacked(cls, problem: AssignProblem, solution: IntArray) -> Assignment:
        """Return the assignment of a ``solution`` as :meth:`packed` makes it; the problem's own order where it has none."""
        count, groups = problem.count, problem.groups.count
        rank = solution[count + groups :] if problem.objective == "makespan" else np.arange(count)
        return cls(np.array(solution[:count]), solution[count : count + groups] > 0, np.array(rank))


def packed_size(problem: AssignProblem) -> int:
    """Return the length of a packed solution."""
    return problem.count * (2 if problem.objective == "makespan" else 1) + problem.groups.count


def fused_where_possible(problem: AssignProblem, unit: IntArray) -> BoolArray:
    """Return (G,) the groups that a mapping ``unit`` (L,) allows to fuse: those that save most of the objective first, none
    that shares an operator with one before it."""
    groups = problem.groups
    gain = groups.energy if problem.objective == "energy" else groups.time
    fused, taken = np.zeros(groups.count, bool), np.zeros(problem.count, bool)
    if groups.count:
        at, first = unit[groups.members], unit[groups.members[groups.indptr[:-1]]]
        apart = np.add.reduceat(at != np.repeat(first, np.diff(groups.indptr)), groups.indptr[:-1])
        worth = np.where(apart, 0, gain[np.arange(groups.count), first])
        for k in np.argsort(-worth, kind="stable")[: np.count_nonzero(worth > 0)].tolist():
            own = groups.of(k)
            if not taken[own].any():
                fused[k] = True
                taken[own] = True
    return fused
