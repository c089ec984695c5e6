"""The exact models of pipelines as engines.

CP-SAT is asked whether values can be reached, then gets the model with its objective; HiGHS is a second opinion.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline import cpsat, mip
from nmsolve.solvers.pipeline.bounds import claimed
from nmsolve.solvers.pipeline.checker import PipelineChecker
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.search import mip as mip_solver
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import within
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built
from nmsolve.solvers.search.write_model import require_statable

#: Most variables of a model, about, for CP-SAT and for HiGHS.
MAX_VARIABLES, MAX_MIP_VARIABLES = 100_000, 10_000
#: Effort of the first questions (CP-SAT's measure, about a CPU second), how many times that the model with its objective
#: gets, and by how much both grow from round to round.
EFFORT, WHOLE, MORE = 1.0, 4.0, 3.0
#: No questions where the gap is no more than this; most questions in a row, and most for anything better.
CLOSE, QUESTIONS, BETTER = 1e-3, 12, 4
#: "Better" is better by more than what rounding to whole numbers hides, and by less than what the search takes for a gap.
MARGIN = 1 - 3e-9


def too_many(problem: PipelineProblem, most: int) -> str | None:
    """Return why a model of ``most`` variables does not take the problem, or None."""
    least = problem.slots * problem.largest_group
    if least > most:
        return f"{problem.slots} stages of up to {problem.largest_group} cores are too many"
    size = pipeline_data(problem).size
    return f"a model of {size} variables, the limit is {most}" if size > most else None


def models(problem: PipelineProblem) -> tuple[Built, Built]:
    """Return the twin models, to be written to files.

    Raises
    ------
    InputError : too large, or counting shows that nothing fits
    """
    require_fit(problem)
    require_statable(PipelineCpSat.refuses(problem))
    data = pipeline_data(problem)
    return mip.build(data), cpsat.build(data)


class PipelineCpSat:
    """Exact pipelines by OR-Tools CP-SAT; runs in a child process."""

    name = "pipeline-cpsat"
    finds = "both"

    def __init__(self) -> None:
        self._level = 1

    refuses = takes("", partial(too_many, most=MAX_VARIABLES))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Run rounds of questions, of the question for anything better, and of the model with its objective, until one ends.

        Below a value that is asked for, more tensors cannot be cut than below the best known, and fewer large items fit in a
        stage; so questions are far easier than the proof that nothing is better, and the bound rises early. Each round
        has more effort than the one before.
        """
        effort = EFFORT
        while not context.should_stop():
            self._questions(problem, context, effort)
            self._better(problem, context, WHOLE * effort)
            if context.should_stop() or self._whole(problem, context, WHOLE * effort):
                return
            effort *= MORE

    def _questions(self, problem: PipelineProblem, context: Context, effort: float) -> None:
        """Halve the space between bound and best value; what is not answered is too hard, and a lower value is asked for."""
        _, best = context.incumbent()
        hard = best
        for _ in range(QUESTIONS):
            low = context.bound()
            if not np.isfinite(hard) or hard - low <= CLOSE * hard or context.should_stop():
                return
            goal = (low + hard) / 2
            status = self._ask(problem, context, goal, effort)
            _, now = context.incumbent()
            if status == "INFEASIBLE":
                continue
            hard = now if now < min(hard, best) else goal
            best = now

    def _whole(self, problem: PipelineProblem, context: Context, effort: float) -> bool:
        """Return the model with its objective; True if it was solved."""
        _, best = context.incumbent()
        return self._solve(problem, context, best, effort, asks=False) in ("OPTIMAL", "INFEASIBLE")

    def _better(self, problem: PipelineProblem, context: Context, effort: float) -> None:
        """Ask for anything better than the best known, once the gap is small: answered sooner than the whole model.

        Only a few times: where plans differ in the last digits only, the model with its objective is quicker.
        """
        self._level = 1
        for _ in range(BETTER):
            _, best = context.incumbent()
            far = not np.isfinite(best) or best - context.bound() > CLOSE * best
            if (
                far
                or context.should_stop()
                or self._ask(problem, context, best * MARGIN, effort) != "OPTIMAL"
            ):
                return

    def _ask(self, problem: PipelineProblem, context: Context, below: float, effort: float) -> str:
        """Ask with the linear relaxation that answered the last question; if it does not answer, with the other one."""
        status = "UNKNOWN"
        for level in (self._level, 3 - self._level):
            status = self._solve(problem, context, below, effort, asks=True, level=level)
            if status != "UNKNOWN":
                self._level = level
            if status != "UNKNOWN" or context.should_stop():
                break
        return status

    def _solve(
        self,
        problem: PipelineProblem,
        context: Context,
        below: float,
        effort: float,
        *,
        asks: bool,
        level: int = 1,
    ) -> str:
        """Look for plans with values under ``below``, any such plan if ``asks``; tells what comes; CP-SAT's status."""
        data = pipeline_data(problem, below)
        packed, _ = context.incumbent()
        start = None if packed is None else PipelinePlan.unpacked(problem, packed)
        built = cpsat.build(data, start=start, bound=context.bound(), below=below, asks=asks)

        def raise_to(value: float, status: str, by: dict[str, str]) -> None:
            certificate = {"status": status, "seed": context.seed, **by}
            context.raise_bound(Bound(min(value, below), self.name, certificate=certificate))

        end = solve(
            built,
            **within(context),
            on_solution=lambda solution: context.offer(solution, "at a goal" if asks else "search"),
            on_bound=lambda value: (
                None if asks else raise_to(built.claim.bound(value), "running", {"version": ""})
            ),
            effort=effort,
            level=level,
        )
        if end.status == "INFEASIBLE":
            raise_to(below, f"infeasible below {below:.10g}" if np.isfinite(below) else "infeasible", end.by)
        elif not asks and end.bound is not None:
            raise_to(built.claim.bound(end.bound), end.status.lower(), end.by)
            if end.status == "OPTIMAL" and end.core is not None and built.claim.exact:
                # rounding of the bound must not leave a gap where nothing was rounded
                value = judge(PipelineChecker(problem), end.core)[2]
                if np.isfinite(value):
                    raise_to(value, "optimal", end.by)
        return end.status


class PipelineMip:
    """Exact pipelines by HiGHS; runs in a child process."""

    name = "pipeline-mip"
    finds = "both"
    refuses = takes("", partial(too_many, most=MAX_MIP_VARIABLES))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Solve the model; plans and bounds are forwarded as they come."""
        packed, best = context.incumbent()
        start = None if packed is None else PipelinePlan.unpacked(problem, packed)
        # The start itself must stay in the model, or HiGHS could not use it.
        below = best * (1 + 1e-9)
        built = mip.build(pipeline_data(problem, below), start=start, bound=context.bound(), below=below)
        end = mip_solver.solve(
            built, **within(context), on_solution=lambda solution: context.offer(solution, "search")
        )
        if end.status == "infeasible":
            value = np.inf if packed is None else best * (1 - mip_solver.TOLERANCE)
        elif end.bound is not None:
            value = claimed(end.bound / built.claim.factor)
        else:
            return
        certificate = {"status": end.status, "seed": context.seed, **end.by}
        context.raise_bound(Bound(min(value, best), self.name, certificate=certificate))
