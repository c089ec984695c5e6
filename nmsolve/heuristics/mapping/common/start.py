"""A mapping to begin with, for searches that go on from one."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.hw.scores import broken_ceiling
from nmsolve.model.engine import Context
from nmsolve.model.mapping.axons_fit import without_axons
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray

#: Part of the time for a start that ignores limits on tables, where no mapping is known.
UNLIMITED_PART = 0.3


def start(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return (n,) the best mapping so far, else one by method M2 on unicast traffic (offered), else any legal one.

    With limits on axon or routers' tables, a good one that may exceed these if none is known.
    """
    from nmsolve.heuristics.mapping.published.m2.engine import M2

    core, _ = context.incumbent()
    if core is None and (problem.axons is not None or problem.table_limit is not None):
        return _without_limits(problem, context)
    if core is None and problem.machine.distance_matrix is None:
        M2().run(problem, context)
        core, _ = context.incumbent()
    if core is None and not context.should_stop():
        core = repair(problem, np.arange(problem.n) * problem.cores // problem.n)
        if core is not None:
            context.offer(core, "nearest room")
    return core


def _without_limits(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return (n,) a mapping by the multilevel mapper, which ignores limits on tables; offer those on the way that obey them."""
    from nmsolve.heuristics.mapping.multilevel import mapper

    def offer(core: IntArray, move: str) -> None:
        if not check_mapping(problem, core) and broken_ceiling(problem, core) is None:
            context.offer(core, move)

    seconds = max(1e-3, UNLIMITED_PART * context.time_left())
    end = context.time_left() - seconds
    return mapper.map_multilevel(
        without_axons(problem),
        context.seed,
        seconds * mapper.WORK_PER_SECOND,
        lambda: context.should_stop() or context.time_left() <= end,
        offer,
        lambda: 1.0 - (context.time_left() - end) / seconds,
    )
