"""CP-SAT as an engine of the search: proves optima of small mappings, finds and bounds on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from nmsolve.hw.cost import uses_links
from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.errors import BackendError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.model import build
from nmsolve.solvers.mapping.exact.size import refusal
from nmsolve.solvers.search.cpsat import CpSatModel, solve


class CpSat:
    """Exact mapping by OR-Tools CP-SAT.

    An impossible problem is reported as a bound of ``inf`` with certificate status ``infeasible``.
    """

    name = "cpsat"
    finds = "both"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Problems above the limits of :func:`nmsolve.solvers.mapping.exact.size.refusal`."""
        return refusal(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Solve the model, forwarding every mapping and bound; CP-SAT's own status is the certificate."""
        start, _ = context.incumbent()
        if uses_links(problem) or problem.ceilings:
            from nmsolve.solvers.mapping.joint.cpsat import build as build_routed

            routed = build_routed(problem, free=False, start=start, bound=context.bound())
            run_model(routed, routed.scale, self.name, context, _worth(problem))
            return
        built = build(problem, start=start, bound=context.bound())
        run_model(built, built.data, self.name, context, _worth(problem))


def _worth(problem: MappingProblem) -> Worth:
    def worth(core: IntArray) -> float:
        return np.inf if broken_ceiling(problem, core) else objective_value(problem, core)

    return worth


#: Objective of a solution; inf if rounded rows let one through that breaks a ceiling.
Worth = Callable[[IntArray], float]


class Claim(Protocol):
    """From the model's objective to the problem's."""

    @property
    def exact(self) -> bool:
        """True if nothing was rounded."""

    def bound(self, model_bound: float) -> float:
        """Lower bound on the objective from one on the model's."""


def run_model(built: CpSatModel, claim: Claim, name: str, context: Context, worth: Worth) -> None:
    """Solve a built model and tell ``context`` what is found and proved, as engine ``name``.

    Raises
    ------
    BackendError : the model is invalid, or called infeasible although a solution is known
    """
    if context.should_stop():
        return
    start, _ = context.incumbent()

    def raise_to(value: float, status: str) -> None:
        context.raise_bound(Bound(value, name, certificate={"status": status, "seed": context.seed}))

    def on_bound(model_bound: float) -> None:
        raise_to(claim.bound(model_bound), "running")

    def on_solution(solution: IntArray) -> None:
        if np.isfinite(worth(solution)):
            context.offer(solution, "search")

    end = solve(
        built,
        seed=context.seed,
        workers=context.workers,
        seconds=context.time_left(),
        should_stop=context.should_stop,
        on_solution=on_solution,
        on_bound=on_bound,
    )
    if end.status == "INFEASIBLE":
        if start is not None:
            raise BackendError("CP-SAT calls the problem infeasible, but a mapping is known")
        value, status = np.inf, "infeasible"
    elif end.bound is None:
        return
    else:
        value, status = claim.bound(end.bound), end.status.lower()
        if end.status == "OPTIMAL" and end.core is not None and claim.exact:
            value = min(worth(end.core), context.incumbent()[1])
    certificate = {"status": status, "seed": context.seed, "version": end.version}
    context.raise_bound(Bound(value, name, certificate=certificate))
