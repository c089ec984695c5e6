"""What rules share: operators that share a unit as one item, what memories still hold, what a move changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, fused_where_possible
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray


def no_network(problem: object) -> str | None:
    """Return why a rule cannot take a problem: a cost network has no operators."""
    return "it needs operators, not a cost network" if isinstance(problem, CostNetwork) else None


class Items:
    """Operators as they move: alone, or with those that must share their unit.

    Attributes
    ----------
    members : the operators of every item, ascending; items are in the order of their first operators
    of : (L,) item of every operator
    run : (N, J) ps, or pJ if the objective is energy, 0 where the item cannot run
    possible : (N, J)
    """

    def __init__(self, problem: AssignProblem) -> None:
        self.problem = problem
        together = np.full(problem.count, -1) if problem.together is None else problem.together
        first: dict[int, int] = {}
        self.members: list[list[int]] = []
        self.of = np.zeros(problem.count, np.int64)
        for i, number in enumerate(together.tolist()):
            k = first.get(number, -1) if number >= 0 else -1
            if k < 0:
                k = len(self.members)
                self.members.append([])
                first[number] = k
            self.members[k].append(i)
            self.of[i] = k
        table = problem.energy if problem.objective == "energy" else problem.time
        self.possible: BoolArray = np.array([(table[own] >= 0).all(axis=0) for own in self.members])
        self.run = np.array([np.maximum(table[own], 0).sum(axis=0) for own in self.members]) * self.possible

    @property
    def count(self) -> int:
        """N."""
        return len(self.members)

    @cached_property
    def scalar(self) -> BoolArray:
        """(N,) whether all operators of an item are of class scalar."""
        return np.array([bool(self.problem.scalar[own].all()) for own in self.members])

    @cached_property
    def tensors(self) -> list[list[int]]:
        """(N,) tensors that an item makes or uses, what stands left out."""
        flows = self.problem.flows
        found: list[set[int]] = [set() for _ in self.members]
        for t in np.flatnonzero(~flows.kept).tolist():
            for i in (int(flows.source[t]), *flows.users(t).tolist()):
                found[self.of[i]].add(t)
        return [sorted(own) for own in found]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """(N,) items that an item sends tensors or gets them from."""
        flows = self.problem.flows
        found: list[set[int]] = [set() for _ in self.members]
        for t in np.flatnonzero(~flows.kept).tolist():
            k = int(self.of[flows.source[t]])
            for i in flows.users(t).tolist():
                found[k].add(int(self.of[i]))
                found[int(self.of[i])].add(k)
        return [sorted(own - {k}) for k, own in enumerate(found)]

    def spread(self, unit: IntArray) -> IntArray:
        """Return (L,) units of operators, from (N,) units of items."""
        return unit[self.of]

    def components(self, chosen: BoolArray) -> list[list[int]]:
        """Return connected sets of the items ``chosen`` (N,), the largest first."""
        seen, found = ~chosen, []
        seen = seen.copy()
        for start in np.flatnonzero(chosen).tolist():
            if seen[start]:
                continue
            seen[start], queue = True, [start]
            for k in queue:
                for other in self.neighbours[k]:
                    if not seen[other]:
                        seen[other] = True
                        queue.append(other)
            found.append(sorted(queue))
        return sorted(found, key=lambda own: (-len(own), own))


class MemoryProfile:
    """Bytes that memories hold at every position, filled item by item; never less than what the rules count.

    Whoever places an item does not know where the users of its results will be: they are taken to need them where they are made.
    """

    def __init__(self, items: Items) -> None:
        self.items, self.problem = items, items.problem
        units, flows = self.problem.units, self.problem.flows
        self.memory = units.memory[units.site]
        self.limited = bool(flows.bytes.sum() > units.capacity.min())
        self.held = np.zeros((len(units.memories), self.problem.count + 1), np.int64)
        self.inside: list[dict[int, tuple[int, int]]] = [{} for _ in units.memories]
        self.weights: list[list[int]] = [[] for _ in items.members]
        if self.limited:
            for t in np.flatnonzero(flows.kept).tolist():
                for k in {int(items.of[i]) for i in flows.users(t).tolist()}:
                    self.weights[k].append(t)

    def fits(self, item: int, unit: int) -> bool:
        """Return whether a unit's memory has room for an item."""
        if not self.limited:
            return True
        m = int(self.memory[unit])
        held = self.held[m].copy()
        for start, stop, size, _ in self._wants(item, m):
            held[start:stop] += size
        return bool(held.max() <= self.problem.units.capacity[m])

    def place(self, item: int, unit: int) -> None:
        """Take the room."""
        if not self.limited:
            return
        m = int(self.memory[unit])
        for start, stop, size, t in self._wants(item, m):
            self.held[m, start:stop] += size
            old = self.inside[m].get(t, (start, stop))
            self.inside[m][t] = (min(old[0], start), max(old[1], stop))

    def _wants(self, item: int, memory: int) -> list[tuple[int, int, int, int]]:
        """Return (first position, position after the last, bytes, tensor) that a memory does not hold yet."""
        flows, wants, own = self.problem.flows, [], self.items.members[item]
        for t in self.weights[item]:
            if t not in self.inside[memory]:
                wants.append((0, self.problem.count + 1, int(flows.bytes[t]), t))
        for t in self.items.tensors[item]:
            start, lasts = int(flows.since[t]), range(int(flows.indptr[t]), int(flows.indptr[t + 1]))
            made = int(flows.source[t]) in own
            last = max(
                [int(flows.until[e]) for e in lasts if made or int(flows.targets[e]) in own], default=0
            )
            stop, size = max(last, int(flows.source[t])) + 1, int(flows.bytes[t])
            held = self.inside[memory].get(t)
            if held is None:
                wants.append((start, stop, size, t))
            elif stop > held[1]:
                wants.append((held[1], stop, size, t))
        return wants


