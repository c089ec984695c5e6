"""The CP-SAT model of schedules: assignments (:mod:`.rules`) with moments (:mod:`.schedule_rules`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nmsolve.heuristics.assignment.orders import rank_by
from nmsolve.hw.assignment.evaluate import schedule_of
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment import rules, schedule_rules
from nmsolve.solvers.assignment.data import AssignData
from nmsolve.solvers.assignment.exact import whole_numbers
from nmsolve.solvers.assignment.paths import Bounds, Program
from nmsolve.solvers.assignment.schedule_rules import Moments
from nmsolve.solvers.search.rows import Built, CpSatRows
from nmsolve.solvers.search.scaling import Scale


def build(
    data: AssignData,
    program: Program,
    known: Bounds,
    *,
    start: Assignment | None = None,
    bound: float = 0.0,
    below: float = np.inf,
) -> Built:
    """State the problem.

    Parameters
    ----------
    program, known : what waits for what, and what paths say
    start : an assignment to begin with, as a hint
    bound : a proven lower bound
    below : only schedules that end before are of interest
    """
    rows, amounts = CpSatRows(), whole_numbers(data.problem)
    costs = amounts.time
    claim = Scale(costs.factor, costs.exact, integral=True)
    v = rules.make_variables(rows, data, amounts)
    for rule in rules.RULES:
        rule(rows, data, amounts, v)
    rules.ceilings(
        rows, data, amounts, v, lambda some, most: Scale(some.factor, some.exact, True).ceiling_row(most)
    )
    most = int(
        costs.run.max(axis=1).sum() + costs.moved.max(axis=(1, 2), initial=0).sum() * data.problem.units.sites
    )
    if np.isfinite(below):
        most = max(0, min(most, int(np.ceil(below * costs.factor)) - (1 if costs.exact else 0)))
    margins = schedule_rules.margins_of(data, costs, known)
    at = schedule_rules.make_moments(rows, data, costs, margins, most, claim.floor_row(bound) or 0)
    schedule_rules.jobs(rows, data, costs, v, at)
    schedule_rules.arrivals(rows, data, costs, v, at, program, most)
    schedule_rules.within_paths(rows, data, v, known, below)
    schedule_rules.ends_by_unit(rows, data, v, at, margins, most)
    for load in rules.loads(rows, data, costs, v):
        rows.add(load <= at.whole)
    rows.minimise(at.whole)
    if start is not None:
        rules.hint(rows, data, v, start)
        _hint_moments(rows, data, at, start, costs.factor)
    return Built(rows.model, claim, partial(rules.answer_of, data, v), data, v, partial(_read, data, v, at))


def _hint_moments(rows: CpSatRows, data: AssignData, at: Moments, start: Assignment, factor: float) -> None:
    """Begin with the moments of a known schedule."""
    schedule = schedule_of(data.problem, start)
    for i in range(data.problem.count):
        rows.hint(at.start[i], int(schedule.start[i] * factor))
        rows.hint(at.end[i], int(schedule.finish[i] * factor))
    rows.hint(at.whole, int(schedule.end * factor))


def _read(data: AssignData, v: rules.Variables, at: Moments, value: Callable[[Any], int]) -> IntArray:
    """Return the assignment with the order of its moments."""
    packed = rules.answer_of(data, v, lambda x: value(x) > 0)
    start, end = ([value(x) for x in some] for some in (at.start, at.end))
    packed[-data.problem.count :] = rank_by(data.problem, np.array(start), np.array(end))
    return packed
