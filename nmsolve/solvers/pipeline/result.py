"""The outcome of a run for pipelines."""

from __future__ import annotations

from dataclasses import dataclass

from nmsolve.model.bound import Bound, EngineShare, Event
from nmsolve.model.pipeline.plan import PipelinePlan


@dataclass(frozen=True, eq=False)
class PipelineResult:
    """What a run claims; :func:`nmsolve.model.pipeline.check.plan_complaint` and the evaluator re-check it.

    Attributes
    ----------
    status : ``optimal``, ``feasible``, ``infeasible`` (proved), ``unknown``
    stop_reason : ``gap``, ``time``, ``memory``, ``interrupt``, ``exhausted`` (nothing left to try), ``error``
    plan : the best plan, or None
    objective, bound, gap : largest load of a stage, in the problem's unit of time; None where there is none
    bounds : the best bound of every method
    """

    status: str
    stop_reason: str
    plan: PipelinePlan | None
    objective: float | None
    bound: float | None
    gap: float | None
    bounds: tuple[Bound, ...] = ()
    events: tuple[Event, ...] = ()
    engines: tuple[EngineShare, ...] = ()
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    seed: int = 0
    memory_budget: int | None = None
    memory_peak: int = 0
