"""The engine ``schedule-counting``: bounds at once, by longest paths, by :mod:`.prices` and by windows (:mod:`.energetic`); and
that nonrenewable resources do not suffice (:mod:`.budgets`)."""

from __future__ import annotations

import math

from nmsolve.hw.schedule.heads import windows
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.solvers.schedule.budgets import overdraft
from nmsolve.solvers.schedule.energetic import excess, rows_of
from nmsolve.solvers.schedule.price_claim import claim_of
from nmsolve.solvers.schedule.prices import MOST_SHARES, PRICED, best_prices, evenly_shared
from nmsolve.solvers.schedule.program import factors, program_of, shape_of


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
