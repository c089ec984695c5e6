"""The Python interface: a graph and a machine in, a result out. The command line calls nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.hw.obey import require_own_routes
from nmsolve.model.bound import Bound, Result, gap
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons_fit import idle_limits
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.mapping.auto import automatic, chosen, least_seconds
from nmsolve.solvers.mapping.needs import advice, search_bytes
from nmsolve.solvers.mapping.referee import MappingReferee
from nmsolve.solvers.search.budget import Budget
from nmsolve.solvers.search.context import LocalContext, run_guarded
from nmsolve.solvers.search.ending import say_ending
from nmsolve.solvers.search.incumbent import Incumbent, Observer
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.portfolio import Portfolio

#: Part of the time limit, and most seconds, kept back to stop children and to score the answer.
RESERVE_PART, RESERVE = 0.03, 0.5
#: Most of the time limit kept back to bound the final placement.
PLACEMENT_PART = 0.1
#: Seconds per connection to read a graph on disk once and look at its messages, as measured on two cores.
PASS = 1e-7
#: Most of the time limit for making a warm start legal within a migration budget.
REPAIR_PART = 0.3
#: Below this many seconds a run starts with a first-fit mapping instead of ending with one where all else failed.
HURRY = 2.0


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
) -> Result:
    """Map ``graph`` onto ``machine``: the best mapping found in the time given, and a proven bound on any other.

    Parameters
    ----------
    time_limit : wall seconds
    gap : stop once ``|objective - bound| / |objective|`` is proved to be no more than this
    seed : seed of all random choices
    workers : engines that run at the same time
    objective : ``hops``, ``multicast-hops``, ``cut``, ``connectivity``, ``energy`` or ``max-link`` (docs/objectives.md)
    engines : names of the engines to run, in this order; chosen by the kind and size of the problem if not given
    constraints : pin, region, together, apart, forbid
    balance : no core holds more than ``ceil((1 + balance) * nodes / cores)`` nodes; where neither graph nor machine
        names a capacity, 0.03 (0 where there is a core for every node)
    warm_start : (nodes,) core of every node to start from; repaired if it breaks a rule
    migration_budget : at most so many nodes may be on another core than in ``warm_start``
    memory : most bytes that all processes together may hold (resident); the run ends before it holds more
    scratch : where to put what does not fit in memory, and whether to go on from what a killed run left there
    observers : called with every :class:`~nmsolve.model.bound.Event` as it happens
    mip_solver : the solver Pyomo uses for engine ``mip``

    Returns
    -------
    Result
        ``core`` is the core of every node; every number was recomputed by the evaluator

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
) -> Result:
    """:func:`map` for a stated problem. ``started`` is the ``time.monotonic()`` from which the limit counts."""
    _check(gap, workers, seed)
    require_own_routes(problem)
    held = Memory(memory)
    held.require(search_bytes(problem, workers), advice(problem))
    cpu = time.process_time()
    budget = Budget(time_limit, started=started, reserve=_reserve(problem, time_limit))
    with budget.ctrl_c(), held.watched(budget.starve):
        referee = MappingReferee(merge_together(problem))
        incumbent = Incumbent(referee, budget, observers, gap)
        incumbent.record(
            "start", "", f"{problem.n} nodes, {problem.cores} cores, {problem.objective}, seed {seed}"
        )
        idle = idle_limits(referee.problem)
        if idle is not None:
            incumbent.record("note", "search", idle)
        if warm_start is None and problem.migration is not None:
            warm_start = problem.migration.reference
        if warm_start is not None:
            _take_warm_start(referee, incumbent, np.asarray(warm_start), budget)

        def refused(name: str, status: str) -> None:
            incumbent.finish(name, status, 0.0)
            if engines is not None:
                incumbent.record("note", name, status)

        reduced = referee.problem
        if engines is None:
            steps = automatic(reduced, time_limit, workers, refused, mip_solver)
        else:
            steps = chosen(reduced, engines, refused, mip_solver)
        portfolio = Portfolio(
            referee, incumbent, budget, seed=seed, workers=workers, memory=held, scratch=scratch
        )
        wanted = engines is None or any(s.engine.finds != "bounds" for s in steps)
        # first fit knows neither migration budgets nor ceilings
        wanted = wanted and not referee.problem.limits_moves and not problem.ceilings
        if wanted and time_limit < HURRY:
            _first_fit(referee, incumbent, budget, seed)
        portfolio.run(steps)
        if wanted and incumbent.lifted is None and not incumbent.infeasible:
            _first_fit(referee, incumbent, budget, seed)
        held.settle()
        placement = _placement_bound(problem, incumbent, budget)
        return _result(problem, incumbent, budget, portfolio, placement, seed, cpu, held)


def _check(gap: float, workers: int, seed: int) -> None:
    if not gap >= 0:
        raise InputError(f"the gap is {gap}", "", "a number >= 0")
    if workers < 1:
        raise InputError(f"{workers} workers", "", "at least 1")
    if seed < 0:
        raise InputError(f"the seed is {seed}", "", "a whole number >= 0")


