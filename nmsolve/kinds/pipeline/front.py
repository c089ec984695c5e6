"""Points of fronts that are plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.front import Rewritten
from nmsolve.kinds.in_order import PLAIN
from nmsolve.model.bound import BoundCheck

if TYPE_CHECKING:
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem


@dataclass(frozen=True)
class PlanFront(Rewritten):
    """Points are plans of a pipeline."""

    problem: PipelineProblem
    exact = False
    command, key, units = "pipeline", "plan", PLAIN
    free: Collection[str] = ()
    slow: Collection[str] = ()

    def write(self, path: Path, solution: PipelinePlan) -> None:
        """Write the plan as plan.json."""
        from nmsolve.model.pipeline.files import write_plan

        write_plan(path, self.problem, solution)

    def read(
        self, path: Path, values: Mapping[str, float]
    ) -> tuple[PipelinePlan, dict[str, float], list[str]]:
        """Rules, and the period by two programs."""
        from nmsolve.hw.pipeline.stages import objective
        from nmsolve.kinds.pipeline.check import plan_checks
        from nmsolve.model.pipeline.check import plan_complaint
        from nmsolve.model.pipeline.files import read_plan
        from nmsolve.model.pipeline.objectives import LIMITS, PERIOD, used

        plan = read_plan(path, self.problem)
        wrong = plan_complaint(self.problem, plan)
        if wrong is not None:
            return plan, {}, [wrong]
        checks = plan_checks(self.problem, plan, values.get(PERIOD, objective(self.problem, plan)), ())
        scores = {name: float(used(self.problem, plan, name)) for name in LIMITS}
        scores[PERIOD] = objective(self.problem, plan)
        return plan, scores, [f"{c.name}: {c.text}" for c in checks if not c.ok]

    def check(
        self, stage: Stage, bound: Bound, solution: PipelinePlan | None, least: float, seconds: float = 60.0
    ) -> BoundCheck:
        """By other code than that which found it, under the stage's ceilings."""
        from nmsolve.check.pipeline.recheck import check_stage_bound

        return check_stage_bound(self.problem, stage, bound, least, seconds)

    def step(self, objective: str) -> float:
        """1 for what is counted."""
        from nmsolve.model.pipeline.objectives import LIMITS

        return 1.0 if objective in LIMITS else 0.0

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the pipeline without the stage's limits."""
        return self.problem.content_hash
