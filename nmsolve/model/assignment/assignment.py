"""The answer to an assignment problem: a unit for every operator, the fused groups, and an order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Assignment:
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
    worth = np.zeros(groups.count, np.int64)
    for k in range(groups.count):
        own = unit[groups.of(k)]
        if (own == own[0]).all():
            worth[k] = gain[k, own[0]]
    fused, taken = np.zeros(groups.count, bool), np.zeros(problem.count, bool)
    for k in np.argsort(-worth, kind="stable"):
        own = groups.of(int(k))
        if worth[k] > 0 and not taken[own].any():
            fused[k] = True
            taken[own] = True
    return fused
