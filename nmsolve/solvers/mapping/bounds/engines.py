"""The bounds as engines of a run: each raises what it proves as soon as it is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.features import Takes
from nmsolve.model.graph import MOST_EDGES
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.claim import claimable
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, refuses_core_traffic
from nmsolve.solvers.mapping.bounds.learned import guided
from nmsolve.solvers.mapping.bounds.link_load import (
    exchange_bounds,
    link_load_bounds,
    refuses_exchange,
    refuses_link_load,
)
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
from nmsolve.solvers.mapping.bounds.pairs import no_core, too_wide
from nmsolve.solvers.mapping.bounds.partition_placement import (
    partition_placement_bounds,
    refuses_partition_placement,
)
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection
from nmsolve.solvers.mapping.bounds.slots import refuses_slots, slots_bounds
from nmsolve.solvers.mapping.bounds.split.bound import refuses_split, split_bounds
from nmsolve.solvers.mapping.bounds.spread.bound import spread_bounds
from nmsolve.solvers.mapping.bounds.spread.form import refuses_spread
from nmsolve.solvers.mapping.bounds.step_ceiling import refuses_step_ceiling, step_ceiling_bounds
from nmsolve.solvers.mapping.bounds.step_load import refuses_step_load, step_load_bounds
from nmsolve.solvers.mapping.bounds.step_power import refuses_step_power, step_power_bounds
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds


@dataclass(frozen=True)
class BoundEngine:
    """A bound that takes part in a run.

    Attributes
    ----------
    refuses : why it cannot take a problem, in words, or None
    find : ever better bounds on a problem, the best mapping so far being the aim
    predicts : its ascent begins with predicted multipliers
    """

    name: str
    refuses: Takes[MappingProblem]
    find: Callable[[MappingProblem, BoundContext], Iterable[Bound]]
    finds: str = "bounds"
    predicts: bool = False

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise every bound that is found, as far as its certificate proves it."""
        bound_context = BoundContext.of(context)
        if self.predicts:
            bound_context = guided(bound_context, self.name, context.note)
        for bound in self.find(problem, bound_context):
            claim = claimable(problem, bound)
            if claim is not None:
                context.raise_bound(claim)


def _neighbours(problem: MappingProblem, bound_context: BoundContext) -> list[Bound]:
    """Neighbour counting for pairwise objectives; the fan-out bound for net objectives and large graphs. Any size."""
    large = problem.graph.on_disk or problem.graph.m > MOST_EDGES
    find = fan_out_bound if problem.uses_nets or large else neighbour_bound
    return [find(problem, bound_context.should_stop)]


NeighbourCounting = partial(
    BoundEngine, "star", takes(f"pairs trees reach disk {LIMITS}", too_wide, no_core), _neighbours
)
Projection = partial(BoundEngine, "projection", refuses_projection, projection_bounds)
Split = partial(BoundEngine, "split", refuses_split, split_bounds)
Spread = partial(BoundEngine, "spread", refuses_spread, spread_bounds)
PartitionPlacement = partial(
    BoundEngine, "joint", refuses_partition_placement, partition_placement_bounds, predicts=True
)
Parts = partial(BoundEngine, "parts", refuses_parts, parts_bounds, predicts=True)
TreeParts = partial(BoundEngine, "tree-parts", refuses_tree_parts, tree_parts_bounds)
Slots = partial(BoundEngine, "slots", refuses_slots, slots_bounds)
LinkLoad = partial(BoundEngine, "link-load", refuses_link_load, link_load_bounds)
Exchange = partial(BoundEngine, "exchange", refuses_exchange, exchange_bounds)
StepCeiling = partial(BoundEngine, "step-ceiling", refuses_step_ceiling, step_ceiling_bounds)
StepLoad = partial(BoundEngine, "step-load", refuses_step_load, step_load_bounds)
StepPower = partial(BoundEngine, "step-power", refuses_step_power, step_power_bounds)
CoreTraffic = partial(BoundEngine, "cover", refuses_core_traffic, core_traffic_bounds, predicts=True)
