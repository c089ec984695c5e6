"""Running CP-SAT on a pipeline model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.solve import Outcome
from nmsolve.solvers.mapping.exact.listen import Tell, run_and_listen
from nmsolve.solvers.pipeline.cpsat import PipelineModel
from nmsolve.solvers.search.cpsat import new_solver


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

    solver = new_solver(seconds, workers, seed, effort)
    solver.parameters.linearization_level = level

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
