"""Mapping as a task: warm starts before the search, first fit where all else failed, a bound for the placement after it."""

from __future__ import annotations

import time
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from nmsolve.hw.scores import score
from nmsolve.model import clock
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.axons_fit import idle_limits
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.stop import Stop
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.mapping.auto import (
    EXACT_CORES,
    EXACT_NODES,
    automatic,
    chosen,
    least_seconds,
    outdone,
    with_automatic,
)
from nmsolve.solvers.mapping.checker import MappingChecker
from nmsolve.solvers.mapping.hints import Hints
from nmsolve.solvers.mapping.registry import REGISTRY
from nmsolve.solvers.run import Run, Task
from nmsolve.solvers.search.context import LocalContext, run_guarded
from nmsolve.solvers.search.entries import provers
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.portfolio import Step

#: Most of the time limit kept back to bound the final placement.
PLACEMENT_PART = 0.1
#: Seconds per connection to read a graph on disk once and look at its messages, as measured on two cores.
PASS = 1e-7
#: Most of the time limit for making a warm start legal within a migration budget.
REPAIR_PART = 0.3
#: A bound that needs more than this part of the time before it says anything is not begun where the mapping is given.
MOST = 0.5
#: Seconds after a signal in which the placement may still be bounded.
AFTER_SIGNAL = 0.3
#: Below this many seconds a run starts with a first-fit mapping instead of ending with one where all else failed.
HURRY = 2.0
#: Connections up to which a plan and its first answer take less than a second.
QUICK_EDGES = 200_000


class MappingTask(Task[IntArray]):
    """Solutions are (n,) core numbers.

    Parameters
    ----------
    warm_start : (n,) core of every node to start from, or None
    mip_solver : the solver Pyomo uses for engine ``mip``
    """

    checker: MappingChecker
    registry = REGISTRY
    methods = MappingProxyType({"m1": "m1-policy", "m2": "m2"})

    def __init__(
        self,
        problem: MappingProblem,
        warm_start: AnyArray | None = None,
        mip_solver: str = "highs",
    ) -> None:
        self.problem, self.objective, self.mip_solver = problem, problem.objective, mip_solver
        self.checker = MappingChecker(merge_together(problem))
        if warm_start is None and problem.migration is not None:
            warm_start = problem.migration.reference
        self.first = None if warm_start is None else np.asarray(warm_start)

    def words(self, seed: int) -> str:
        """Return sizes, objective and seed."""
        return f"{self.problem.n} nodes, {self.problem.cores} cores, {self.problem.objective}, seed {seed}"

    def reserve(self, time_limit: float) -> float:
        """Return seconds for the bound of the placement, and to read a graph on disk once more."""
        problem = self.problem
        needed = 0.0 if problem.one_per_core else 1.25 * least_seconds("projection", problem)
        needed += PASS * problem.graph.m if problem.graph.on_disk else 0.0
        return min(needed, PLACEMENT_PART * time_limit)

    def start(self, run: Run) -> list[Step]:
        """Take the warm start; the plan is chosen by kind and size of the problem, or by names."""
        incumbent, options, reduced = run.incumbent, run.options, self.checker.problem
        idle = idle_limits(reduced)
        if idle is not None:
            incumbent.record("note", "search", idle)
        if self.first is not None:
            _take_warm_start(self.checker, incumbent, self.first, run.budget)

        def refused(name: str, status: str) -> None:
            incumbent.finish(name, status, 0.0)
            if options.engines is not None:
                incumbent.record("note", name, status)

        if (
            options.engines is None
            and run.budget.over()
            and reduced.graph.m > QUICK_EDGES
            and self._may_fit(run, [])
        ):
            incumbent.record("note", "search", "loading took all of the time: first fit runs alone")
            steps = []  # a plan takes longer
        elif options.engines is None:
            steps = automatic(reduced, options.time_limit, options.workers, refused)
        elif "auto" in options.engines:
            steps = with_automatic(reduced, options.engines, options.time_limit, options.workers, refused)
        else:
            steps = chosen(reduced, options.engines, refused)
        if self.mip_solver != "highs":
            mip = REGISTRY["mip"].make()
            mip.solver = self.mip_solver
            steps = [replace(step, engine=mip) if step.engine.name == "mip" else step for step in steps]
        if options.time_limit < HURRY and self._may_fit(run, steps):
            _first_fit(self.checker, incumbent, run.budget, options.seed)
        return steps

    def _may_fit(self, run: Run, steps: list[Step]) -> bool:
        """Return True if any mapping is wanted, and first fit keeps the rules: it knows no migration budgets and no ceilings."""
        if run.options.method is not None:
            return False
        wanted = run.options.engines is None or any(s.engine.finds != "bounds" for s in steps)
        return wanted and not self.checker.problem.limits_moves and not self.problem.ceilings

    def finish(self, run: Run) -> Bound | None:
        """First fit where there is no mapping yet; the bound of the placement.

        First fit runs where a solver said that there is no mapping, too: CP-SAT 9.15 says so of a few problems that have one
        (their coefficients are near 10^13).
        """
        incumbent = run.incumbent
        if incumbent.lifted is None and self._may_fit(run, run.steps):
            _first_fit(self.checker, incumbent, run.budget, run.options.seed)
        run.memory.settle()
        bound = _placement_bound(self.problem, incumbent, run.budget)
        return bound

    def answer(self, lifted: IntArray) -> tuple[IntArray, dict[str, float]]:
        """Return the mapping (n,) and all its scores."""
        return lifted, score(
            self.problem.graph, self.problem.machine, lifted, self.problem.terms, self.problem.turns
        )

    def so_far(self, lifted: IntArray) -> tuple[IntArray, dict[str, float]]:
        """Return the mapping (n,) alone: the scores of a large one take seconds."""
        return lifted, {}

    def provers(self, seconds: float) -> list[str]:
        """Return bounds as registered, then exact engines where they have a chance to prove something (as in automatic mode).

        Raises
        ------
        InputError : there are none
        """
        problem = self.checker.problem
        small = problem.free_nodes <= EXACT_NODES and problem.cores <= EXACT_CORES

        def may(name: str) -> bool:
            return outdone(name, problem) is None and least_seconds(name, problem) <= MOST * seconds

        names = provers(REGISTRY, problem, ("bounds", "both") if small else ("bounds",), may)
        if not names:
            raise InputError("no engine can prove bounds for it", problem.graph.name, "a smaller machine")
        return names

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """By the second implementation, or by the package that the bound is from; placement bounds for the parts of the first
        mapping."""
        from nmsolve.check.mapping.recheck import check_bound

        return check_bound(self.problem, bound, self.first, seconds=seconds, hints=Hints)


