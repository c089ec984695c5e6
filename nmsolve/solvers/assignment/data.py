"""What the exact models of assignments are made of: items that share a unit, what a tensor costs by origin, when it is held.

Operators that must share a unit (``together``) are one *item*. Units that can be exchanged without any cost or limit changing
are *alike*; models allow the next of them only where the one before is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True)
class Level:
    """A tensor is held in a memory until position ``end`` at least if one of the items ``users`` is there."""

    end: int
    users: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AssignData:
    """An assignment problem in terms of I items.

    Attributes
    ----------
    item : (L,) item of every operator
    possible : (I, J) whether all operators of an item can run on a unit
    alike : classes of two or more units that can be exchanged
    """

    problem: AssignProblem
    item: IntArray
    possible: BoolArray
    alike: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """I."""
        return len(self.possible)

    @cached_property
    def maker(self) -> IntArray:
        """(T,) item that makes a tensor."""
        out: IntArray = self.item[self.problem.flows.source]
        return out

    @cached_property
    def users(self) -> list[list[int]]:
        """Of every tensor, the items that use it, without its maker's."""
        flows = self.problem.flows
        return [
            sorted(set(self.item[flows.users(t)].tolist()) - {int(self.maker[t])}) for t in range(flows.count)
        ]

    def groups_of(self, item: int) -> list[int]:
        """Return the fusion groups with a member in an item."""
        return self._groups[item]

    @cached_property
    def _groups(self) -> list[list[int]]:
        groups = self.problem.groups
        out: list[list[int]] = [[] for _ in range(self.count)]
        for k in range(groups.count):
            for i in sorted(set(self.item[groups.of(k)].tolist())):
                out[i].append(k)
        return out

    @cached_property
    def fusable(self) -> list[tuple[int, int]]:
        """Pairs of a group and a unit that can hold it and gains by it."""
        groups = self.problem.groups
        gains = (groups.time > 0) | (groups.energy > 0)
        return [
            (k, j)
            for k in range(groups.count)
            for j in range(self.problem.units.count)
            if gains[k, j] and self.possible[self.item[groups.of(k)], j].all()
        ]

    @cached_property
    def limited(self) -> list[int]:
        """Memories that could be asked for more than they have."""
        most = int(self.problem.flows.bytes.sum())
        return [m for m, room in enumerate(self.problem.units.capacity.tolist()) if room < most]

    def levels(self, tensor: int) -> list[Level]:
        """Return how long a tensor is held, by rising ends; the first level is that of its maker, if it is no weight.

        Where an item of a level is in a memory, the tensor is held there from ``since`` to the level's end.
        """
        flows, made = self.problem.flows, int(self.problem.flows.source[tensor])
        by_end: dict[int, set[int]] = {} if flows.kept[tensor] else {made: {int(self.maker[tensor])}}
        for e in range(int(flows.indptr[tensor]), int(flows.indptr[tensor + 1])):
            end = self.problem.count - 1 if flows.kept[tensor] else max(made, int(flows.until[e]))
            by_end.setdefault(end, set()).add(int(self.item[flows.targets[e]]))
        return [Level(end, tuple(sorted(some))) for end, some in sorted(by_end.items())]

    @cached_property
    def size(self) -> int:
        """Variables of a model, about."""
        sites, flows = self.problem.units.sites, self.problem.flows
        held = (len(flows.targets) + flows.count) * len(self.limited)
        return int(self.possible.sum()) + flows.count * sites * 2 + len(self.fusable) + held

    def in_order(self, unit: IntArray) -> IntArray:
        """Return the assignment (L,) that is ``unit`` but for an exchange of units that are alike, as the models want it."""
        name = np.arange(self.problem.units.count)
        for some in self.alike:
            of_items = np.zeros(self.count, np.int64)
            of_items[self.item] = unit
            first = [
                int(np.flatnonzero(of_items == j)[0]) if (of_items == j).any() else self.count for j in some
            ]
            for place, k in enumerate(np.argsort(first, kind="stable").tolist()):
                name[some[k]] = some[place]
        out: IntArray = name[unit]
        return out

    def packed(self, unit_of_item: IntArray, fused: BoolArray, rank: IntArray | None = None) -> IntArray:
        """Return a solution as engines offer it; operators keep their order where there is no ``rank`` (L,)."""
        order = np.arange(self.problem.count) if rank is None else rank
        return Assignment(unit_of_item[self.item], fused, order).packed(self.problem)


def assign_data(problem: AssignProblem) -> AssignData:
    """Return the data of the models."""
    count = problem.count
    item = np.arange(count)
    if problem.together is not None:
        first: dict[int, int] = {}
        for i, number in enumerate(problem.together.tolist()):
            if number >= 0:
                item[i] = first.setdefault(number, i)
    _, item = np.unique(item, return_inverse=True)
    possible = np.ones((int(item.max()) + 1, problem.units.count), bool)
    np.logical_and.at(possible, item, problem.time >= 0)
    return AssignData(problem, item.astype(np.int64), possible, alike_units(problem))


def alike_units(problem: AssignProblem) -> tuple[tuple[int, ...], ...]:
    """Return the classes of units of which any two can be exchanged: costs, gains, ways between sites and memories stay.

    Being exchangeable with a third unit carries over, as exchanges can be made one after the other.
    """
    classes: list[list[int]] = []
    for j in range(problem.units.count):
        for some in classes:
            if _exchangeable(problem, some[0], j):
                some.append(j)
                break
        else:
            classes.append([j])
    return tuple(tuple(some) for some in classes if len(some) > 1)


def _exchangeable(problem: AssignProblem, a: int, b: int) -> bool:
    """Return whether the names of two units mean nothing."""
    units, flows, groups = problem.units, problem.flows, problem.groups
    for table in (problem.time, problem.energy, groups.time, groups.energy):
        if (table[:, a] != table[:, b]).any():
            return False
    s, r = int(units.site[a]), int(units.site[b])
    if s == r:
        return True
    if (units.site == s).sum() > 1 or (units.site == r).sum() > 1:
        return False
    other = np.arange(units.sites)
    other[s], other[r] = r, s
    for moved in (flows.time, flows.energy):
        if (moved != moved[:, other][:, :, other]).any():
            return False
    return _same_memories(problem, other) and _same_channels(problem, other)


def _same_memories(problem: AssignProblem, other: IntArray) -> bool:
    """Return whether memories can be renamed so that sites with new names ``other`` (S,) have what they had."""
    memory, capacity = problem.units.memory, problem.units.capacity
    renamed: dict[int, int] = {}
    for s, m in enumerate(memory.tolist()):
        to = int(memory[other[s]])
        if renamed.setdefault(m, to) != to or capacity[m] != capacity[to]:
            return False
    return len(set(renamed.values())) == len(renamed)


def _same_channels(problem: AssignProblem, other: IntArray) -> bool:
    """Return whether channels can be renamed likewise."""
    before, after = problem.units.channel, problem.units.channel[other][:, other]
    renamed: dict[int, int] = {-1: -1}
    for x, y in zip(before.ravel().tolist(), after.ravel().tolist(), strict=True):
        if renamed.setdefault(x, y) != y:
            return False
    return len(set(renamed.values())) == len(renamed)
