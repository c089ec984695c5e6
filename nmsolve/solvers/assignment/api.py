"""Operators to units: the best assignment found in the time given, and a bound on all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

import numpy as np

from nmsolve.check.assignment.recheck import RECHECKS, check_assign_bound
from nmsolve.hw.assignment.evaluate import all_objectives
from nmsolve.model import clock
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck, Result
from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment.checker import AssignChecker, NetworkChecker, ceiling_complaint
from nmsolve.solvers.assignment.registry import REGISTRY, plan_of
from nmsolve.solvers.bounding import Bounded, two_sided
from nmsolve.solvers.multi_objective import StatedObjectives
from nmsolve.solvers.published import solve
from nmsolve.solvers.run import Options, Run, RunOptions, Task
from nmsolve.solvers.search.portfolio import Step


def solve_assignment(
    problem: AssignProblem,
    *,
    warm_start: Assignment | None = None,
    known: Sequence[Bound] = (),
    **options: Unpack[RunOptions],
) -> Result[Assignment]:
    """Decide for every operator which unit runs it. Return the best assignment found in the time given, and a bound that no
    assignment beats.

    Parameters
    ----------
    warm_start : an assignment to start from
    known : bounds from before; they count as far as they can be recomputed, else on their solver's word
    options : as in :class:`nmsolve.solvers.run.Options`; ``engines`` are names from
        :data:`nmsolve.solvers.assignment.registry.REGISTRY`, all that fit if not given

    Returns
    -------
    Result
        ``solution`` holds the unit of every operator, what is fused and an order; ``scores`` all objectives, in ps and pJ

    Raises
    ------
    InputError : an option is wrong, the warm start breaks a rule, or every chosen engine refuses the problem
    """
    options.setdefault("started", clock.now())
    chosen = Options(**options, known=known, words=True)
    chosen.require_gap()
    return solve(AssignTask(problem, warm_start), chosen)


def solve_network(
    network: CostNetwork,
    *,
    warm_start: IntArray | None = None,
    known: Sequence[Bound] = (),
    **options: Unpack[RunOptions],
) -> Result[IntArray]:
    """Return the cheapest strategies (N,) of a network found in the time given, and a bound; else as :func:`solve_assignment`."""
    options.setdefault("started", clock.now())
    chosen = Options(**options, known=known, words=True)
    chosen.require_gap()
    return solve(NetworkTask(network, warm_start), chosen)


def bound_assignment(problem: AssignProblem, given: Assignment, options: Options) -> Bounded[Assignment]:
    """Bound how far the ``given`` assignment is from the best one.

    Raises
    ------
    InputError : the assignment breaks a rule, or an option is wrong
    """
    return two_sided(AssignTask(problem, given), options, "the assignment")


def bound_strategies(network: CostNetwork, given: IntArray, options: Options) -> Bounded[IntArray]:
    """Bound how far the ``given`` strategies (N,) are from the best ones; else as :func:`bound_assignment`."""
    return two_sided(NetworkTask(network, given), options, "the strategies")


class AssignTask(Task[Assignment]):
    """Solutions are assignments."""

    registry, exact, quick = REGISTRY, True, ("priority", "min-conflicts")
    methods = MappingProxyType({"m3": "threshold"})

    def __init__(self, problem: AssignProblem, warm_start: Assignment | None = None) -> None:
        self.problem, self.checker, self.objective = problem, AssignChecker(problem), problem.objective
        self.first = None if warm_start is None else self._packed(warm_start)

    def words(self, seed: int) -> str:
        """Return sizes and seed."""
        p = self.problem
        fusion = f", {p.groups.count} groups that may be fused" if p.groups.count else ""
        held = "".join(f", {name} at most {most:,.0f}" for name, most in p.ceilings)
        return (
            f"{p.count} operators and {p.flows.count} tensors on {p.units.count} units{fusion}, "
            f"least {p.objective}{held}, seed {seed}"
        )

    def start(self, run: Run) -> list[Step]:
        """Return the warm start, then the engines as registered."""
        return self.planned(run, *plan_of(self.checker.problem, run.options.engines))

    def answer(self, lifted: IntArray) -> tuple[Assignment, Mapping[str, float]]:
        """Return the assignment of ``lifted`` (size,), and what it is worth in all objectives."""
        found = Assignment.unpacked(self.problem, np.array(lifted))
        return found, {name: float(value) for name, value in all_objectives(self.problem, found).items()}

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """Re-check with code that did not find the bound."""
        return check_assign_bound(self.problem, bound, seconds)

    def _packed(self, start: Assignment) -> IntArray:
        """Return the warm start as engines offer it.

        Raises
        ------
        InputError : it breaks a rule of the problem
        """
        p = self.problem
        fits = start.unit.shape == start.rank.shape == (p.count,) and start.fused.shape == (p.groups.count,)
        wrong = "it has other operators" if not fits else self.checker.complaint(start.packed(p))
        if wrong is not None:
            text = f"the assignment to start from cannot be used: {wrong}"
            raise InputError(text, "warm start", "an assignment of this problem")
        return start.packed(p)


class NetworkTask(Task[IntArray]):
    """Solutions are the strategies of a cost network."""

    registry, objective, exact, quick = REGISTRY, "cost", True, ("min-conflicts",)

    def __init__(self, network: CostNetwork, warm_start: IntArray | None = None) -> None:
        self.problem, self.checker = network, NetworkChecker(network)
        self.first = None if warm_start is None else np.array(warm_start, np.int64)
        wrong = None if self.first is None else self.checker.complaint(self.first)
        if wrong is not None:
            text = f"the strategies to start from cannot be used: {wrong}"
            raise InputError(text, "warm start", "strategies of this network")

    def words(self, seed: int) -> str:
        """Return sizes and seed."""
        n = self.problem
        return f"{n.count} nodes with {len(n.cost)} strategies and {len(n.ends)} pairs, seed {seed}"

    def start(self, run: Run) -> list[Step]:
        """Return the warm start, then the engines as registered."""
        return self.planned(run, *plan_of(self.checker.problem, run.options.engines))

    def answer(self, lifted: IntArray) -> tuple[IntArray, Mapping[str, float]]:
        """Return the strategies (N,) and their cost."""
        return np.array(lifted), {self.objective: self.checker.score(lifted)}

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """Re-check with code that did not find the bound."""
        return check_assign_bound(self.problem, bound, seconds)


def assign_objectives(
    problem: AssignProblem, options: Options, first: Assignment | None = None, known: tuple[Bound, ...] = ()
) -> StatedObjectives[Assignment]:
    """Return the objectives of a problem, solved one after the other."""
    return StatedObjectives(
        problem, options, first, known, AssignTask, all_objectives, ceiling_complaint, RECHECKS.keys()
    )
