"""The engine ``schedule-counting``: bounds at once, by longest paths, by :mod:`.prices` and by windows of time; and that
nonrenewable resources do not suffice: prices under which the cheapest modes cost too much.

Windows are energetic reasoning, at any makespan that is not yet excluded. Under a makespan of ``C`` a mode starts no earlier
than its head, and no later than ``C`` less tail and span, or its deadline allows. So much of it lies in a window ``[a, b)``
as the least of what does when it starts as early and as late as it can (Erschler, Lopez and Thuriot 1991; Baptiste, Le Pape
and Nuijten 1999). If the least work of all processes in the window, at prices of units and resources, is more than there is
of these, no schedule ends within ``C``. A resource alone is a price too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.schedule.heads import Windows, windows
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.compiled import plain
from nmsolve.model.engine import Context
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.schedule.prices import MOST_SHARES, PRICED, best_prices, claim_of, evenly_shared
from nmsolve.solvers.schedule.program import factors, program_of, shape_of

#: At most this many begins and ends of windows are looked at, and at most this many modes in all of these.
MOST_ENDS, MOST_MODES = 400, 3e7
#: Prices are whole numbers up to this, unless sums would not fit in 64 bits.
PARTS = 2**20
#: Sums stay below this.
LARGEST = 2.0**60


class Excess(NamedTuple):
    """``row`` (R,) prices under which the window ``begin .. end`` has no room at any makespan up to ``tick``."""

    row: IntArray
    begin: int
    end: int
    tick: int


@plain
def _full(
    begins: IntArray, ends: IntArray, first: IntArray, span: IntArray, price: IntArray, head: IntArray, late: IntArray,
    room: int, found: IntArray,
) -> bool:  # fmt: skip
    """Write the first window without room to ``found`` (2,); return whether there is one.

    ``price`` (M,) of a tick of every mode; ``late`` (M,) latest starts; ``room`` what a tick offers.
    """
    for a in begins:
        for b in ends:
            if b <= a:
                continue
            total = 0
            for p in range(len(first) - 1):
                least = NEVER
                for m in range(first[p], first[p + 1]):
                    inside = min(span[m], b - a, head[m] + span[m] - a, b - late[m])
                    least = min(least, price[m] * max(0, inside))
                    if least == 0:
                        break
                total += least
            if total > room * (b - a):
                found[0], found[1] = a, b
                return True
    return False


def rows_of(problem: ScheduleProblem, price: FloatArray | None) -> list[IntArray]:
    """Return what may be looked at: every resource alone, and ``price`` (R,) of all rows in whole numbers."""
    units, found = problem.units.count, []
    largest = float(problem.horizon) * (problem.count + units) * float(problem.capacity.max(initial=1))
    if largest >= LARGEST:
        return []
    for r in range(len(problem.resources)):
        row = np.zeros(units + len(problem.resources), np.int64)
        row[units + r] = 1
        found.append(row)
    if price is not None and price.any():
        parts = min(float(PARTS), LARGEST / (2 * largest))
        found.append(np.floor(price * (parts / float(price.max()))).astype(np.int64))
    return [row for row in found if row.any()]


def excess(
    problem: ScheduleProblem, found: Windows, row: IntArray, low: int, should_stop: Callable[[], bool]
) -> Excess | None:
    """Return proof that no makespan of ``low`` or more, up to some tick, is possible, for the last such tick, or None.

    ``row`` : (R,) prices of units, then of resources
    """
    m = problem.modes
    units = problem.units.count
    fine = found.head < NEVER
    price: IntArray = m.demand @ row[units:]
    if problem.sets.count:
        sums = np.concatenate([[0], np.cumsum(row[problem.sets.members])])
        price = price + np.append(np.diff(sums[problem.sets.indptr]), 0)[m.unit_set]
    room = int(row[:units].sum() + (row[units:] * problem.capacity).sum())
    used = fine & (price > 0)
    if not used.any():
        return None
    most = int(min(MOST_ENDS, (MOST_MODES / m.count) ** 0.5)) + 1
    proof: Excess | None = None
    window = np.zeros(2, np.int64)
    for tick in range(low, problem.horizon):
        late = np.minimum(tick - found.tail, problem.deadline[m.process]) - m.span
        begins, ends = (
            x[:: -(-len(x) // most)] for x in map(np.unique, (found.head[used], (late + m.span)[used]))
        )
        # a mode that is too late at any makespan stands aside for the others of its process
        head = np.where(fine, found.head, late)
        if should_stop() or not _full(begins, ends, m.first, m.span, price, head, late, room, window):
            return proof
        proof = Excess(row, int(window[0]), int(window[1]), tick)
    return proof


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
