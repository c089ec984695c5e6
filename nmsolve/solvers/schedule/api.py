"""Processes to units and times: the best schedule found in the time given, and a bound on all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Unpack

import numpy as np

from nmsolve.check.schedule.recheck import RECHECKS, check_schedule_bound
from nmsolve.hw.schedule.evaluate import all_objectives, objective
from nmsolve.model import clock
from nmsolve.model.bound import Bound, BoundCheck, Result
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import OBJECTIVES, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray
from nmsolve.solvers.bounding import Bounded, two_sided
from nmsolve.solvers.multi_objective import StatedObjectives
from nmsolve.solvers.published import solve
from nmsolve.solvers.run import Options, Run, RunOptions, Task
from nmsolve.solvers.schedule.registry import REGISTRY, plan_of
from nmsolve.solvers.search.checker import AsStated, over_ceiling
from nmsolve.solvers.search.portfolio import Step


class ScheduleChecker(AsStated):
    """Implements :class:`nmsolve.solvers.search.checker.Checker`; solutions are :meth:`Schedule.packed`."""

    def __init__(self, problem: ScheduleProblem) -> None:
        self.problem = problem
        self.size = 3 * problem.count

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the schedule (packed, one-dimensional), or None."""
        if lifted.shape != (self.size,):
            return f"{lifted.shape} numbers for {self.size}"
        loaded = lifted[2 * self.problem.count :]
        if ((loaded < 0) | (loaded > 1)).any():
            return f"a process loads (1) or does not (0), not {loaded[(loaded < 0) | (loaded > 1)][0]}"
        answer = Schedule.unpacked(lifted)
        return schedule_complaint(self.problem, answer) or ceiling_complaint(self.problem, answer)

    def score(self, lifted: IntArray) -> float:
        """Return the problem's objective; ``lifted`` (size,)."""
        return float(objective(self.problem, Schedule.unpacked(lifted)))


def ceiling_complaint(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """Return which ceiling on another objective a legal schedule exceeds, or None."""
    return over_ceiling(problem.ceilings, lambda: all_objectives(problem, answer))


def asked(
    problem: ScheduleProblem,
    objective: str | None = None,
    weights: Mapping[str, int] | None = None,
    at_most: Mapping[str, int] | None = None,
) -> ScheduleProblem:
    """Return the problem with another objective and more limits, where they are given.

    Raises
    ------
    InputError : an objective that does not exist, weights without an objective that they are for
    """
    name = objective or problem.objective
    factors = tuple(weights.items()) if weights else problem.weights
    if name == "weighted" and not factors:
        raise InputError("no weights are given", "--objective", "--weights energy=1,makespan=10")
    for names, what in ((at_most, "at_most"), (weights, "weights")):
        unknown = [k for k in names or () if k not in OBJECTIVES]
        if unknown:
            raise InputError(
                f"no objective is called {unknown[0]!r}", what, "one of " + ", ".join(OBJECTIVES)
            )
    if weights and name != "weighted":
        raise InputError(f"weights with the objective {name}", "weights", "objective='weighted'")
    ceilings = {**dict(problem.ceilings), **{k: float(v) for k, v in (at_most or {}).items()}}
    return replace(
        problem, objective=name, weights=factors if name == "weighted" else (), ceilings=tuple(ceilings.items())
    )  # fmt: skip


def solve_schedule(
    problem: ScheduleProblem,
    *,
    warm_start: Schedule | None = None,
    known: Sequence[Bound] = (),
    **options: Unpack[RunOptions],
) -> Result[Schedule]:
    """Decide for every process how, where and when it runs. Return the best schedule found in the time given, and a bound that
    no schedule beats.

    Parameters
    ----------
    warm_start : a schedule to start from
    known : bounds from before; they count as far as they can be recomputed, else on their solver's word
    options : as in :class:`nmsolve.solvers.run.Options`; ``engines`` are names from
        :data:`nmsolve.solvers.schedule.registry.REGISTRY`, all that fit if not given

    Returns
    -------
    Result
        ``solution`` holds a mode and a start of every process, and what it loads; ``scores`` all objectives, whole

    Raises
    ------
    InputError : an option is wrong, the warm start breaks a rule, or every chosen engine refuses the problem
    """
    options.setdefault("started", clock.now())
    chosen = Options(**options, known=known, words=True)
    chosen.require_gap()
    return solve(ScheduleTask(problem, warm_start), chosen)


def bound_schedule(problem: ScheduleProblem, given: Schedule, options: Options) -> Bounded[Schedule]:
    """Bound how far the ``given`` schedule is from the best one.

    Raises
    ------
    InputError : the schedule breaks a rule, or an option is wrong
    """
    return two_sided(ScheduleTask(problem, given), options, "the schedule")


class ScheduleTask(Task[Schedule]):
    """Solutions are schedules."""

    registry, exact, quick = REGISTRY, True, ("heft", "activity-lists", "schedule-search")
    methods = MappingProxyType({"m4": "m4"})

    def __init__(self, problem: ScheduleProblem, warm_start: Schedule | None = None) -> None:
        self.problem, self.checker, self.objective = problem, ScheduleChecker(problem), problem.objective
        self.first = None if warm_start is None else warm_start.packed()
        wrong = None if self.first is None else self.checker.complaint(self.first)
        if wrong is not None:
            text = f"the schedule to start from cannot be used: {wrong}"
            raise InputError(text, "warm start", "a schedule of this problem")

    def words(self, seed: int) -> str:
        """Return sizes and seed."""
        p = self.problem
        where = f"{p.units.count} units" if p.units.count else f"{len(p.resources)} resources"
        if p.budgets.count:
            where += f" and {p.budgets.count} budgets"
        held = "".join(f", {name} at most {most:,.0f}" for name, most in p.ceilings)
        return (
            f"{p.count} processes in {p.modes.count} modes and {p.edges.count} dependencies on {where}, "
            f"least {p.objective}{held}, seed {seed}"
        )

    def start(self, run: Run) -> list[Step]:
        """Return the engines as registered, after the warm start was offered."""
        return self.planned(run, *plan_of(self.problem, run.options.engines, run.options.time_limit))

    def answer(self, lifted: IntArray) -> tuple[Schedule, Mapping[str, float]]:
        """Return the schedule of ``lifted`` (size,), and what it is worth in all objectives."""
        found = Schedule.unpacked(np.array(lifted))
        return found, {name: float(value) for name, value in all_objectives(self.problem, found).items()}

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """Re-check with code that did not find the bound."""
        return check_schedule_bound(self.problem, bound, seconds)


def schedule_objectives(
    problem: ScheduleProblem, options: Options, first: Schedule | None = None, known: tuple[Bound, ...] = ()
) -> StatedObjectives[Schedule]:
    """Return the objectives of a problem, solved one after the other."""
    return StatedObjectives(
        problem,
        options,
        first,
        known,
        ScheduleTask,
        all_objectives,
        ceiling_complaint,
        RECHECKS.keys(),
        weighted="weighted",
    )
