"""Several objectives of pipelines (:mod:`nmsolve.solvers.multi_objective`): the period, and what limits can be lowered to.

The period is minimised as ever, under lower limits. The lowest limit that allows a period is found by asking problems with
other limits for that period: a plan is one limit that does, a bound above the period one that does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from nmsolve.check.pipeline.recheck import CERTIFIED, CHAIN, COUNTING, WORDS
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model import clock
from nmsolve.model.bound import Bound, Ceilings, Result, Stage, gap, meets
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.objectives import PERIOD, limited, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.multi_objective import better_start
from nmsolve.solvers.pipeline.api import PipelineTask
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.run import Options, solve

#: Part of the time left that one question may take, and the least.
PART, LEAST = 0.5, 0.1


@dataclass(frozen=True)
class PlanObjectives:
    """The objectives of a problem; ``first`` is a plan to start from, or None."""

    problem: PipelineProblem
    options: Options
    first: PipelinePlan | None = None
    recomputed = (*CERTIFIED, CHAIN, COUNTING)

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: PipelinePlan | None
    ) -> tuple[Stage, Result[PipelinePlan]]:
        """Return the least period under these limits, or the lowest limit under the others with which the period is kept."""
        whole = tuple((k, v if k == PERIOD else float(math.floor(v))) for k, v in ceilings)
        problem = limited(self.problem, whole)
        start = better_start(
            (start, self.first), lambda one: plan_complaint(problem, one) is None, partial(self.value, name)
        )
        if name == PERIOD:
            result = self._solve(problem, seconds, start)
        else:
            result = self._lowest(problem, name, dict(whole).get(PERIOD, math.inf), seconds, start)
        return Stage(name, whole, self.problem.content_hash, result.bounds), result

    def value(self, name: str, solution: PipelinePlan) -> float:
        """By the evaluator."""
        if name == PERIOD:
            return objective(self.problem, solution)
        return float(used(self.problem, solution, name))

    def _solve(
        self, problem: PipelineProblem, seconds: float, start: PipelinePlan | None, enough: float | None = None
    ) -> Result[PipelinePlan]:  # fmt: skip
        require_fit(problem, chains=False)
        options = replace(self.options, time_limit=seconds, started=None, enough=enough)
        return solve(PipelineTask(problem, start), options)

    def _lowest(
        self, problem: PipelineProblem, name: str, period: float, seconds: float, start: PipelinePlan | None
    ) -> Result[PipelinePlan]:
        """Return the lowest limit called ``name`` with which some plan has no more than ``period``."""
        begun = clock.now()
        proof = Bound(float(counted(problem, name)), COUNTING, certificate={"method": COUNTING})
        best = start if start is not None and objective(problem, start) <= period else None
        bounds, result, found = [proof], None, False
        while best is None or used(problem, best, name) > proof.value:
            left = seconds - (clock.now() - begun)
            if left <= 0 or (best is None and result is not None):
                break
            most = math.inf if best is None else _asked(proof.value, used(problem, best, name), found)
            try:
                tighter = limited(problem, ((name, most),))
                result = self._solve(tighter, max(LEAST, PART * left), None, period)
            except InputError:  # counting says that nothing fits, which leaves no certificate
                break
            above = next(_above(result, period), None)
            found = best is not None
            if result.solution is not None and result.objective is not None and result.objective <= period:
                best = result.solution
            elif above is not None and math.isfinite(most):
                known = {"most": most, "period": above.value if math.isfinite(above.value) else None}
                proof, found = (
                    Bound(most + 1.0, above.method, certificate={**above.certificate, **known}),
                    False,
                )
                bounds.append(proof)
            else:
                break
        return _result(
            name, best, None if best is None else float(used(problem, best, name)), bounds, result, seconds
        )


def _asked(low: float, high: int, found: bool) -> int:
    """Return the limit to ask about next: just below the lowest known that does; half way to what is proved if such a one did."""
    return (int(low) + high - 1) // 2 if found else high - 1


def _above(result: Result[PipelinePlan], period: float) -> Iterator[Bound]:
    """Bounds that say that no plan keeps the period, those first that can be recomputed."""
    if result.status == "infeasible":
        names = [e.engine for e in result.events if e.text == "proved infeasible"]
        yield from (Bound(math.inf, name, certificate={"status": "infeasible"}) for name in names)
    for b in sorted(result.bounds, key=lambda b: b.method in WORDS):
        if b.scope == "full" and not meets(period, b.value):
            yield b


def _result(
    name: str, best: PipelinePlan | None, value: float | None, bounds: list[Bound], last: Result[PipelinePlan] | None,
    seconds: float,
) -> Result[PipelinePlan]:  # fmt: skip
    """Return what was found, in the form of any run."""
    low = bounds[-1].value
    reason = "time" if last is None else last.stop_reason
    status = "unknown" if value is None else "optimal" if value <= low else "feasible"
    if value is None and last is not None and last.status == "infeasible":
        status = "infeasible"
    return Result(
        status, "gap" if status == "optimal" else reason, name, best, value, low, gap(value, low), tuple(bounds),
        wall_seconds=seconds,
    )  # fmt: skip


def counted(problem: PipelineProblem, name: str) -> int:
    """Return a limit that no plan goes below: what holds all storage, evenly shared, and the layer that needs most of it."""
    storage, free = merge(problem).problem.storage, 1 - 1e-12
    if problem.hosts:
        return 1 if name == "stages" else 0
    if name == "core-memory":
        most = float(storage.max()) / problem.largest_group
        return math.ceil(max(most, math.fsum(storage) / problem.cores) * free)
    needed = (
        0.0
        if name == "stages" or not problem.memory or problem.streams
        else math.fsum(storage) / problem.memory
    )
    return max(1, math.ceil(needed * free))
