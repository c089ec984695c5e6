"""Layers into stages, cores to stages: the best plan found in the time given, and a bound on all others."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.bound import gap as gap_of
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.referee import PipelineReferee
from nmsolve.solvers.pipeline.registry import plan_of
from nmsolve.solvers.pipeline.result import PipelineResult
from nmsolve.solvers.search.budget import Budget
from nmsolve.solvers.search.ending import say_ending
from nmsolve.solvers.search.incumbent import Incumbent, Observer
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.portfolio import Portfolio

#: Seconds kept back to stop children: a part of the time limit, and at most so many.
RESERVE_PART, RESERVE = 0.03, 0.5


def plan(
    problem: PipelineProblem,
    *,
    time_limit: float = 60.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    warm_start: PipelinePlan | None = None,
    memory: int | None = None,
    observers: Sequence[Observer] = (),
) -> PipelineResult:
    """The plan with the least largest load found in the time given, and a proven bound.

    Parameters
    ----------
    time_limit : wall seconds, from ``started`` (``time.monotonic()``) on
    gap : stop once the gap is proved to be no more than this
    seed : seed of all random choices
    workers : engines that run at the same time
    engines : names from :data:`nmsolve.solvers.pipeline.registry.REGISTRY`, in this order; all that fit if not given
    warm_start : a plan to start from
    memory : most bytes that all processes together may hold
    observers : called with every event

    Raises
    ------
    InputError : an argument is wrong; a layer fits nowhere, or all layers together do not
    """
    if not (0 <= gap < 1) or workers < 1:
        raise InputError(f"gap {gap}, {workers} workers", "", "0 <= gap < 1, at least one worker")
    require_fit(problem)
    began, cpu = time.monotonic() if started is None else started, time.process_time()
    budget = Budget(time_limit, started=began, reserve=min(RESERVE, RESERVE_PART * time_limit))
    watched, referee = Memory(memory), PipelineReferee(problem)
    incumbent = Incumbent(referee, budget, observers, gap)
    steps, refusals = plan_of(problem, engines)
    start = None if warm_start is None else _first(referee, warm_start)
    with budget.ctrl_c(), watched.watched(budget.starve):
        incumbent.record("start", "", _words(problem, seed))
        for name, reason in refusals.items():
            incumbent.record("note", "search", f"not run: {name}: {reason}")
        if start is not None:
            incumbent.offer("start", start, "given")
        portfolio = Portfolio(referee, incumbent, budget, seed=seed, workers=workers, memory=watched)
        portfolio.run(steps)
    status, reason = say_ending(incumbent, budget, portfolio)
    best = None if incumbent.lifted is None else PipelinePlan.unpacked(problem, np.array(incumbent.lifted))
    value = None if best is None else objective(problem, best)
    bound = incumbent.bound if incumbent.has_bound else None
    return PipelineResult(
        status=status,
        stop_reason=reason,
        plan=best,
        objective=value,
        bound=bound,
        gap=gap_of(value, bound),
        bounds=incumbent.bounds,
        events=incumbent.events,
        engines=incumbent.shares(),
        wall_seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - cpu + portfolio.child_cpu,
        seed=seed,
        memory_budget=watched.budget,
        memory_peak=watched.peak,
    )


def _first(referee: PipelineReferee, start: PipelinePlan) -> IntArray:
    """The warm start as engines offer it.

    Raises
    ------
    InputError : it breaks a rule of the problem
    """
    problem = referee.problem
    fits = start.stage.shape == (problem.count,) and len(start.cores) <= problem.slots
    wrong = "it has other layers or more stages" if not fits else referee.complaint(start.packed(problem))
    if wrong is not None:
        raise InputError(
            f"the plan to start from cannot be used: {wrong}", "warm start", "a plan of this problem"
        )
    return start.packed(problem)


def _words(problem: PipelineProblem, seed: int) -> str:
    hosts = f", {problem.hosts} hosts" if problem.hosts else ""
    return (
        f"{problem.count} layers on {problem.cores} cores{hosts}, at most {problem.stages} stages, "
        f"split {problem.split}, seed {seed}"
    )