class Sums:
    """The sum of all costs of a mapping of items, without fusion, and what a move of some of them changes."""

    def __init__(self, items: Items, unit: IntArray) -> None:
        self.items, self.unit = items, unit.copy()
        problem = items.problem
        self.site = problem.units.site
        flows = problem.flows
        self.moved = flows.energy if problem.objective == "energy" else flows.time
        self.source = items.of[flows.source]
        self.users = [sorted({int(items.of[i]) for i in flows.users(t).tolist()}) for t in range(flows.count)]

    def change(self, moved: Sequence[int], to: int) -> int:
        """Return what the sum gains by moving items to a unit; negative is better."""
        touched = sorted({t for k in moved for t in self.items.tensors[k]})
        before = sum(self._transfers(t) for t in touched)
        old = self.unit[list(moved)].copy()
        run = self.items.run[list(moved)]
        gained = int(run[:, to].sum()) - int(run[np.arange(len(old)), old].sum())
        self.unit[list(moved)] = to
        after = sum(self._transfers(t) for t in touched)
        self.unit[list(moved)] = old
        return gained + after - before

    def _transfers(self, tensor: int) -> int:
        """Return what the transfers of a tensor cost."""
        origin = self.site[self.unit[self.source[tensor]]]
        goals = {int(self.site[self.unit[k]]) for k in self.users[tensor]}
        return sum(int(self.moved[tensor, origin, goal]) for goal in goals)


def offer(problem: AssignProblem, context: Context, unit: IntArray, move: str) -> bool:
    """Offer a mapping of operators (L,) with what it allows to fuse; say why if it breaks a rule. Return whether it was legal."""
    answer = Assignment(unit, fused_where_possible(problem, unit), np.arange(problem.count))
    complaint = assignment_complaint(problem, answer)
    if complaint is not None:
        context.note(f"{move}: {complaint}")
        return False
    context.offer(answer.packed(problem), move)
    return True
