"""Running CP-SAT: a thread solves, the caller's thread listens, asks whether to stop, and reads the end safely."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.model import MappingModel

#: Seconds between two looks at the queue and at ``should_stop``.
_LISTEN = 0.05


@dataclass(frozen=True)
class Outcome:
    """How a CP-SAT run ended.

    ``status``: ``OPTIMAL``, ``FEASIBLE``, ``INFEASIBLE`` or ``UNKNOWN``. ``bound`` is the best proven lower bound on
    the *model* objective or None; ``core`` the best mapping or None. Both are None under ``UNKNOWN`` unless a
    callback had reported them before, because CP-SAT then says 0 for either.
    """

    status: str
    bound: float | None
    core: IntArray | None
    version: str


def solve(
    built: MappingModel,
    *,
    seed: int,
    workers: int,
    seconds: float,
    should_stop: Callable[[], bool],
    on_mapping: Callable[[IntArray], object],
    on_bound: Callable[[float], object],
) -> Outcome:
    """Solve ``built``; ``on_mapping`` and ``on_bound`` (model objective) are called from the caller's thread.

    Raises
    ------
    BackendError : CP-SAT found the model invalid or failed inside
    """
    import ortools
    from ortools.sat.python import cp_model

    news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    class Listener(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            news.put(("mapping", built.mapping(self.boolean_value)))

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    solver.parameters.num_workers = max(1, workers)
    solver.parameters.random_seed = seed % (2**31)
    solver.best_bound_callback = lambda bound: news.put(("bound", bound))
    failure: list[Exception] = []

    def work() -> None:
        try:
            news.put(("end", solver.solve(built.model, Listener())))
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread below
            failure.append(error)
            news.put(("end", cp_model.UNKNOWN))

    thread = threading.Thread(target=work, name="cpsat", daemon=True)
    thread.start()
    core: IntArray | None = None
    bound: float | None = None
    while True:
        try:
            kind, what = news.get(timeout=_LISTEN)
        except queue.Empty:
            kind, what = "", None
        if kind == "mapping":
            core = what
            on_mapping(what)
        elif kind == "bound":
            bound = what if bound is None else max(bound, what)
            on_bound(bound)
        elif kind == "end":
            break
        if should_stop():
            solver.stop_search()
    thread.join()
    if failure:
        raise BackendError(f"CP-SAT failed: {failure[0]}")
    status = solver.status_name(what)
    if status == "MODEL_INVALID":
        raise BackendError(f"CP-SAT refuses the model: {built.model.validate()}")
    if status in ("OPTIMAL", "FEASIBLE"):  # under any other status these read as 0
        core, bound = built.mapping(solver.boolean_value), solver.best_objective_bound
    return Outcome(status, bound, core, ortools.__version__)