def _take_warm_start(referee: MappingReferee, incumbent: Incumbent, core: AnyArray, budget: Budget) -> None:
    """Offer the user's mapping, repaired if it breaks a rule; say which of both, or why neither.

    Raises
    ------
    InputError : it is no mapping of this graph at all
    DoesNotFitError : every mapping moves more nodes than the migration budget allows
    """
    original = referee.reduction.original
    if core.shape != (original.n,) or core.dtype.kind not in "iu":
        raise InputError(
            f"the warm start has shape {core.shape} and type {core.dtype}",
            "",
            f"({original.n},) core numbers",
        )
    if core.min() < 0 or core.max() >= original.cores:
        raise InputError("the warm start names a core that does not exist", "", f"0..{original.cores - 1}")
    core = core.astype(np.int64)
    complaint = referee.complaint(core)
    start = referee.reduction.restrict(core)
    if complaint is None:
        incumbent.offer("warm-start", start, "accepted")
        return
    from nmsolve.solvers.mapping.remapping import repaired_start

    repaired = repaired_start(referee.problem, start, REPAIR_PART * (budget.deadline - time.monotonic()))
    if repaired is not None and incumbent.offer("warm-start", repaired, "repaired"):
        moved = int((referee.lift(repaired) != core).sum())
        incumbent.record("note", "warm-start", f"repaired, {moved} nodes moved: {complaint}")
    else:
        incumbent.record("note", "warm-start", f"rejected: {complaint}")


def _first_fit(referee: MappingReferee, incumbent: Incumbent, budget: Budget, seed: int) -> None:
    """Run the fallback in this process, deadline or not: its first tries take no time worth mentioning."""
    from nmsolve.heuristics.mapping.first_fit import FirstFit

    cpu = time.process_time()
    context = LocalContext("first-fit", incumbent, budget, seed=seed, workers=1, deadline=budget.deadline)
    ending = run_guarded(FirstFit(), referee.problem, context)
    incumbent.finish("first-fit", ending.kind, time.process_time() - cpu)
    if ending.text:
        incumbent.record("note", "first-fit", ending.text)


def _reserve(problem: MappingProblem, time_limit: float) -> float:
    """Seconds kept back at the end of the run: for the bound of the placement, and to read a graph on disk once more."""
    needed = 0.0 if problem.one_per_core else 1.25 * least_seconds("projection", problem)
    needed += PASS * problem.graph.m if problem.graph.on_disk else 0.0
    return max(min(RESERVE, RESERVE_PART * time_limit), min(needed, PLACEMENT_PART * time_limit))


def _placement_bound(problem: MappingProblem, incumbent: Incumbent, budget: Budget) -> Bound | None:
    """Bound for the final parts where cores hold many nodes; None where it would say nothing or does not apply."""
    core = incumbent.lifted
    if core is None or problem.one_per_core or incumbent.optimal or uses_nets(problem) or uses_links(problem):
        return None
    if problem.objective == "cut":
        return None  # parts cost the same wherever they are
    from nmsolve.solvers.mapping.bounds import placement_bound

    end = max(budget.limit, time.monotonic() + RESERVE) - least_seconds("projection", problem)
    if problem.graph.on_disk and time.monotonic() + PASS * problem.graph.m > end:
        return None  # summing up the parts cannot be interrupted
    return placement_bound(problem, core, incumbent.objective, lambda: time.monotonic() >= end)


def _result(
    problem: MappingProblem,
    incumbent: Incumbent,
    budget: Budget,
    portfolio: Portfolio,
    placement: Bound | None,
    seed: int,
    cpu: float,
    memory: Memory,
) -> Result:
    core, objective = incumbent.lifted, incumbent.objective if incumbent.lifted is not None else None
    bound = incumbent.bound if incumbent.has_bound else None
    status, reason = say_ending(incumbent, budget, portfolio)
    return Result(
        status=status,
        stop_reason=reason,
        objective_name=problem.objective,
        core=core,
        objective=objective,
        bound=bound,
        gap=gap(objective, bound),
        bounds=incumbent.bounds + (() if placement is None else (placement,)),
        placement_bound=None if placement is None else placement.value,
        placement_gap=None if placement is None else gap(objective, placement.value),
        scores=_scores(problem, core),
        events=incumbent.events,
        engines=incumbent.shares(),
        wall_seconds=budget.elapsed(),
        cpu_seconds=time.process_time() - cpu + portfolio.child_cpu,
        seed=seed,
        memory_budget=memory.budget,
        memory_peak=memory.peak,
    )


def _scores(problem: MappingProblem, core: IntArray | None) -> dict[str, float]:
    if core is None:
        return {}
    from nmsolve.hw.scores import score

    return score(problem.graph, problem.machine, core)
