"""That no assignment keeps the rules, shown again without a solver: by trying every one, class by class."""

from __future__ import annotations

import numpy as np

from nmsolve.check.assignment.network import classes_of
from nmsolve.model import clock
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Steps between looks at the clock.
STEPS = 256


class _Late(Exception):
    """No time is left."""


def impossible(
    problem: AssignProblem, allowed: BoolArray, together: IntArray, capacity: FloatArray, seconds: float
) -> bool | None:
    """Return True if no assignment keeps the rules, False if one does, None if that takes more than about ``seconds``.

    Parameters
    ----------
    problem : operators and tensors; its own limits do not count
    allowed : (L, J) where every operator may be
    together : (L,) operators with one number >= 0 share a unit
    capacity : (M,) bytes of memories
    """
    classes = classes_of(together, problem.count)
    choices = [[j for j in range(problem.units.count) if all(allowed[i, j] for i in own)] for own in classes]
    if not all(choices):
        return True
    if not np.isfinite(capacity).any():
        return False
    weights = sum(int(b) for b, kept in zip(problem.flows.bytes, problem.flows.kept, strict=True) if kept)
    if weights > float(capacity.sum()):
        return True
    memory = [int(problem.units.memory[site]) for site in problem.units.site]
    choices = [
        list({memory[j]: j for j in reversed(units)}.values()) for units in choices
    ]  # one of each memory
    try:
        return not _ConflictSearch(
            problem, classes, choices, capacity.tolist(), clock.now() + seconds
        ).found()
    except _Late:
        return None


class _ConflictSearch:
    """Every choice for the classes one after the other, as long as what is certain to be held fits."""

    def __init__(
        self,
        problem: AssignProblem,
        classes: list[list[int]],
        choices: list[list[int]],
        capacity: list[float],
        end: float,
    ) -> None:
        self.problem, self.capacity, self.end = problem, capacity, end
        self.order = sorted(range(len(classes)), key=lambda c: (len(choices[c]), classes[c][0]))
        self.classes, self.choices = classes, choices
        units, flows = problem.units, problem.flows
        self.memory = [int(units.memory[units.site[j]]) for j in range(units.count)]
        self.touching: list[list[int]] = [[] for _ in range(problem.count)]
        self.users = [[int(k) for k in flows.users(t)] for t in range(flows.count)]
        for t in range(flows.count):
            for k in {int(flows.source[t]), *self.users[t]}:
                self.touching[k].append(t)
        self.unit = [-1] * problem.count
        self.held = [[0] * problem.count for _ in units.memories]
        self.steps = 0

    def found(self) -> bool:
        """Return whether some assignment fits."""
        stack = [iter(self.choices[self.order[0]])]
        while stack:
            self.steps += 1
            if self.steps % STEPS == 0 and clock.now() > self.end:
                raise _Late
            own = self.classes[self.order[len(stack) - 1]]
            if self.unit[own[0]] >= 0:
                self._put(own, -1)
            j = next(stack[-1], None)
            if j is None:
                stack.pop()
                continue
            self._put(own, j)
            if any(max(row) > most for row, most in zip(self.held, self.capacity, strict=True)):
                continue
            if len(stack) == len(self.order):
                return True
            stack.append(iter(self.choices[self.order[len(stack)]]))
        return False

    def _put(self, own: list[int], unit: int) -> None:
        """Put a class on a unit, or take it away (-1)."""
        tensors = {t for i in own for t in self.touching[i]}
        for t in tensors:
            self._count(t, -1)
        for i in own:
            self.unit[i] = unit
        for t in tensors:
            self._count(t, 1)

    def _count(self, t: int, sign: int) -> None:
        """Add or take away what operators that have a unit make memories hold of a tensor."""
        flows = self.problem.flows
        size, maker = sign * int(flows.bytes[t]), int(flows.source[t])
        last: dict[int, int] = {}
        if not flows.kept[t] and self.unit[maker] >= 0:
            last[self.memory[self.unit[maker]]] = maker
        for place, k in enumerate(self.users[t]):
            if self.unit[k] >= 0:
                m = self.memory[self.unit[k]]
                last[m] = max(last.get(m, maker), int(flows.until[int(flows.indptr[t]) + place]))
        for m, end in last.items():
            first, stop = (0, self.problem.count) if flows.kept[t] else (int(flows.since[t]), end + 1)
            row = self.held[m]
            for position in range(first, stop):
                row[position] += size
