"""The exact models of mapping as engines: they prove optima of small mappings, find and bound on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.model import build
from nmsolve.solvers.mapping.exact.size import refuses_exact
from nmsolve.solvers.search.exact import run_model
from nmsolve.solvers.search.rows import Built


class _Exact:
    """Exact mapping by one solver."""

    name: str
    solver: str
    finds = "both"
    refuses = refuses_exact

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Solve the model, forwarding mappings and bounds as the solver tells them."""

        def worth(core: IntArray) -> float:
            return np.inf if broken_ceiling(problem, core) else objective_value(problem, core)

        start, _ = context.incumbent()
        model = built(problem, self.solver == "cpsat", start=start, bound=context.bound())
        run_model(model, self.solver, self.name, context, worth)


class CpSat(_Exact):
    """Exact mapping by OR-Tools CP-SAT."""

    name = solver = "cpsat"


class Mip(_Exact):
    """Exact mapping by mixed-integer programming; ``solver`` is ``highs`` or the name of any that Pyomo finds."""

    name = "mip"

    def __init__(self, solver: str = "highs") -> None:
        self.solver = solver


def built(problem: MappingProblem, cpsat: bool, *, free: bool = False, **known: Any) -> Built:
    """The model in one of its twin forms; with links where the objective or a ceiling needs them, or ``free`` routes."""
    if free or problem.uses_links or problem.ceilings:
        from nmsolve.solvers.mapping.joint import model as routed

        return routed.build(problem, cpsat, free=free, **known)
    return build(problem, cpsat, **known)
