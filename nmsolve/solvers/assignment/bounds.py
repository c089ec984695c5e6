"""Bounds of assignments at once: least work, its fair division over units, and longest paths.

What every operator costs at least on a unit, with its part of the largest gain of fusion, is :func:`least_costs`. A sum of costs
is no less than the sum of the least of them. A load is no less than any average of loads, with weights that linear programming
finds (the fractional assignment): ``sum_i min_j w_j c_ij / sum_j w_j``. A makespan is no less than a load, and no less than the
longest path (:mod:`.paths`). Weights are whole numbers, so that the re-check is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.paths import NEVER, along_cuts, program_of, tables_of
from nmsolve.solvers.search.linear import LinearProgram, minimise

#: The method of these bounds in certificates.
METHOD = "counting"
#: Weights of units add up to about this.
SHARES = 2**30


class AssignBounds:
    """The bounds of this module."""

    name = "assign-counting"
    finds = "bounds"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Cost networks."""
        return "takes assignments, not cost networks" if isinstance(problem, CostNetwork) else None

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Raise the bound by each argument that holds for the objective."""
        for bound in bounds(problem):
            context.raise_bound(bound)


def bounds(problem: AssignProblem) -> list[Bound]:
    """Return the bounds on the problem's objective, with certificates."""
    out = []
    if problem.objective in ("latency", "energy"):
        out.append(_bound("sum", least_sum(problem)))
    else:
        weights = fair_weights(problem)
        out.append(_bound("load", weighed(problem, weights), weights=weights.tolist()))
    if problem.objective == "makespan":
        program = program_of(problem)
        longest, _, _ = along_cuts(program, tables_of(program))
        out.append(_bound("path", longest, cuts=program.cuts))
    return out


def _bound(kind: str, value: int, **certificate: object) -> Bound:
    """A value of :data:`NEVER` or more means that no assignment is legal."""
    certificate = {"method": METHOD, "kind": kind, **certificate}
    if value >= NEVER:
        return Bound(float("inf"), METHOD, certificate={**certificate, "status": "infeasible"})
    return Bound(float_below(value), METHOD, certificate=certificate)


def least_costs(problem: AssignProblem, run: AnyArray, gain: AnyArray) -> IntArray:
    """Return (I, J) what every item costs on a unit at least, :data:`NEVER` where it cannot be.

    The gain of a group is shared out among its members by what they cost, rounded up; each member loses the largest of its
    shares. As no operator is in two fused groups, all gains together are no more than what members lost.
    """
    data, groups = assign_data(problem), problem.groups
    least = np.maximum(run, 0)
    lost = np.zeros_like(least)
    for k in range(groups.count):
        own = groups.of(k)
        whole = np.maximum(1, least[own].sum(axis=0))
        share = [
            [-(-int(g) * int(c) // int(w)) for g, c, w in zip(gain[k], row, whole, strict=True)]
            for row in least[own]
        ]
        lost[own] = np.maximum(lost[own], np.array(share, np.int64))
    out = np.zeros(data.possible.shape, np.int64)
    np.add.at(out, data.item, least - np.minimum(lost, least))
    out[~data.possible] = NEVER
    return out


def least_sum(problem: AssignProblem) -> int:
    """Return a bound on the sum of the objective's costs: every item where it costs least."""
    groups = problem.groups
    if problem.objective == "energy":
        costs = least_costs(problem, problem.energy, groups.energy)
    else:
        costs = least_costs(problem, problem.time, groups.time)
    return sum(costs.min(axis=1).tolist())


def fair_weights(problem: AssignProblem) -> IntArray:
    """Return (J,) weights of units, whole numbers >= 0, for :func:`weighed`: the dual of the fractional assignment."""
    from scipy.sparse import coo_array, csr_array, vstack

    costs = least_costs(problem, problem.time, problem.groups.time)
    item, unit = np.nonzero(costs < NEVER)
    units, count = costs.shape[1], len(item)
    top = max(1.0, float(costs[item, unit].max(initial=0)))
    work = coo_array((costs[item, unit] / top, (unit, np.arange(count))), shape=(units, count + 1)).tocsr()
    worst = csr_array(
        (np.full(units, -1.0), (np.arange(units), np.full(units, count))), shape=(units, count + 1)
    )
    once = csr_array((np.ones(count), (item, np.arange(count))), shape=(len(costs), count + 1))
    goal = np.zeros(count + 1)
    goal[count] = 1.0
    low = np.append(np.full(units, -np.inf), np.ones(len(costs)))
    high = np.append(np.zeros(units), np.ones(len(costs)))
    free = np.full(count + 1, np.inf)
    rows: Any = vstack([work + worst, once]).tocsr()
    end = minimise(LinearProgram(goal, rows, low, high, np.zeros(count + 1), free), np.inf)
    if end is None or not end.optimal:
        return np.ones(units, np.int64)
    weights = np.rint(np.maximum(0.0, -end.dual[:units]) * SHARES).astype(np.int64)
    return weights if weights.any() else np.ones(units, np.int64)


def weighed(problem: AssignProblem, weights: IntArray) -> int:
    """Return the bound on the load that weights (J,) prove, or that of the largest item alone, in whole numbers."""
    costs = least_costs(problem, problem.time, problem.groups.time)
    share, total = weights.tolist(), int(weights.sum())
    work = sum(
        min(w * c if c < NEVER else NEVER * total for w, c in zip(share, row, strict=True))
        for row in costs.tolist()
    )
    return max(-(-work // total), int(costs.min(axis=1).max()))
