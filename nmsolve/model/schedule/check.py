"""The rules of a schedule, rule by rule, over flat arrays. :mod:`nmsolve.check.schedule.reevaluate` plays it through instead."""

from __future__ import annotations

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units
from nmsolve.model.types import BoolArray, IntArray, first_true


def schedule_complaint(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """Return the first rule that the schedule breaks, with the names and numbers, or None.

    Ceilings are values of objectives: the evaluator compares them.
    """
    shape = (problem.count,)
    if not answer.mode.shape == answer.start.shape == answer.loaded.shape == shape:
        return f"arrays of shapes {answer.mode.shape}, {answer.start.shape}, {answer.loaded.shape} for {problem.count} processes"
    for rule in (_modes, _times, _dependencies, _units, _resources, _budgets, _memory):
        complaint = rule(problem, answer)
        if complaint is not None:
            return complaint
    return None


def _modes(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """Every process runs in one of its modes, and loads only what it needs."""
    m = problem.modes
    if (p := first_true((answer.mode < m.first[:-1]) | (answer.mode >= m.first[1:]))) is not None:
        return f"process {problem.labels[p]!r} has no mode {answer.mode[p] - m.first[p]}"
    if (k := first_true(answer.loaded & (m.item[answer.mode] < 0))) is not None:
        return f"process {problem.labels[k]!r} loads data, but needs none"
    return None


def _times(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """Nothing begins before it may, starts before its release or ends after its deadline."""
    if (p := first_true(answer.start > problem.latest)) is not None:
        return f"process {problem.labels[p]!r} starts at {answer.start[p]:,}, later than anything may end: {problem.latest:,}"
    if (p := first_true(answer.start < problem.release)) is not None:
        return f"process {problem.labels[p]!r} starts at {answer.start[p]:,}, allowed from {problem.release[p]:,} on"
    begin = answer.begin(problem)
    if (p := first_true(begin < problem.earliest)) is not None:
        return f"units begin with process {problem.labels[p]!r} at {begin[p]:,}, allowed from {problem.earliest[p]:,} on"
    end = answer.end(problem)
    last = np.minimum(problem.deadline, problem.latest)
    if (p := first_true(end > last)) is not None:
        return f"process {problem.labels[p]!r} ends at {end[p]:,}, its deadline is {last[p]:,}"
    return None


def _dependencies(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """A process starts when what it uses has been made, moved and converted."""
    e = problem.edges
    delay = problem.delay(np.arange(e.count), answer.mode[e.source], answer.mode[e.target])
    ready = answer.end(problem)[e.source] + delay
    if (k := first_true(answer.start[e.target] < ready)) is not None:
        p, q = int(e.source[k]), int(e.target[k])
        return (
            f"process {problem.labels[q]!r} starts at {answer.start[q]:,}, what it needs of {problem.labels[p]!r} is "
            f"there at {ready[k]:,}"
        )
    return None


def _units(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """A unit works for one process at a time; loading is work."""
    process, unit = on_units(problem, answer.mode)
    begin, end = answer.begin(problem)[process], answer.end(problem)[process]
    order = np.lexsort((end, begin, unit))
    one, two = order[:-1], order[1:]
    if (k := first_true((unit[one] == unit[two]) & (begin[two] < end[one]))) is not None:
        a, b = int(one[k]), int(two[k])
        return (
            f"unit {problem.units.names[int(unit[a])]!r} works for {problem.labels[int(process[a])]!r} until {end[a]:,} and for "
            f"{problem.labels[int(process[b])]!r} from {begin[b]:,} on"
        )
    return None


def _resources(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """No resource is used beyond what there is."""
    end = answer.end(problem)
    for r, name in enumerate(problem.resources):
        demand = problem.modes.demand[answer.mode, r]
        used = np.flatnonzero((demand > 0) & (end > answer.start))
        none = np.zeros(len(used), np.int64)
        found = _first_excess(none, answer.start[used], end[used], demand[used], problem.capacity[r : r + 1])
        if found is not None:
            return f"resource {name!r} is used {found[2]:,} times at {found[1]:,}, there are {problem.capacity[r]:,}"
    return None


def _budgets(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """The modes together take no more of a nonrenewable resource than there is."""
    b = problem.budgets
    spent = b.spent(answer.mode)
    if (r := first_true(spent > b.amount)) is not None:
        return (
            f"the modes take {spent[r]:,} of nonrenewable resource {b.names[r]!r}, there are {b.amount[r]:,}"
        )
    return None


def holds(problem: ScheduleProblem, answer: Schedule) -> tuple[IntArray, IntArray, str | None]:
    """Return (P,) from when and until when the item of every process is in memory for it, and the first rule broken by loads.

    From its load, or its start, to its end, or to the start of the next use if that finds it there.
    """
    item, begin, until = problem.modes.item[answer.mode], answer.begin(problem), answer.end(problem)
    order, again = _uses(problem, answer)
    missing = order[~again & ~answer.loaded[order]]
    if len(missing):
        p = int(missing[0])
        name = problem.items.names[int(item[p])]
        return (
            begin,
            until,
            f"process {problem.labels[p]!r} uses {name!r}, whose weights are not loaded there",
        )
    kept = np.flatnonzero(again & ~answer.loaded[order])
    until[order[kept - 1]] = answer.start[order[kept]]
    return begin, until, None


def stays(problem: ScheduleProblem, answer: Schedule) -> BoolArray:
    """Return (P,) whether the item of a process is still there for a next use when the process has ended."""
    order, again = _uses(problem, answer)
    found = np.zeros(problem.count, bool)
    found[order[np.flatnonzero(again & ~answer.loaded[order]) - 1]] = True
    return found


def _uses(problem: ScheduleProblem, answer: Schedule) -> tuple[IntArray, BoolArray]:
    """Return the processes with items, by item and time, and whether the one before uses the same."""
    item = problem.modes.item[answer.mode]
    order = np.lexsort((answer.start, item))
    order = order[item[order] >= 0]
    again = np.zeros(len(order), bool)
    again[1:] = item[order][1:] == item[order][:-1]
    return order, again


def _memory(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """No unit holds more bytes than its memory has: items from load to last use, and what processes need while they run."""
    begin, until, complaint = holds(problem, answer)
    if complaint is not None:
        return complaint
    process, unit = on_units(problem, answer.mode)
    size, work = (values[answer.mode][process] for values in (problem.mode_bytes, problem.modes.working))
    start, end = answer.start[process], answer.end(problem)[process]
    found = _first_excess(
        np.concatenate([unit, unit]), np.concatenate([begin[process], start]), np.concatenate([until[process], end]),
        np.concatenate([size, work]), problem.units.memory,
    )  # fmt: skip
    if found is None:
        return None
    u, when, held = found
    return f"unit {problem.units.names[u]!r} holds {held:,} bytes at {when:,}, its memory has {problem.units.memory[u]:,}"


def _first_excess(
    where: IntArray, begin: IntArray, end: IntArray, amount: IntArray, limit: IntArray
) -> tuple[int, int, int] | None:
    """Return place, time and sum of the first excess over ``limit`` by place, or None; what ends makes room for what begins."""
    place = np.concatenate([where, where])
    time, change = np.concatenate([begin, end]), np.concatenate([amount, -amount])
    order = np.lexsort((change, time, place))
    held = np.cumsum(change[order])
    wrong = np.flatnonzero(held > limit[place[order]])
    if not len(wrong):
        return None
    k = order[wrong[0]]
    return int(place[k]), int(time[k]), int(held[wrong[0]])
