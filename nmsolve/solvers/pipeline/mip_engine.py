"""Mixed-integer programming as an engine for pipelines: a second opinion on small problems."""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.mapping.mip.engine import TOLERANCE
from nmsolve.solvers.mapping.mip.solve import solve_highs
from nmsolve.solvers.pipeline.bounds import claimed
from nmsolve.solvers.pipeline.cpsat_engine import refuses_model
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.mip import build

#: Most variables of a model, about.
MAX_VARIABLES = 10_000


class PipelineMip:
    """Exact pipelines by HiGHS; runs in a child process."""

    name = "pipeline-mip"
    finds = "both"

    def refuses(self, problem: PipelineProblem) -> str | None:
        """Models that are too large."""
        return refuses_model(problem, MAX_VARIABLES)

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Solve the model; plans and bounds are forwarded as they come."""
        packed, best = context.incumbent()
        start = None if packed is None else PipelinePlan.unpacked(problem, packed)
        # The start itself must stay in the model, or HiGHS could not use it.
        below = best * (1 + 1e-9)
        built = build(pipeline_data(problem, below), start=start, bound=context.bound(), below=below)

        def raise_to(value: float, status: str, by: str = "highs") -> None:
            certificate = {"status": status, "seed": context.seed, "solver": by}
            context.raise_bound(Bound(min(value, best), self.name, certificate=certificate))

        def safe(bound: float) -> float:
            return claimed((bound - TOLERANCE * max(1.0, abs(bound))) / built.unit)

        end = solve_highs(
            built,
            seed=context.seed,
            workers=context.workers,
            seconds=context.time_left(),
            should_stop=context.should_stop,
            on_solution=lambda solution: context.offer(solution, "search"),
        )
        if end.core is not None:
            context.offer(end.core, "search")
        if end.status == "infeasible":
            raise_to(np.inf if packed is None else best * (1 - TOLERANCE), "infeasible", end.solver)
        elif end.bound is not None:
            raise_to(safe(end.bound), end.status, end.solver)
