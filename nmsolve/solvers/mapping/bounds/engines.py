"""The bounds as engines of a run: each raises what it proves as soon as it is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from nmsolve.hw.cost import uses_nets
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.claim import claimable
from nmsolve.solvers.mapping.bounds.core_traffic import core_traffic_bounds, refuses_core_traffic
from nmsolve.solvers.mapping.bounds.exchange import exchange_bounds, refuses_exchange
from nmsolve.solvers.mapping.bounds.gilmore_lawler import gilmore_lawler_bound, refuses_gilmore_lawler
from nmsolve.solvers.mapping.bounds.joint import joint_bounds, refuses_joint
from nmsolve.solvers.mapping.bounds.link_load import link_load_bounds, refuses_link_load
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound, refuses_nets
from nmsolve.solvers.mapping.bounds.pairs import MOST_EDGES, refuses_pairs
from nmsolve.solvers.mapping.bounds.partition import refuses_slots, slots_bounds
from nmsolve.solvers.mapping.bounds.parts import parts_bounds, refuses_parts
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection
from nmsolve.solvers.mapping.bounds.split.bound import refuses_split, split_bounds
from nmsolve.solvers.mapping.bounds.subgraphs.bound import subgraph_bounds
from nmsolve.solvers.mapping.bounds.subgraphs.form import refuses_form
from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts, tree_parts_bounds


@dataclass(frozen=True)
class BoundEngine:
    """A bound that takes part in a run.

    Attributes
    ----------
    refuses : why it cannot take a problem, in words, or None
    find : ever better bounds on a problem, the best mapping so far being the aim
    """

    name: str
    refuses: Callable[[MappingProblem], str | None]
    find: Callable[[MappingProblem, Context], Iterable[Bound]]
    finds: str = "bounds"

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise every bound that is found, as far as its certificate proves it."""
        for bound in self.find(problem, context):
            claim = claimable(problem, bound)
            if claim is not None:
                context.raise_bound(claim)


def _upper(context: Context) -> Callable[[], float]:
    """What the best mapping costs whenever asked."""
    return lambda: context.incumbent()[1]


def _refuses_neighbours(problem: MappingProblem) -> str | None:
    return refuses_nets(problem) if uses_nets(problem) else refuses_pairs(problem)


def _neighbours(problem: MappingProblem, context: Context) -> list[Bound]:
    """Neighbour counting for pairwise objectives; the fan-out bound for net objectives and large graphs. Any size."""
    large = problem.graph.on_disk or problem.graph.m > MOST_EDGES
    find = fan_out_bound if uses_nets(problem) or large else neighbour_bound
    return [find(problem, context.should_stop)]


def _gilmore_lawler(problem: MappingProblem, context: Context) -> list[Bound]:
    """About a second for 1,024 nodes on 1,024 cores."""
    return [gilmore_lawler_bound(problem, context.should_stop)]


def _projection(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return projection_bounds(problem, _upper(context), should_stop=context.should_stop)


def _split(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return split_bounds(problem, _upper(context), context.should_stop, context.time_left())


def _subgraphs(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return subgraph_bounds(problem, _upper(context), context.should_stop, context.seed)


def _refuses_joint(problem: MappingProblem) -> str | None:
    if problem.one_per_core:
        return "one node per core: the projection bound is made for that"
    return refuses_joint(problem)


def _climb(
    bounds: Callable[..., Iterable[Bound]], problem: MappingProblem, context: Context
) -> Iterable[Bound]:
    """Eigenvalue bounds by one ascent each."""
    stop, seconds = context.should_stop, context.time_left()
    return bounds(problem, _upper(context), should_stop=stop, seed=context.seed, seconds=seconds)


def _tree_parts(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return tree_parts_bounds(
        problem,
        _upper(context),
        should_stop=context.should_stop,
        seed=context.seed,
        seconds=context.time_left(),
        core=context.incumbent()[0],
    )


def _slots(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    core = context.incumbent()[0]
    return slots_bounds(problem, _upper(context), context.should_stop, context.time_left(), core)


def _link_load(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return link_load_bounds(problem, context.incumbent()[0], context.should_stop, context.time_left())


def _exchange(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return exchange_bounds(problem, context.incumbent()[0], context.should_stop, context.time_left())


def _core_traffic(problem: MappingProblem, context: Context) -> Iterable[Bound]:
    return core_traffic_bounds(problem, _upper(context), context.should_stop)


NeighbourCounting = partial(BoundEngine, "star", _refuses_neighbours, _neighbours)
GilmoreLawler = partial(BoundEngine, "gilmore-lawler", refuses_gilmore_lawler, _gilmore_lawler)
Projection = partial(BoundEngine, "projection", refuses_projection, _projection)
Split = partial(BoundEngine, "split", refuses_split, _split)
Subgraphs = partial(BoundEngine, "subgraphs", refuses_form, _subgraphs)
Joint = partial(BoundEngine, "joint", _refuses_joint, partial(_climb, joint_bounds))
Parts = partial(BoundEngine, "parts", refuses_parts, partial(_climb, parts_bounds))
TreeParts = partial(BoundEngine, "tree-parts", refuses_tree_parts, _tree_parts)
Slots = partial(BoundEngine, "slots", refuses_slots, _slots)
LinkLoad = partial(BoundEngine, "link-load", refuses_link_load, _link_load)
Exchange = partial(BoundEngine, "exchange", refuses_exchange, _exchange)
CoreTraffic = partial(BoundEngine, "cover", refuses_core_traffic, _core_traffic)
