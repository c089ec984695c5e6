"""Exact models as engines: one run for all problems, whether CP-SAT or a MIP solver solves the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.search import cpsat, mip

#: Objective of a solution; inf if rounded rows let one through that breaks a rule.
Worth = Callable[[IntArray], float]


def within(context: Context) -> dict[str, Any]:
    """Return seed, workers, time and signal to stop of an engine, as solvers take them."""
    return {
        "seed": context.seed,
        "workers": context.workers,
        "seconds": context.time_left(),
        "should_stop": context.should_stop,
    }


def run_model(built: Any, solver: str, name: str, context: Context, worth: Worth) -> str:
    """Solve a built model and tell ``context`` what is found and proved, as engine ``name``; how it ended, in small letters.

    The solver's own status is the certificate. That there is no solution is reported as a bound of ``inf``.

    Parameters
    ----------
    built : as :mod:`.cpsat` or :mod:`.mip` takes it, with ``claim``, the :class:`.scaling.Scale` of its objective
    solver : ``cpsat``, ``highs``, or the name of a MIP solver that Pyomo finds

    Raises
    ------
    BackendError : the model is invalid, its best answer breaks a rule, or it is called infeasible although a solution is known
    """
    if context.should_stop():
        return "unknown"
    start, _ = context.incumbent()

    def raise_to(value: float, status: str, by: dict[str, str]) -> None:
        certificate = {"status": status, "seed": context.seed, **by}
        context.raise_bound(Bound(value, name, certificate=certificate))

    def on_solution(solution: IntArray) -> None:
        if np.isfinite(worth(solution)):
            context.offer(solution, "search")

    def on_bound(model_bound: float) -> None:
        raise_to(built.claim.bound(model_bound), "running", {})

    if solver == "cpsat":
        end = cpsat.solve(built, **within(context), on_solution=on_solution, on_bound=on_bound)
    else:
        end = mip.solve(built, solver, **within(context), on_solution=on_solution)
    status = end.status.lower()
    if status == "infeasible":
        if start is not None:
            who = end.by.get("solver", "CP-SAT")
            raise BackendError(f"{who} calls the problem infeasible, but a mapping is known")
        raise_to(np.inf, status, end.by)
    elif end.bound is not None:
        value = built.claim.bound(end.bound)
        if status == "optimal" and end.core is not None and built.claim.exact:
            own = worth(end.core)
            if not np.isfinite(own):
                raise BackendError(
                    "the best answer of an exact model breaks a rule: the model states another problem"
                )
            value = min(own, context.incumbent()[1])
        raise_to(value, status, end.by)
    return status
