"""Schedules by rules: the published one (``m4``), ``heft`` and ``peft``."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.schedule import dispatch as m4
from nmsolve.heuristics.schedule.budgets import barred
from nmsolve.heuristics.schedule.decode import (
    EARLIEST,
    FREE,
    DecoderArrays,
    Ground,
    decode,
    ground_of,
    schedule_of,
    state_from,
    state_of,
    work_of,
)
from nmsolve.heuristics.schedule.insertion import by_priority, insert_all, optimistic, upward
from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import FloatArray

#: Criteria by name.
CRITERIA = {"idle": m4.IDLE_TICKS, "utilisation": m4.UTILISATION, "reuse": m4.REUSE, "exchange": m4.EXCHANGE}
#: The order in which M4.5 names them.
M4_ORDER = ("idle", "utilisation", "reuse", "exchange")
#: Processes that m4 takes however many are ready at once; else most processes times those that are, about.
FEW, MOST_LOOKS = 2**12, 10**8
#: Nothing is preferred.
NO_TASTE = np.zeros(0)


class PublishedRule:
    """M4.5 and M4.6 as published. What is off when follows from the gaps (:mod:`nmsolve.hw.schedule.evaluate`)."""

    name = "m4"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Nonrenewable resources, and more processes that are ready at once than it can look at: each waits for units with all
        others."""
        if problem.budgets.count:
            return "takes no nonrenewable resources"
        if problem.count <= FEW or problem.count * _width(problem) <= MOST_LOOKS:
            return None
        return "too many processes are ready at once"

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Offer its schedule."""
        tell(problem, published(problem), context, "published rule")


class Heft:
    """Heterogeneous earliest finish time, with insertion."""

    name = "heft"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Nothing."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Offer its schedule."""
        tell(problem, heft(problem, context.time_left()), context, "earliest finish")


class Peft:
    """Predicted earliest finish time, with insertion."""

    name = "peft"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Nothing."""
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Offer its schedule."""
        tell(problem, peft(problem, context.time_left()), context, "predicted finish")


def _width(problem: ScheduleProblem) -> int:
    """Return how many processes have as many others before them on their longest path, at most."""
    level = [0] * problem.count
    indptr, out = (a.tolist() for a in problem.after)
    target = problem.edges.target.tolist()
    for p in problem.order.tolist():
        for e in out[indptr[p] : indptr[p + 1]]:
            level[target[e]] = max(level[target[e]], level[p] + 1)
    return int(np.bincount(level).max())


def tell(problem: ScheduleProblem, answer: Schedule, context: Context, move: str) -> None:
    """Offer a schedule if it keeps deadlines, ceilings and budgets."""
    if (problem.budgets.spent(answer.mode) > problem.budgets.amount).any():
        context.note("its modes take more of a nonrenewable resource than there is")
        return
    if (answer.end(problem) > problem.deadline).any():
        context.note("its schedule breaks a deadline")
        return
    if problem.ceilings:
        values = all_objectives(problem, answer)
        if any(values[name] > most for name, most in problem.ceilings):
            context.note("its schedule is above a ceiling")
            return
    context.offer(answer.packed(), move)


def published(problem: ScheduleProblem, criteria: tuple[str, ...] = M4_ORDER) -> Schedule:
    """Return the schedule of M4.5 with these of its criteria in this order."""
    g, w = grounded(problem)
    waits = np.bincount(problem.edges.target, minlength=problem.count).astype(np.int64)
    places = np.array([CRITERIA[name] for name in criteria], np.int64)
    m4.dispatch(
        g, w, places, np.zeros((problem.count, 2), np.int64), waits, np.zeros(problem.units.count, np.int64),
        np.zeros((2, len(places) + 1)),
    )  # fmt: skip
    return schedule_of(w)


def heft(problem: ScheduleProblem, time_left: float = np.inf) -> Schedule:
    """Return the schedule of HEFT: by upward rank, each where it ends first; where there are budgets, in modes that keep these,
    if any were found."""
    g, w = grounded(problem)
    return inserted(problem, g, w, ranks_of(problem, g), _kept(problem, time_left))


def peft(problem: ScheduleProblem, time_left: float = np.inf) -> Schedule:
    """Return the schedule of PEFT: by what follows at least, each where its end and that are least (budgets: :func:`heft`)."""
    g, w = grounded(problem)
    table = np.zeros(problem.modes.count)
    optimistic(g, problem.order, table)
    sizes = np.diff(problem.modes.first)
    return inserted(
        problem,
        g,
        w,
        np.add.reduceat(table, problem.modes.first[:-1]) / sizes,
        table + _kept(problem, time_left),
    )


def _kept(problem: ScheduleProblem, time_left: float) -> FloatArray:
    """(M,) what modes cost that are not for budgets."""
    found = barred(problem, time_left)
    return np.zeros(problem.modes.count) if found is None else found


def grounded(problem: ScheduleProblem) -> tuple[Ground, DecoderArrays]:
    """Return the arrays of a problem, and those that are written."""
    g = ground_of(problem)
    return g, work_of(g)


def ranks_of(problem: ScheduleProblem, g: Ground) -> FloatArray:
    """(P,) mean lengths of the ways to the end."""
    rank = np.zeros(problem.count)
    upward(g, problem.order, rank)
    return rank


def inserted(
    problem: ScheduleProblem, g: Ground, w: DecoderArrays, priority: FloatArray, ahead: FloatArray
) -> Schedule:
    """Return a schedule by gaps; with resources, which have no gaps, one by the order alone."""
    order = by_priority(problem, priority)
    if len(problem.resources):
        decode(g, state_of(order, np.full(problem.count, FREE)), w, EARLIEST, ahead)
        return schedule_of(w)
    lanes = int(g.lane[-1])
    insert_all(g, order, ahead, np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), w)
    none = np.zeros(problem.count, bool)
    decode(g, state_from(problem, Schedule(w.mode.copy(), w.start.copy(), none)), w, EARLIEST, NO_TASTE)
    return schedule_of(w)
