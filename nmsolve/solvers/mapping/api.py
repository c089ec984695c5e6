"""The Python interface: a graph and a machine in, a result out. The command line calls nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nmsolve.hw.obey import require_own_routes
from nmsolve.model.bound import Result
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.mapping.memory_estimate import advice, search_bytes
from nmsolve.solvers.mapping.task import MappingTask
from nmsolve.solvers.run import Options
from nmsolve.solvers.run import solve as run
from nmsolve.solvers.search.incumbent import Observer
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
    from nmsolve.model.mapping.fit import require_fit

    limit = default_node_limit(graph, machine, balance)
    problem = MappingProblem(graph, machine, objective, tuple(constraints), limit, migration)
    require_fit(problem)
    require_scale(problem)
    return problem


def map(
    graph: LogicGraph,
    machine: Machine,
    *,
    time_limit: float = 60.0,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    objective: str = "hops",
    engines: Sequence[str] | None = None,
    constraints: Sequence[SideConstraint] = (),
    balance: float | None = None,
    warm_start: AnyArray | None = None,
    migration_budget: int | None = None,
    memory: int | None = None,
    scratch: ScratchPlace | None = None,
    observers: Sequence[Observer] = (),
    mip_solver: str = "highs",
) -> Result[IntArray]:
    """Map ``graph`` onto ``machine``. Return the best mapping found in the time given, and a bound that no mapping beats.

    Parameters
    ----------
    time_limit : wall seconds
    gap : stop once ``|objective - bound| / |objective|`` is proved to be no more than this
    seed : seed of all random choices
    workers : engines that run at the same time
    objective : one of :data:`nmsolve.model.mapping.objectives.OBJECTIVES` (docs/objectives.md)
    engines : names of the engines to run, in this order; chosen by the kind and size of the problem if not given
    constraints : pin, region, together, apart, forbid
    balance : no core holds more than ``ceil((1 + balance) * nodes / cores)`` nodes; where neither graph nor machine
        states a capacity, 0.03 (0 where there is a core for every node)
    warm_start : (nodes,) core of every node to start from; repaired if it breaks a rule
    migration_budget : most nodes that may be on another core than in ``warm_start``
    memory : most bytes that all processes together may hold (resident); the run ends before it holds more
    scratch : where to put what does not fit in memory, and whether to continue from what a killed run left there
    observers : called with every :class:`~nmsolve.model.bound.Event` as it happens
    mip_solver : the solver that Pyomo calls for the engine ``mip``

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
    started = time.monotonic()
    if migration_budget is not None and warm_start is None:
        raise InputError("a migration budget without a warm start", "", "the mapping to stay close to")
    migration = None
    if migration_budget is not None:
        migration = Migration.of(np.asarray(warm_start), migration_budget)
    problem = make_problem(
        graph, machine, objective=objective, constraints=constraints, balance=balance, migration=migration
    )
    return solve(
        problem,
        time_limit=time_limit,
        started=started,
        gap=gap,
        seed=seed,
        workers=workers,
        engines=engines,
        warm_start=warm_start,
        memory=memory,
        scratch=scratch,
        observers=observers,
        mip_solver=mip_solver,
    )


def solve(
    problem: MappingProblem,
    *,
    time_limit: float = 60.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    warm_start: AnyArray | None = None,
    memory: int | None = None,
    scratch: ScratchPlace | None = None,
    observers: Sequence[Observer] = (),
    mip_solver: str = "highs",
) -> Result[IntArray]:
    """Do the same as :func:`map` for a stated problem. ``started`` is the ``time.monotonic()`` from which the limit counts."""
    options = Options(time_limit, started, gap, seed, workers, engines, memory, scratch, observers)
    return solve_with(problem, options, warm_start, mip_solver)


def solve_with(
    problem: MappingProblem, options: Options, warm_start: AnyArray | None = None, mip_solver: str = "highs"
) -> Result[IntArray]:
    """Do the same with all options of a run, such as bounds that are known from before."""
    require_own_routes(problem)
    Memory(options.memory).require(search_bytes(problem, options.workers), advice(problem))
    return run(MappingTask(problem, warm_start, mip_solver), options)
