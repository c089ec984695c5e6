"""The bounds on net objectives (multicast hops, connectivity, multicast energy) small partitions and link loads as engines."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem


class TreeParts:
    """Eigenvalue bound on the cores that messages must reach, with a weight for every terminal."""

    name = "tree-parts"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Pairwise objectives, one node per core, room for everything on one core, or more than 4,096 cores."""
        from nmsolve.solvers.mapping.bounds.trees_parts import refuses_tree_parts

        return refuses_tree_parts(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.trees_parts import tree_parts_bounds

        bounds = tree_parts_bounds(
            problem,
            lambda: context.incumbent()[1],
            should_stop=context.should_stop,
            seed=context.seed,
            seconds=context.time_left(),
            core=context.incumbent()[0],
        )
        for bound in bounds:
            context.raise_bound(bound)


class Slots:
    """Split bound on places instead of cores: small partitions and joint problems, and trees with one node per core."""

    name = "slots"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Too many places (cores x nodes per core), or one node per core and paid edge by edge."""
        from nmsolve.solvers.mapping.bounds.partition import refuses_slots

        return refuses_slots(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.partition import slots_bounds

        upper, stop = (lambda: context.incumbent()[1]), context.should_stop
        for bound in slots_bounds(problem, upper, stop, context.time_left(), context.incumbent()[0]):
            context.raise_bound(bound)


class LinkLoad:
    """Bound on the load of the hottest link, from bounds on the hops and on the traffic between halves of the board."""

    name = "link-load"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Objectives that are sums."""
        from nmsolve.solvers.mapping.bounds.link_load import refuses_link_load

        return refuses_link_load(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until all ascents end."""
        from nmsolve.solvers.mapping.bounds.link_load import link_load_bounds

        core = context.incumbent()[0]
        for bound in link_load_bounds(problem, core, context.should_stop, context.time_left()):
            context.raise_bound(bound)
