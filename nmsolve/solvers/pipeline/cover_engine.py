"""The engine ``cover``: bounds by blocks (:mod:`.blocks`), the ceiling halved between what is proved and what is known.

Blocks come from a sweep (:mod:`.sweeping`).
"""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.blocks import cover_of
from nmsolve.solvers.pipeline.bounds import work_bound
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.sweep import sweep_of
from nmsolve.solvers.pipeline.sweeping import Sweeping

#: Most items.
MOST = 3000
#: Most nodes of a sweep.
NODES = 300_000


class CoverBound:
    """Proves that no plan keeps a ceiling, by prices of layers; runs in a child process."""

    name = "cover"
    finds = "bounds"
    refuses = takes("-chain", at_most(MOST, lambda problem: problem.count, "layers"))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Raise the bound until prices prove no more, or no plan is better than the one known."""
        known, value = context.incumbent()
        cover = cover_of(pipeline_data(problem))
        if not cover.time.any():
            return
        sweep = sweep_of(cover.data, cover.cost, NODES)
        if sweep is None:
            context.note("cover: in every order of the layers too many tensors pass one place")
            return
        climb = Sweeping(cover, context, sweep)
        if known is not None:
            climb.learn(PipelinePlan.unpacked(problem, known))
        climb.low = cover.least(max(context.bound(), work_bound(problem).value))
        climb.run(value)