def _take_warm_start(checker: MappingChecker, incumbent: Incumbent, core: AnyArray, budget: Stop) -> None:
    """Offer the user's mapping, repaired if it breaks a rule; say which of both, or why neither.

    Raises
    ------
    InputError : it is not a mapping of this graph at all
    DoesNotFitError : every mapping moves more nodes than the migration budget allows
    """
    original = checker.reduction.original
    if core.shape != (original.n,) or core.dtype.kind not in "iu":
        raise InputError(
            f"the warm start has shape {core.shape} and type {core.dtype}",
            "",
            f"({original.n},) core numbers",
        )
    if core.min() < 0 or core.max() >= original.cores:
        raise InputError("the warm start names a core that does not exist", "", f"0..{original.cores - 1}")
    core = core.astype(np.int64)
    complaint = checker.complaint(core)
    start = checker.reduction.restrict(core)
    if complaint is None:
        incumbent.offer("warm-start", start, "accepted")
        return
    from nmsolve.solvers.mapping.remapping import repaired_start

    repaired = repaired_start(checker.problem, start, REPAIR_PART * (budget.deadline - clock.now()))
    if repaired is not None and incumbent.offer("warm-start", repaired, "repaired"):
        moved = int((checker.lift(repaired) != core).sum())
        incumbent.record("note", "warm-start", f"repaired, {moved} nodes moved: {complaint}")
    else:
        incumbent.record("note", "warm-start", f"rejected: {complaint}")


def _first_fit(checker: MappingChecker, incumbent: Incumbent, budget: Stop, seed: int) -> None:
    """Run the fallback in this process, deadline or not: its first tries take no time worth mentioning."""
    from nmsolve.heuristics.mapping.first_fit import FirstFit

    cpu = time.process_time()
    context = LocalContext("first-fit", incumbent, budget, seed=seed, workers=1, deadline=budget.deadline)
    ending = run_guarded(FirstFit(), checker.problem, context)
    incumbent.finish("first-fit", ending.kind, time.process_time() - cpu)
    if ending.text:
        incumbent.record("note", "first-fit", ending.text)


def _placement_bound(problem: MappingProblem, incumbent: Incumbent, budget: Stop) -> Bound | None:
    """Bound for the final parts where cores hold many nodes; None where it would say nothing or does not apply."""
    core = incumbent.lifted
    if core is None or problem.one_per_core or incumbent.optimal:
        return None
    if problem.aim.distance == "apart":
        return None  # parts cost the same wherever they are
    from nmsolve.solvers.mapping.bounds import placement_bound

    end = min(budget.limit, budget.asked_at + AFTER_SIGNAL) - least_seconds("projection", problem)
    if clock.now() + PASS * problem.graph.m > end:
        return None  # summing up the parts cannot be interrupted
    return placement_bound(problem, core, incumbent.objective, lambda: clock.now() >= end)
