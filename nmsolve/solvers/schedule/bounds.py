"""The engine ``schedule-counting``: bounds at once, by longest paths and by prices (:mod:`.prices`)."""

from __future__ import annotations

import math

from nmsolve.hw.schedule.heads import windows
from nmsolve.model.bound import Bound, float_below
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.solvers.schedule.prices import (
    PRICED,
    best_prices,
    claim_of,
    factors,
    program_of,
    shape_of,
)


class ScheduleCounting:
    """Paths for every problem; prices for sums of makespan, energy and bytes moved."""

    name = "schedule-counting"
    finds = "bounds"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """None: a path may prove that there is no schedule, whatever is minimised."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Raise both bounds."""
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
        if (prices := best_prices(problem, program, shape, context.time_left())) is None:
            context.note("the linear program has no solution, or there was no time for it")
            return
        if (claim := claim_of(problem, program, shape, prices)) is not None:
            context.raise_bound(_bound("prices", claim[0], **claim[1]))


def _bound(method: str, value: float, **certificate: object) -> Bound:
    """Return a bound; ``inf`` means that no schedule keeps all deadlines and ceilings."""
    claimed = value if value == math.inf else max(0.0, float_below(int(value)))
    status = {"status": "infeasible"} if value == math.inf else {}
    return Bound(claimed, method, certificate={"method": method, **status, **certificate})
