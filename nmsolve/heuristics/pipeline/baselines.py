"""Plans that need no search, to compare with: one group of all cores, and stages of equal work."""

from __future__ import annotations

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem


def one_group(problem: PipelineProblem) -> PipelinePlan:
    """Return all layers on one group, as large as groups may be. It may break the rules on stages, cores and memory."""
    return PipelinePlan(np.zeros(problem.count, np.int64), np.array([problem.largest_group], np.int64))


def equal_stages(problem: PipelineProblem, stages: int) -> PipelinePlan:
    """At most ``stages`` runs of layers with about the same time on one core each, all with the same number of cores.

    A layer belongs to the stage in whose share of the work its middle lies. Cores that do not divide evenly go to the first
    stages. The plan looks neither at transfers nor at memory nor at tiles, like most partitions by hand, and may break rules.
    """
    stages = min(stages, problem.count, problem.cores)
    time = problem.time[:, 0]
    total = float(time.sum())
    middle = np.cumsum(time) - time / 2
    share = np.zeros(problem.count) if total == 0 else middle / total
    wanted = np.clip((share * stages).astype(np.int64), 0, stages - 1)
    _, stage = np.unique(wanted, return_inverse=True)
    count = int(stage.max()) + 1
    each, more = divmod(problem.cores, count)
    cores = np.minimum(each + (np.arange(count) < more), problem.largest_group)
    return PipelinePlan(stage.astype(np.int64), cores)
