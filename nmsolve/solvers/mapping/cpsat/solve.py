"""Running CP-SAT: mappings and bounds as they come, and an end that is read only behind its status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nmsolve.model.errors import BackendError
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.listen import Tell, run_and_listen
from nmsolve.solvers.search.cpsat import new_solver


class CpSatModel(Protocol):
    """What the solver needs of a built model."""

    @property
    def model(self) -> Any:
        """The ``cp_model.CpModel``."""

    def mapping(self, value: Any) -> IntArray:
        """A solution; ``value(x)`` tells the value of a Boolean variable."""


@dataclass(frozen=True)
class Outcome:
    """How a CP-SAT run ended.

    ``status``: ``OPTIMAL``, ``FEASIBLE``, ``INFEASIBLE`` or ``UNKNOWN``. ``bound`` is the best proven lower bound on
    the *model* objective, ``core`` the best mapping; both are None unless a mapping was found, because CP-SAT then
    says 0 for either (bounds proven on the way were reported by ``on_bound``).
    """

    status: str
    bound: float | None
    core: IntArray | None
    version: str


def solve(
    built: CpSatModel,
    *,
    seed: int,
    workers: int,
    seconds: float,
    should_stop: Callable[[], bool],
    on_mapping: Callable[[IntArray], object],
    on_bound: Callable[[float], object],
    linear: bool = True,
    effort: float = np.inf,
) -> Outcome:
    """Solve ``built``; ``on_mapping`` and ``on_bound`` (model objective) are called from the caller's thread.

    ``linear``: False leaves linear relaxations out, which is faster where they say nothing. ``effort``: a limit in CP-SAT's own
    measure of work, about CPU seconds, which does not depend on what else the machine does.

    Raises
    ------
    BackendError : CP-SAT found the model invalid or failed inside
    """
    import ortools
    from ortools.sat.python import cp_model

    solver = new_solver(seconds, workers, seed, effort)
    if not linear:
        solver.parameters.linearization_level = 0

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
        work, stop=solver.stop_search, should_stop=should_stop, on_mapping=on_mapping, on_bound=on_bound
    )
    status = solver.status_name(solver.response_proto.status)
    if status == "MODEL_INVALID":
        raise BackendError(f"CP-SAT refuses the model: {built.model.validate()}")
    core, bound = None, None
    if status in ("OPTIMAL", "FEASIBLE"):  # under any other status these read as 0
        core, bound = built.mapping(solver.boolean_value), solver.best_objective_bound
    return Outcome(status, bound, core, ortools.__version__)
