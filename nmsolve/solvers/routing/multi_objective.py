"""Several objectives of routes under ceilings (:mod:`nmsolve.solvers.multi_objective`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.check.routing.recheck import RECHECKED
from nmsolve.hw.routing.values import routing_value
from nmsolve.model import clock
from nmsolve.model.bound import Ceilings, Result, Stage
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.api import FIRST, RoutingTask
from nmsolve.solvers.routing.checker import MISSING
from nmsolve.solvers.run import Options, solve


@dataclass(frozen=True)
class RoutingObjectives:
    """The objectives of a problem; solutions are packed, ``first`` is one to start from, or None."""

    problem: RoutingProblem
    options: Options
    first: IntArray | None = None
    recomputed = RECHECKED

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: IntArray | None
    ) -> tuple[Stage, Result[IntArray]]:
        """Run one stage from ``start`` (slots + channels,); without one, first look for routes within the tables."""
        end, start = clock.now() + seconds, self.first if start is None else start
        if start is None and self.problem.table_limit is not None:
            loose = replace(self.problem, table_limit=None)
            stage = RoutingStage(loose, MISSING, entries=self.problem.table_limit)
            found = self._solve(stage, FIRST * seconds, None)
            start = None if found.objective else found.solution
        result = self._solve(RoutingStage(self.problem, name, ceilings), end - clock.now(), start)
        return Stage(name, ceilings, self.problem.content_hash, result.bounds), result

    def value(self, name: str, solution: IntArray) -> float:
        """Return the objective ``name`` of ``solution`` (slots + channels,), by the evaluator."""
        routes, number = RoutingStage(self.problem, name).unpack(solution)
        return routing_value(self.problem, routes, number, name)

    def _solve(self, stage: RoutingStage, seconds: float, start: IntArray | None) -> Result[IntArray]:
        options = replace(self.options, time_limit=max(0.05, seconds), started=None)
        result = solve(RoutingTask(stage, start, (), self.options.seed), options)
        return result if result.solution is None else replace(result, solution=np.array(result.solution))
