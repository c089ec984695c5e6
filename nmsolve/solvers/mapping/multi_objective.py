"""Several objectives of mappings (:mod:`nmsolve.solvers.multi_objective`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Ceilings, Result, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers import multi_objective

#: Solves one problem within a number of seconds, from a known mapping or None.
Solve = Callable[[MappingProblem, float, IntArray | None], Result[IntArray]]


@dataclass(frozen=True)
class MappingObjectives:
    """The objectives of a problem; ``solve`` minimises one of them."""

    problem: MappingProblem
    solve: Solve

    @property
    def recomputed(self) -> Collection[str]:
        """Methods with a re-check."""
        from nmsolve.check.mapping.recheck import RECHECKS

        return RECHECKS.keys()

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: IntArray | None
    ) -> tuple[Stage, Result[IntArray]]:
        """Minimise this objective under these ceilings and those that the problem has, from ``start`` (n,) or from scratch."""
        problem = replace(self.problem, objective=name, ceilings=(*self.problem.ceilings, *ceilings))
        result = self.solve(problem, seconds, start)
        return Stage(name, problem.ceilings, problem.hash, result.bounds), result

    def value(self, name: str, solution: IntArray) -> float:
        """Return the objective ``name`` of the mapping ``solution`` (n,), by the evaluator."""
        return objective_value(replace(self.problem, objective=name, ceilings=()), solution)


def objective_names(text: str, where: str = "--objective") -> tuple[str, ...]:
    """Parse ``hops,max-link`` -> names. InputError for an unknown or repeated one, or one that must stand alone."""
    names = multi_objective.objective_names(text, OBJECTIVES, where)
    alone = [name for name in names if OBJECTIVES[name].alone]
    if alone and len(names) > 1:
        raise InputError(
            f"objectives {text!r} combine {alone[0]} with others", where, f"{alone[0]} as the only objective"
        )
    return names
