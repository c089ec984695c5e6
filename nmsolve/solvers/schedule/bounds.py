"""The engine ``schedule-counting``: bounds at once, by longest paths, by :mod:`.prices` and by windows (:mod:`.energetic`); and
that nonrenewable resources do not suffice: prices under which the cheapest modes cost too much.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nmsolve.hw.schedule.heads import windows
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule.energetic import excess, rows_of
from nmsolve.solvers.schedule.prices import MOST_SHARES, PRICED, best_prices, claim_of, evenly_shared
from nmsolve.solvers.schedule.program import factors, program_of, shape_of

#: A price of one is this many parts.
PARTS = 2**20


def overdraft(budgets: Budgets, first: IntArray, seconds: float) -> list[int] | None:
    """Return whole prices (B,) that prove that no modes keep the budgets, or None if there are none, or none were found in time.

    At prices, every process costs at least its cheapest mode. If all of these together cost more than the budgets are worth, no
    choice of modes keeps them. One price alone, or the dual of the linear program that chooses parts of modes.

    Parameters
    ----------
    first : (P + 1,) process ``p`` has modes ``first[p] .. first[p + 1] - 1``
    """
    if not budgets.count:
        return None
    candidates = list(np.eye(budgets.count))
    if budgets.count > 1:
        candidates += _dual(budgets, first, seconds)
    for price in candidates:
        whole = [int(x) for x in np.rint(price * PARTS)]
        if overdrawn(budgets, first, whole):
            return whole
    return None


def overdrawn(budgets: Budgets, first: IntArray, prices: list[int]) -> bool:
    """Return whether all cheapest modes together cost more than the budgets, in Python's own numbers."""
    cost = sum(price * budgets.use[:, r].astype(object) for r, price in enumerate(prices))
    least = np.minimum.reduceat(cost, first[:-1]).sum()
    return bool(
        least > sum(price * int(amount) for price, amount in zip(prices, budgets.amount, strict=True))
    )


def _dual(budgets: Budgets, first: IntArray, seconds: float) -> list[np.ndarray]:
    """Return the prices (B,), 1 in sum, at which the cheapest modes cost most beyond the budgets; none without an answer in time.

    Variables are the prices of budgets, each divided by its amount, and the cost of every process.
    """
    from scipy import optimize, sparse

    scale = np.maximum(1, budgets.amount).astype(float)
    modes, count = len(budgets.use), len(first) - 1
    process = np.repeat(np.arange(count), np.diff(first))
    one = sparse.csr_array((np.ones(modes), (np.arange(modes), process)), (modes, count))
    linprog: Any = optimize.linprog  # its stubs lack sparse rows
    done = linprog(
        np.concatenate([budgets.amount / scale, -np.ones(count)]),
        A_ub=sparse.hstack([sparse.csr_array(-budgets.use / scale), one]).tocsr(), b_ub=np.zeros(modes),
        A_eq=np.concatenate([np.ones(budgets.count), np.zeros(count)])[None, :], b_eq=np.ones(1),
        bounds=(0, None), method="highs", options={"time_limit": max(0.1, seconds)},
    )  # fmt: skip
    if done.status != 0 or done.fun >= 0:
        return []
    price = done.x[: budgets.count] / scale
    return [price / price.max()]


class ScheduleCounting:
    """Paths for every problem; prices for sums of makespan, energy and bytes moved."""

    name = "schedule-counting"
    finds = "bounds"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """None: a path may prove that there is no schedule, whatever is minimised."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Raise the bounds."""
        overdrawn = overdraft(problem.budgets, problem.modes.first, context.time_left())
        if overdrawn is not None:
            context.raise_bound(_bound("budgets", math.inf, prices=overdrawn))
            return
        found = windows(problem)
        program = program_of(problem, found)
        ends = found.ends(problem)
        if (ends >= NEVER).any() or found.makespan(problem) > program.high:
            context.raise_bound(_bound("critical-path", math.inf))
            return
        if problem.objective in ("makespan", "tardiness"):
            value = program.low if problem.objective == "makespan" else program.constant
            context.raise_bound(_bound("critical-path", value))
        if not set(factors(problem)) & set(PRICED):
            return
        shape = shape_of(problem, program)
        if problem.objective == "makespan" and len(shape.owner) > MOST_SHARES:
            alone = best_prices(
                problem, program, shape_of(problem, program, shared=False), context.time_left()
            )
            prices = None if alone is None else evenly_shared(program, shape, alone)
        else:
            prices = best_prices(problem, program, shape, context.time_left())
        claim = None if prices is None else claim_of(problem, program, shape, prices)
        if claim is None:
            context.note("prices prove nothing: no time for the linear program, or too large numbers")
        else:
            context.raise_bound(_bound("prices", claim[0], **claim[1]))
        if problem.objective == "makespan":
            for row in rows_of(problem, None if prices is None else prices.row):
                low = max(program.low, int(context.bound()))
                proof = excess(problem, found, row, low, context.should_stop)
                if proof is not None:
                    window = [proof.begin, proof.end, proof.tick]
                    context.raise_bound(_bound("energetic", proof.tick + 1, rows=row.tolist(), window=window))


def _bound(method: str, value: float, **certificate: object) -> Bound:
    """Return a bound; ``inf`` means that no schedule keeps all deadlines and ceilings."""
    claimed = value if value == math.inf else max(0.0, float_below(int(value)))
    status = {"status": "infeasible"} if value == math.inf else {}
    return Bound(claimed, method, certificate={"method": method, **status, **certificate})
