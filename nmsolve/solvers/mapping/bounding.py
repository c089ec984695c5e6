"""Raise the bound of a given mapping, which stays as it is (``nmsolve gap``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.hw.obey import require_own_routes
from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.bounding import Bounded
from nmsolve.solvers.bounding import bounding as bound_answer
from nmsolve.solvers.mapping.memory_estimate import advice, search_bytes
from nmsolve.solvers.mapping.task import MappingTask
from nmsolve.solvers.run import Options
from nmsolve.solvers.search.incumbent import Observer
from nmsolve.solvers.search.memory import Memory


def bounding(
    problem: MappingProblem,
    core: IntArray,
    *,
    time_limit: float = 300.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    memory: int | None = None,
    observers: Sequence[Observer] = (),
    known: Sequence[Bound] = (),
) -> Bounded[IntArray]:
    """Run the engines that prove bounds, the mapping being known from the start.

    Parameters
    ----------
    core : (n,) the mapping; it must keep every rule of ``problem``
    engines : names of the engines to run; by default those of :meth:`.task.MappingTask.provers`
    known : bounds from before; those whose certificates can be recomputed count, the others are dropped

    Raises
    ------
    InputError : the mapping breaks a rule, or an argument is wrong (see :func:`nmsolve.solvers.mapping.api.solve`)
    """
    options = Options(time_limit, started, gap, seed, workers, engines, memory, None, observers, known)
    require_own_routes(problem)
    Memory(memory).require(search_bytes(problem, workers), advice(problem))
    task = MappingTask(problem, np.ascontiguousarray(core, np.int64))
    return bound_answer(task, options, problem.graph.name)
