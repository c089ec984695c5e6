"""The bounds as engines of a run: each raises what it proves as soon as it is proved."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem


class Star:
    """Star bound of pairwise objectives, fan-out bound of net objectives: milliseconds, any size."""

    name = "star"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """None unless the machine is too large for distances of all pairs."""
        from nmsolve.hw.cost import uses_nets
        from nmsolve.solvers.mapping.bounds.nets import refuses_nets
        from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs

        return refuses_nets(problem) if uses_nets(problem) else refuses_pairs(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise one bound."""
        from nmsolve.hw.cost import uses_nets
        from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
        from nmsolve.solvers.mapping.bounds.star import star_bound

        find = fan_out_bound if uses_nets(problem) else star_bound
        context.raise_bound(find(problem, context.should_stop))


class GilmoreLawler:
    """Gilmore-Lawler bound: about a second for 1,024 nodes on 1,024 cores."""

    name = "gilmore-lawler"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Net objectives, or more nodes x places than an assignment problem takes."""
        from nmsolve.solvers.mapping.bounds.gilmore_lawler import refuses_gilmore_lawler

        return refuses_gilmore_lawler(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise one bound."""
        from nmsolve.solvers.mapping.bounds.gilmore_lawler import gilmore_lawler_bound

        context.raise_bound(gilmore_lawler_bound(problem, context.should_stop))


class Projection:
    """Projection (eigenvalue) bound with tuned diagonal, one node per core; best on dense traffic."""

    name = "projection"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Net objectives, several nodes per core, or more than 2,048 cores."""
        from nmsolve.solvers.mapping.bounds.projection import refuses_projection

        return refuses_projection(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.projection import projection_bounds

        bounds = projection_bounds(problem, lambda: context.incumbent()[1], should_stop=context.should_stop)
        for bound in bounds:
            context.raise_bound(bound)


class Joint:
    """Eigenvalue bound for many nodes per core: parts not fixed, sizes free within the capacity."""

    name = "joint"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """One node per core, net objectives, distance matrices, over 1,024 cores, or room for all on one core."""
        from nmsolve.solvers.mapping.bounds.joint import refuses_joint

        if problem.one_per_core:
            return "one node per core: the projection bound is made for that"
        return refuses_joint(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.joint import joint_bounds

        upper, stop = (lambda: context.incumbent()[1]), context.should_stop
        seconds = context.time_left()
        for bound in joint_bounds(problem, upper, should_stop=stop, seed=context.seed, seconds=seconds):
            context.raise_bound(bound)


class Parts:
    """Eigenvalue bound on the traffic that must leave its core: any objective, loosely filled machines."""

    name = "parts"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """One node per core, room for everything on one core, or more than 4,096 cores."""
        from nmsolve.solvers.mapping.bounds.parts import refuses_parts

        return refuses_parts(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.parts import parts_bounds

        upper, stop = (lambda: context.incumbent()[1]), context.should_stop
        seconds = context.time_left()
        for bound in parts_bounds(problem, upper, should_stop=stop, seed=context.seed, seconds=seconds):
            context.raise_bound(bound)


class Cover:
    """Covering (Dantzig-Wolfe) bound on what every core must send and receive: up to 400 nodes, few on a core."""

    name = "cover"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """One node per core, loads of links, more than 400 nodes, or more than 12 on a core."""
        from nmsolve.solvers.mapping.bounds.cover import refuses_cover

        return refuses_cover(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.cover import cover_bounds

        for bound in cover_bounds(problem, lambda: context.incumbent()[1], context.should_stop):
            context.raise_bound(bound)
