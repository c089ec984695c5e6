"""The split bound as an engine of a run."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem


class Split:
    """Spectral, Gilmore-Lawler and distance rows in one Lagrangian, one node per core; the best on dense traffic."""

    name = "split"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Net objectives, several nodes per core, or more than 1,600 cores."""
        from nmsolve.solvers.mapping.bounds.split.bound import refuses_split

        return refuses_split(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.split.bound import split_bounds

        upper, stop = (lambda: context.incumbent()[1]), context.should_stop
        for bound in split_bounds(problem, upper, stop, context.time_left()):
            context.raise_bound(bound)
