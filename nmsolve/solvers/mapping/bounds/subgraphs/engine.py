"""The subgraph bound as an engine of a run."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem


class Subgraphs:
    """Exactly solved small sets of nodes, stars and metric rows in one Lagrangian; the best on sparse traffic."""

    name = "subgraphs"
    finds = "bounds"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Net objectives, several nodes per core, tori, matrices, or more than 4,096 cores."""
        from nmsolve.solvers.mapping.bounds.subgraphs.form import refuses_form

        return refuses_form(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Raise ever better bounds until the ascent ends."""
        from nmsolve.solvers.mapping.bounds.subgraphs.bound import subgraph_bounds

        upper, stop = (lambda: context.incumbent()[1]), context.should_stop
        for bound in subgraph_bounds(problem, upper, stop, context.seed):
            context.raise_bound(bound)
