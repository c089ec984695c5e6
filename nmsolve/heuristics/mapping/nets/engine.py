"""The engine ``nets``: search on the true objective of multicast messages, in memory, from the best mapping so far."""

from __future__ import annotations

from nmsolve.heuristics.mapping.multilevel.mapper import Multilevel
from nmsolve.heuristics.mapping.nets.search import net_memory, refine_nets
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem

#: Largest tables in bytes.
MEMORY = 16 * 2**30


def _too_large(problem: MappingProblem) -> str | None:
    need = net_memory(problem) / 2
    return f"its tables would take {need / 2**30:.0f} GiB" if need > MEMORY else None


class Nets:
    """Local search on multicast hops, connectivity and multicast energy.

    Unicast traffic is only a surrogate for these objectives: partitions with the best cut send 15 to 20 %
    more messages than ones made for it. Every visit of a node weighs all cores. It keeps axon tables within their limits,
    and therefore takes pairwise objectives, too, where these could bind.
    """

    name = "nets"
    finds = "mappings"
    #: Route trees have to be XY; the tables have to fit in memory.
    refuses = takes(
        "trees axons kinds -torus -matrix -dead | reach axons kinds | pairs +axons kinds -torus -matrix -dead",
        _too_large,
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements as it cools and at the end."""
        if context.should_stop() or problem.cores == 1:
            return
        refine_nets(problem, context, Multilevel().run)
