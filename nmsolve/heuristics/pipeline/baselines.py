"""Plans to compare with: one group of all cores, cuts by rules of thumb, and the best replicas of single cores.

A cut by hand gives every stage about the same work, or as many layers, or fills one stage after the other. Its stages get cores
in proportion to their work, and whoever cuts by hand tries a few numbers of stages: :func:`best_by_hand` tries them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most stages that are tried.
MOST_STAGES = 256


def one_group(problem: PipelineProblem) -> PipelinePlan:
    """Return all layers on one group, as large as groups may be. It may break the rules on stages, cores and memory."""
    return PipelinePlan(np.zeros(problem.count, np.int64), np.array([problem.largest_group], np.int64))


def equal_stages(problem: PipelineProblem, stages: int) -> PipelinePlan:
    """At most ``stages`` runs of layers with about the same time on one core each, all with the same number of cores.

    A layer belongs to the stage in whose share of the work its middle lies. Cores that do not divide evenly go to the first
    stages. The plan looks neither at transfers nor at memory nor at tiles, like most partitions by hand, and may break rules.
    """
    stage = _equal_work(problem.time[:, 0], min(stages, problem.count, problem.cores))
    count = int(stage.max()) + 1
    each, more = divmod(problem.cores, count)
    cores = np.minimum(each + (np.arange(count) < more), problem.largest_group)
    return PipelinePlan(stage, cores)


def _equal_work(time: FloatArray, stages: int) -> IntArray:
    """Return (L,) stages: that in whose share of the work the middle of a layer lies."""
    total = float(time.sum())
    share = np.zeros(len(time)) if total == 0 else (np.cumsum(time) - time / 2) / total
    wanted = np.clip((share * stages).astype(np.int64), 0, stages - 1)
    return np.unique(wanted, return_inverse=True)[1].astype(np.int64)


def _equal_layers(time: FloatArray, stages: int) -> IntArray:
    """Return (L,) stages of as many layers each, but for one."""
    return np.arange(len(time)) * stages // len(time)


def _filled(time: FloatArray, stages: int) -> IntArray:
    """Return (L,) stages: each takes layers until it has its share of the work that is left."""
    stage, k, left, mine = np.zeros(len(time), np.int64), 0, float(time.sum()), 0.0
    for layer, own in enumerate(time.tolist()):
        if mine > 0 and k < stages - 1 and mine + own > left / (stages - k):
            k, left, mine = k + 1, left - mine, 0.0
        stage[layer] = k
        mine += own
    return stage


#: Rules for cuts, by name: (L,) stages from (L,) work and a number of stages.
RULES: dict[str, Callable[[FloatArray, int], IntArray]] = {
    "equal work": _equal_work, "equal layers": _equal_layers, "filled in order": _filled,
}  # fmt: skip


def proportional(problem: PipelineProblem, stage: IntArray) -> PipelinePlan:
    """Return the plan of a cut (L,) whose stages get cores in proportion to their work, one at least, all cores together.

    Cores that the proportion splits go to the largest fractions (Hamilton's method).
    """
    work = np.bincount(stage, problem.time[:, 0])
    spare = problem.cores - len(work)
    share = np.full(len(work), 1 / len(work)) if work.sum() == 0 else work / work.sum()
    exact = share * spare
    cores = 1 + exact.astype(np.int64)
    cores[np.argsort(exact.astype(np.int64) - exact, kind="stable")[: problem.cores - int(cores.sum())]] += 1
    return PipelinePlan(stage, np.minimum(cores, problem.largest_group))


def copies_of_cores(problem: PipelineProblem) -> tuple[PipelinePlan, float] | None:
    """Return the best chain whose stages are replicas of single cores, and its objective; None if no such chain fits.

    This is what PipeDream's recurrence finds (Narayanan et al. 2019, section 3.1): A(j, m), the least period of j layers on m
    workers, is the least of max(A(i, m - r), time of layers i to j on one worker / r) over i and r. No cores share a layer.
    """
    plan, value = ChainPartition(replace(problem, time=problem.time[:, :1])).in_order(
        np.arange(problem.count)
    )
    return None if plan is None else (plan, value)


def best_by_hand(problem: PipelineProblem, rule: str) -> tuple[PipelinePlan, str | None]:
    """Return the best plan of a rule over all numbers of stages from two on, and the rule of the problem that it breaks, if any.

    One that breaks none comes before all that do. Layers that have to share a stage are cut as one.
    """
    merged = merge(problem)
    small = merged.problem
    plans = [
        merged.lift(proportional(small, RULES[rule](small.time[:, 0], stages)))
        for stages in range(2, min(MOST_STAGES, small.count, small.cores, problem.stages) + 1)
    ] or [one_group(problem)]
    plans.sort(key=lambda plan: objective(problem, plan))  # to compare takes a moment, to check does not
    best = next((plan for plan in plans if plan_complaint(problem, plan) is None), plans[0])
    return best, plan_complaint(problem, best)
