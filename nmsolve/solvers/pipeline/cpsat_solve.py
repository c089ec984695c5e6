"""Running CP-SAT on a pipeline model, with the one step of its presolve left out that is known to err on such numbers.

Times are whole numbers up to 2^40. CP-SAT 9.15 adds up coefficients of Boolean variables in 32 bits where it removes
conditions of rows (or-tools issue 5293, repaired after that release), and then calls plans optimal that are not. With
``presolve_inclusion_work_limit = 0`` that step does not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.solve import Outcome
from nmsolve.solvers.mapping.exact.listen import Tell, run_and_listen
from nmsolve.solvers.pipeline.cpsat import PipelineModel


def solve(
    built: PipelineModel,
    *,
    seed: int = 0,
    workers: int = 1,
    seconds: float = np.inf,
    effort: float = np.inf,
    level: int = 1,
    should_stop: Callable[[], bool] = lambda: False,
    on_plan: Callable[[IntArray], object] = lambda plan: None,
    on_bound: Callable[[float], object] = lambda bound: None,
) -> Outcome:
    """Solve ``built``; ``on_plan`` (packed) and ``on_bound`` (model objective) are called from the caller's thread.

    ``effort`` is a limit in CP-SAT's own measure of work, about CPU seconds; ``level`` how much of the model its linear
    relaxation holds (1 or 2). ``core`` of the outcome is a packed plan.

    Raises
    ------
    BackendError : CP-SAT found the model invalid or failed inside
    """
    import ortools
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    if np.isfinite(seconds):
        solver.parameters.max_time_in_seconds = max(0.01, seconds)
    if np.isfinite(effort):
        solver.parameters.max_deterministic_time = effort
    solver.parameters.num_workers = max(1, workers)
    solver.parameters.linearization_level = level
    solver.parameters.random_seed = seed % (2**31)
    solver.parameters.presolve_inclusion_work_limit = 0

    class Listener(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def __init__(self, tell: Tell) -> None:
            super().__init__()
            self.tell = tell

        def on_solution_callback(self) -> None:
            self.tell("mapping", built.mapping(self.boolean_value))

    def work(tell: Tell) -> None:
        solver.best_bound_callback = lambda bound: tell("bound", bound)
        solver.solve(built.model, Listener(tell))

    run_and_listen(
        work, stop=solver.stop_search, should_stop=should_stop, on_mapping=on_plan, on_bound=on_bound
    )
    status: str = solver.status_name(solver.response_proto.status)
    if status == "MODEL_INVALID":
        raise BackendError(f"CP-SAT refuses the model: {built.model.validate()}")
    plan: Any = None
    bound = None
    if status in ("OPTIMAL", "FEASIBLE"):  # under any other status these read as 0
        plan, bound = built.mapping(solver.boolean_value), solver.best_objective_bound
    return Outcome(status, bound, plan, ortools.__version__)
