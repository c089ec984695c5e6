"""The CP-SAT model of schedules: assignments (:mod:`.rules`) with moments, when what runs and when what is sent.

Jobs of a unit do not overlap, transfers of a channel do not, and nothing begins before what it needs is there. The evaluator's
schedules (:func:`nmsolve.hw.assignment.evaluate.schedule_of`) all obey this; they also send tensors in the order in which jobs
want them, which is not stated. So the model's bound is a bound, and its assignments are scored again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nmsolve.heuristics.assignment.orders import rank_by
from nmsolve.hw.assignment.evaluate import schedule_of
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment import rules
from nmsolve.solvers.assignment.data import AssignData
from nmsolve.solvers.assignment.exact import whole_numbers
from nmsolve.solvers.assignment.paths import Bounds, Program
from nmsolve.solvers.search.rows import Built, CpSatRows
from nmsolve.solvers.search.scaling import Scale


@dataclass(frozen=True, eq=False)
class Moments:
    """``start[i]`` and ``end[i]`` of every operator in the model's unit of time; ``whole`` of everything."""

    start: list[Any]
    end: list[Any]
    whole: Any


@dataclass(frozen=True, eq=False)
class Margins:
    """What paths say in the model's unit: ``head`` (L, J) end of an operator on a unit at least, ``tail`` (L, J) what follows.

    Both are 0 for members of groups, whose ends paths do not tell. Where times were rounded down, paths may be shorter by one for
    every operator and transfer.
    """

    head: IntArray
    tail: IntArray


def margins_of(data: AssignData, costs: rules.Costs, known: Bounds) -> Margins:
    """Return them."""
    shift, slack = round(-np.log2(costs.factor)), 0 if costs.exact else 2 * data.problem.count
    head, tail = (np.maximum(0, (table >> shift) - slack) for table in (known.head, known.tail))
    for table in (head, tail):
        table[data.problem.groups.members] = 0
    return Margins(head, tail)


def make_moments(
    rows: CpSatRows, data: AssignData, costs: rules.Costs, margins: Margins, most: int, least: int
) -> Moments:
    """Return all moments, within what paths leave of a makespan of ``most`` (in the model's unit)."""
    start, end = [], []
    for i in range(data.problem.count):
        able = data.problem.time[i] >= 0
        last = max(0, most - int(margins.tail[i][able].min()))
        first = min(last, max(0, int((margins.head[i] - costs.run[i])[able].min())))
        start.append(rows.model.new_int_var(first, last, f"start[{i}]"))
        end.append(rows.model.new_int_var(first, last, f"end[{i}]"))
    return Moments(start, end, rows.model.new_int_var(min(least, most), most, "makespan"))


def jobs(rows: CpSatRows, data: AssignData, costs: rules.Costs, v: rules.Variables, at: Moments) -> None:
    """An operator takes its time on its unit, or is part of a group that does; a unit does one thing at a time.

    The interval of operator i on unit j is there if ``x[i, j]`` and no group with i is fused there; that of a group, from the
    start to the end of its last operator, if ``fused[k, j]``; starts and ends of its members are then equal.
    """
    model, groups = rows.model, data.problem.groups
    busy: list[list[Any]] = [[] for _ in range(data.problem.units.count)]
    of: dict[tuple[int, int], list[Any]] = {}
    for (k, j), fused in v.fused.items():
        own = groups.of(k).tolist()
        time = int(costs.run[own, j].sum() - costs.gain[k, j])
        last = own[-1]
        busy[j].append(model.new_optional_interval_var(at.start[last], max(0, time), at.end[last], fused, ""))
        for i in own:
            of.setdefault((i, j), []).append(fused)
            if i != last:
                model.add(at.start[i] == at.start[last]).only_enforce_if(fused)
                model.add(at.end[i] == at.end[last]).only_enforce_if(fused)
    for i in range(data.problem.count):
        for j in np.flatnonzero(data.problem.time[i] >= 0).tolist():
            x = v.x.get((int(data.item[i]), j))
            if x is None:
                continue
            alone = x
            if (i, j) in of:
                alone = model.new_bool_var(f"alone[{i},{j}]")
                model.add_exactly_one([alone, ~x, *of[i, j]])
            busy[j].append(
                model.new_optional_interval_var(at.start[i], int(costs.run[i, j]), at.end[i], alone, "")
            )
        model.add(at.end[i] <= at.whole)
    for some in busy:
        model.add_no_overlap(some)


