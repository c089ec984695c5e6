"""Layers into stages, cores to stages: the best plan found in the time given, and a bound on all others."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Unpack

import numpy as np

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.model.bound import Bound, BoundCheck, Result
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.bounding import Bounded, two_sided
from nmsolve.solvers.pipeline.checker import PipelineChecker
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.registry import REGISTRY, plan_of
from nmsolve.solvers.published import solve
from nmsolve.solvers.run import Options, Run, RunOptions, Task
from nmsolve.solvers.search.portfolio import Step


def plan(
    problem: PipelineProblem,
    *,
    warm_start: PipelinePlan | None = None,
    known: Sequence[Bound] = (),
    **options: Unpack[RunOptions],
) -> Result[PipelinePlan]:
    """Return the plan with the smallest largest load found in the time given, and a proven bound.

    Parameters
    ----------
    warm_start : a plan to start from
    known : bounds from before; they count as far as they can be recomputed, else on their solver's word
    options : as in :class:`nmsolve.solvers.run.Options`; ``engines`` are names from
        :data:`nmsolve.solvers.pipeline.registry.REGISTRY`, all that fit if not given

    Raises
    ------
    InputError : an argument is wrong; a layer fits nowhere, or all layers together do not
    """
    chosen = Options(**options, known=known, words=True)
    chosen.require_gap()
    require_fit(problem)
    return solve(PipelineTask(problem, warm_start), chosen)


def bound_plan(problem: PipelineProblem, given: PipelinePlan, options: Options) -> Bounded[PipelinePlan]:
    """Bound how far the ``given`` plan is from the best one.

    Raises
    ------
    InputError : the plan breaks a rule, or an option is wrong
    """
    return two_sided(PipelineTask(problem, given), options, "the plan")


class PipelineTask(Task[PipelinePlan]):
    """Solutions are plans."""

    objective, registry, quick = "largest load", REGISTRY, ("chain", "orders", "pipeline-local")
    methods = MappingProxyType({"m5": "m5-policy"})

    def __init__(self, problem: PipelineProblem, warm_start: PipelinePlan | None = None) -> None:
        self.problem, self.checker = problem, PipelineChecker(problem)
        self.first = None if warm_start is None else self._packed(warm_start)

    def words(self, seed: int) -> str:
        """Return sizes and seed."""
        problem = self.problem
        hosts = f", {problem.hosts} hosts" if problem.hosts else ""
        return (
            f"{problem.count} layers on {problem.cores} cores{hosts}, at most {problem.stages} stages, "
            f"split {problem.split}, seed {seed}"
        )

    def start(self, run: Run) -> list[Step]:
        """Return the warm start, then the engines as registered."""
        return self.planned(run, *plan_of(self.problem, run.options.engines))

    def answer(self, lifted: IntArray) -> tuple[PipelinePlan, dict[str, float]]:
        """Return the plan of ``lifted`` (L + slots,); there are no further objectives."""
        return PipelinePlan.unpacked(self.problem, np.array(lifted)), {}

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """Re-check with code that did not find the bound, in fractions."""
        return check_plan_bound(self.problem, bound, seconds=seconds)

    def _packed(self, start: PipelinePlan) -> IntArray:
        """Return the warm start as engines offer it.

        Raises
        ------
        InputError : it breaks a rule of the problem
        """
        problem = self.problem
        fits = start.stage.shape == (problem.count,) and len(start.cores) <= problem.slots
        wrong = (
            "it has other layers or more stages"
            if not fits
            else self.checker.complaint(start.packed(problem))
        )
        if wrong is not None:
            raise InputError(
                f"the plan to start from cannot be used: {wrong}", "warm start", "a plan of this problem"
            )
        return start.packed(problem)
