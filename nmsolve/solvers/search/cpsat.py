"""Running CP-SAT: solutions and bounds as they come, and an end that is read only behind its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.listen import Outcome, Tell, run_and_listen
from nmsolve.solvers.search.rows import Built


def new_solver(seconds: float = np.inf, workers: int = 1, seed: int = 0, effort: float = np.inf) -> Any:
    """A ``cp_model.CpSolver`` with limits in wall seconds and in CP-SAT's own measure of work (``effort``, about CPU seconds).

    One step of its presolve is left out: CP-SAT 9.15 adds up coefficients of Boolean variables in 32 bits where it removes
    conditions of rows (or-tools issue 5293, repaired after that release), and then calls solutions optimal that are not if the
    sum is beyond 2^31. With ``presolve_inclusion_work_limit = 0`` that step does not run.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    if np.isfinite(seconds):
        parameters.max_time_in_seconds = max(0.01, seconds)
    if np.isfinite(effort):
        parameters.max_deterministic_time = effort
    parameters.num_workers = max(1, workers)
    parameters.random_seed = seed % 2**31
    parameters.presolve_inclusion_work_limit = 0
    return solver


def decide(solver: Any, model: Any, should_stop: Callable[[], bool]) -> str:
    """Run ``solver`` on a model without an objective; the status. In a thread, since signals reach no native call."""
    run_and_listen(
        lambda tell: solver.solve(model), stop=solver.stop_search, should_stop=should_stop,
        on_solution=lambda solution: None, on_bound=lambda bound: None,
    )  # fmt: skip
    return str(solver.status_name(solver.response_proto.status))


def solve(
    built: Built,
    *,
    seed: int = 0,
    workers: int = 1,
    seconds: float = np.inf,
    should_stop: Callable[[], bool] = lambda: False,
    on_solution: Callable[[IntArray], object] = lambda solution: None,
    on_bound: Callable[[float], object] = lambda bound: None,
    effort: float = np.inf,
    level: int | None = None,
) -> Outcome:
    """Solve ``built``; ``on_solution`` and ``on_bound`` (model objective) are called from the caller's thread.

    ``effort``: a limit in CP-SAT's own measure of work, about CPU seconds, which does not depend on what else the machine does.
    ``level``: how much of the model its linear relaxation holds, None: what the model says; 0: none, which is faster where it
    says nothing.

    Raises
    ------
    BackendError : CP-SAT found the model invalid or failed inside
    """
    import ortools
    from ortools.sat.python import cp_model

    solver = new_solver(seconds, workers, seed, effort)
    solver.parameters.linearization_level = built.level if level is None else level
    for name, setting in built.flags.items():
        setattr(solver.parameters, name, setting)

    class Listener(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def __init__(self, tell: Tell) -> None:
            super().__init__()
            self.tell = tell

        def on_solution_callback(self) -> None:
            self.tell("solution", _read(built, self))

    def work(tell: Tell) -> None:
        solver.best_bound_callback = lambda bound: tell("bound", bound)
        solver.solve(built.model, Listener(tell))

    run_and_listen(
        work, stop=solver.stop_search, should_stop=should_stop, on_solution=on_solution, on_bound=on_bound
    )
    status = solver.status_name(solver.response_proto.status)
    if status == "MODEL_INVALID":
        raise BackendError(f"CP-SAT refuses the model: {built.model.validate()}")
    core, bound = None, None
    if status in ("OPTIMAL", "FEASIBLE"):  # under any other status these read as 0
        core, bound = _read(built, solver), solver.best_objective_bound
    return Outcome(status, bound, core, {"version": ortools.__version__})


def _read(built: Built, solved: Any) -> IntArray:
    """Return a solution of a solver or a callback as engines offer it."""
    return built.mapping(solved.boolean_value) if built.numbers is None else built.numbers(solved.value)
