"""Mixed-integer programming as an engine of the search: HiGHS, or any solver Pyomo finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.hw.cost import uses_links
from nmsolve.hw.scores import broken_ceiling
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.engine import Context
from nmsolve.model.errors import BackendError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.size import refusal
from nmsolve.solvers.mapping.mip.model import Solvable, build
from nmsolve.solvers.mapping.mip.solve import Outcome, solve_highs, solve_other

#: What a MIP solver's bound may be off by, in parts of it and of the model's unit: its feasibility tolerance. Subtracted
#: before rounding up.
TOLERANCE = 1e-6


class Mip:
    """Exact mapping by mixed-integer programming.

    ``solver`` is ``highs`` or the name of any MIP solver that Pyomo finds. An impossible problem is reported as
    a bound of ``inf`` with certificate status ``infeasible``.
    """

    name = "mip"
    finds = "both"

    def __init__(self, solver: str = "highs") -> None:
        self.solver = solver

    def refuses(self, problem: MappingProblem) -> str | None:
        """Problems above the limits of :func:`nmsolve.solvers.mapping.exact.size.refusal`."""
        return refusal(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Solve the model; mappings are forwarded as they come (HiGHS) or at the end (others), the bound at the end."""
        start, _ = context.incumbent()
        if uses_links(problem) or problem.ceilings:
            from nmsolve.solvers.mapping.joint.mip import build as build_routed

            built: Solvable = build_routed(
                problem, free=False, start=start, bound=context.bound(), scaled=True
            )
        else:
            built = build(problem, start=start, bound=context.bound(), scaled=True)
        run_model(built, self.solver, self.name, context, lambda core: broken_ceiling(problem, core) is None)


def run_model(
    built: Solvable, solver: str, name: str, context: Context, fits: Callable[[IntArray], bool]
) -> None:
    """Solve a built model and tell ``context`` what is found and proved, as engine ``name``.

    ``fits``: False for what rounded rows let through although it breaks a ceiling.

    Raises
    ------
    BackendError : the model is called infeasible although a solution is known
    """
    if context.should_stop():
        return
    start, _ = context.incumbent()

    def raise_to(value: float, status: str, by: str) -> None:
        certificate = {"status": status, "seed": context.seed, "solver": by}
        context.raise_bound(Bound(value, name, certificate=certificate))

    def safe(bound: float) -> float:
        return round_up((bound - TOLERANCE * max(1.0, abs(bound))) / built.unit, built.integral)

    def on_solution(solution: IntArray) -> None:
        if fits(solution):
            context.offer(solution, "search")

    end = _solved(built, solver, context, on_solution)
    if end.status == "infeasible":
        if start is not None:
            raise BackendError(f"{end.solver} calls the problem infeasible, but a mapping is known")
        raise_to(np.inf, "infeasible", end.solver)
    if end.core is not None:
        on_solution(end.core)
    if end.bound is not None:
        raise_to(safe(end.bound), end.status, end.solver)


def _solved(
    built: Solvable, solver: str, context: Context, on_solution: Callable[[IntArray], object]
) -> Outcome:
    """Solve the model. A row without variables that does not hold, as a ceiling on fixed costs, is no model to Pyomo: it then
    means what it says, that there is no solution."""
    from pyomo.common.errors import InfeasibleConstraintException

    try:
        if solver != "highs":
            return solve_other(built, solver, context.time_left())
        return solve_highs(
            built,
            seed=context.seed,
            workers=context.workers,
            seconds=context.time_left(),
            should_stop=context.should_stop,
            on_solution=on_solution,
            unit=built.unit,
        )
    except InfeasibleConstraintException:
        return Outcome("infeasible", None, None, solver)