def arrivals(
    rows: CpSatRows,
    data: AssignData,
    costs: rules.Costs,
    v: rules.Variables,
    at: Moments,
    program: Program,
    most: int,
) -> None:
    """An operator begins after what it needs has come; a channel carries one tensor at a time.

    A transfer begins after the end of its maker. Between members of a fused group nothing is waited for.
    """
    model, problem = rows.model, data.problem
    carried: list[list[Any]] = [[] for _ in problem.units.channels]
    ways: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
    for way in v.transfers:
        time = int(costs.moved[way.tensor, way.origins[0], way.goal])
        if not time:
            continue
        maker = int(problem.flows.source[way.tensor])
        begin, end = (model.new_int_var(0, most, "") for _ in range(2))
        sent = model.new_optional_interval_var(begin, time, end, way.paid, "")
        model.add(begin >= at.end[maker]).only_enforce_if(way.paid)
        channel = int(problem.units.channel[way.origins[0], way.goal])
        if channel >= 0:
            carried[channel].append(sent)
        ways.setdefault((way.tensor, way.goal), []).append((way.paid, end))
    for some in carried:
        model.add_no_overlap(some)
    for u in range(problem.count):
        for p, t in program.waits[u]:
            both = [k for k in program.groups[u] if p in program.own[k]]
            apart = [~f for (k, _), f in v.fused.items() if k in both]
            model.add(at.end[p] <= at.start[u]).only_enforce_if(apart)
            for s in range(problem.units.sites):
                here = v.at.get((int(data.item[u]), s))
                if here is not None:
                    for paid, end in ways.get((t, s), []):
                        model.add(end <= at.start[u]).only_enforce_if(here, paid)


def within_paths(rows: CpSatRows, data: AssignData, v: rules.Variables, known: Bounds, below: float) -> None:
    """No operator is on a unit, and no group fused there, with which paths alone are no better than ``below``.

    Whole numbers of Python: NumPy would round them to compare them with a float.
    """
    for (k, j), fused in v.fused.items():
        if int(known.fused[k, j]) >= below:
            rows.add(fused == 0)
    groups = data.problem.groups
    possible = {(i, j) for (k, j) in v.fused if int(known.fused[k, j]) < below for i in groups.of(k).tolist()}
    for i in range(data.problem.count):
        for j in range(data.problem.units.count):
            x = v.x.get((int(data.item[i]), j))
            if x is not None and int(known.alone[i, j]) >= below and (i, j) not in possible:
                rows.add(x == 0)


def ends_by_unit(
    rows: CpSatRows, data: AssignData, v: rules.Variables, at: Moments, margins: Margins, most: int
) -> None:
    """What paths say of an operator on a unit: when it ends at least, and what follows at least."""
    for i in range(data.problem.count):
        for j in np.flatnonzero(data.problem.time[i] >= 0).tolist():
            x = v.x.get((int(data.item[i]), j))
            head, tail = int(margins.head[i, j]), int(margins.tail[i, j])
            if x is not None and head + tail <= most:
                rows.model.add(at.end[i] >= head).only_enforce_if(x)
                rows.model.add(at.end[i] + tail <= at.whole).only_enforce_if(x)


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
    margins = margins_of(data, costs, known)
    at = make_moments(rows, data, costs, margins, most, claim.floor_row(bound) or 0)
    jobs(rows, data, costs, v, at)
    arrivals(rows, data, costs, v, at, program, most)
    within_paths(rows, data, v, known, below)
    ends_by_unit(rows, data, v, at, margins, most)
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
