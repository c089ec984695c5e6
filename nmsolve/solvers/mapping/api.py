"""The Python interface: a graph and a machine in, a result out. The command line calls nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np

from nmsolve.hw.obey import require_own_routes
from nmsolve.learn.memory.store import Memory as SolvedRuns
from nmsolve.model.bound import Bound, Result
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import require_fit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.bounding import Bounded, bounding
from nmsolve.solvers.mapping.memory_estimate import advice, search_bytes
from nmsolve.solvers.mapping.task import MappingTask
from nmsolve.solvers.run import Options, RunOptions
from nmsolve.solvers.run import solve as run
from nmsolve.solvers.search.memory import Memory


def make_problem(
    graph: LogicGraph,
    machine: Machine,
    *,
    objective: str = "hops",
    constraints: Sequence[SideConstraint] = (),
    balance: float | None = None,
    migration: Migration | None = None,
) -> MappingProblem:
    """State the problem; see :func:`map` for the arguments.

    Raises
    ------
    InputError : something is wrong with the arguments
    DoesNotFitError : the graph cannot fit, shown by counting
    """
    from nmsolve.hw.magnitude import require_scale

    limit = default_node_limit(graph, machine, balance)
    problem = MappingProblem(graph, machine, objective, tuple(constraints), limit, migration)
    require_fit(problem)
    require_scale(problem)
    return problem


def map(
    graph: LogicGraph,
    machine: Machine,
    *,
    objective: str = "hops",
    constraints: Sequence[SideConstraint] = (),
    balance: float | None = None,
    warm_start: AnyArray | None = None,
    migration_budget: int | None = None,
    mip_solver: str = "highs",
    allocate: str = "fixed",
    **options: Unpack[RunOptions],
) -> Result[IntArray]:
    """Map ``graph`` onto ``machine``. Return the best mapping found in the time given, and a bound that no mapping beats.

    Parameters
    ----------
    objective : one of :data:`nmsolve.model.mapping.objectives.OBJECTIVES` (docs/objectives.md)
    constraints : pin, region, together, apart, forbid
    balance : no core holds more than ``ceil((1 + balance) * nodes / cores)`` nodes; where neither graph nor machine
        states a capacity, 0.03 (0 where there is a core for every node)
    warm_start : (nodes,) core of every node to start from; repaired if it breaks a rule
    migration_budget : most nodes that may be on another core than in ``warm_start``
    mip_solver : the solver that Pyomo calls for the engine ``mip``
    allocate : who plans a run without ``engines``: ``fixed`` shares of time, or ``learned`` ones (docs/search.md)
    options : ``time_limit`` (60 s), ``gap``, ``seed``, ``workers``, ``engines``, ``memory``, ``scratch`` and ``observers``, as in
        :class:`nmsolve.solvers.run.Options`

    Returns
    -------
    Result
        ``solution`` (nodes,) int64 is the core of every node; every number was recomputed by the evaluator

    Raises
    ------
    InputError : an argument is wrong, or every chosen engine refuses the problem
    DoesNotFitError : the graph cannot fit, shown by counting

    Notes
    -----
    The first Ctrl-C ends the run with its best answer, the second raises KeyboardInterrupt.

    Examples
    --------
    A ring of four nodes on a mesh of four cores: every message needs one hop, and no mapping can do better.

    >>> import nmsolve
    >>> ring = nmsolve.LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    >>> result = nmsolve.map(ring, nmsolve.machine("mesh:2x2"), time_limit=10)
    >>> result.status, result.objective, result.bound
    ('optimal', 4.0, 4.0)
    """
    options.setdefault("started", time.monotonic())
    if migration_budget is not None and warm_start is None:
        raise InputError("a migration budget without a warm start", "", "the mapping to stay close to")
    migration = None
    if migration_budget is not None:
        migration = Migration.of(np.asarray(warm_start), migration_budget)
    problem = make_problem(
        graph, machine, objective=objective, constraints=constraints, balance=balance, migration=migration
    )
    return solve(problem, warm_start=warm_start, mip_solver=mip_solver, allocate=allocate, **options)


def solve(
    problem: MappingProblem,
    *,
    warm_start: AnyArray | None = None,
    mip_solver: str = "highs",
    allocate: str = "fixed",
    known: Sequence[Bound] = (),
    memory_of: Path | None = None,
    **options: Unpack[RunOptions],
) -> Result[IntArray]:
    """Do the same as :func:`map` for a stated problem.

    ``started`` is the ``time.monotonic()`` from which the limit counts. ``known`` are bounds from before: they count as far as
    they can be recomputed, else on their solver's word. ``memory_of`` is a store of solved runs (made if there is none): the run
    begins with its nearest relatives, and is kept there.

    Raises
    ------
    InputError, DoesNotFitError : as of :func:`map`
    """
    require_fit(problem)
    task = _admitted(problem, warm_start, options, mip_solver, allocate)
    if memory_of is None:
        return run(task, Options(**options, known=known, words=True))
    task.memory_of = SolvedRuns(memory_of)
    try:
        return run(task, Options(**options, known=known, words=True))
    finally:
        task.memory_of.close()


def bound_mapping(
    problem: MappingProblem, given: IntArray, *, known: Sequence[Bound] = (), **options: Unpack[RunOptions]
) -> Bounded[IntArray]:
    """Bound how far the ``given`` mapping (n,) is from the best one; it stays as it is (``nmsolve gap``).

    Parameters
    ----------
    known : bounds from before; those whose certificates can be recomputed count, the others are dropped
    options : as of :func:`solve`; ``engines`` are by default those of :meth:`.task.MappingTask.provers`

    Raises
    ------
    InputError : the mapping breaks a rule, or an argument is wrong
    """
    task = _admitted(problem, np.ascontiguousarray(given, np.int64), options)
    return bounding(task, Options(**options, known=known), problem.graph.name)


def _admitted(
    problem: MappingProblem,
    start: AnyArray | None,
    options: RunOptions,
    mip_solver: str = "highs",
    allocate: str = "fixed",
) -> MappingTask:
    """Return the task. InputError where a search cannot obey the machine's routes, or does not fit in memory."""
    require_own_routes(problem)
    Memory(options.get("memory")).require(search_bytes(problem, options.get("workers", 1)), advice(problem))
    return MappingTask(problem, start, mip_solver, allocate=allocate)
