"""The CP-SAT model of a schedule: :mod:`.rules` and :mod:`.moments`, all numbers whole and as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.schedule.schedule import Schedule, on_units
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule import moments, rules
from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.schedule.moments import Moments
from nmsolve.solvers.schedule.power_intervals import power_on_intervals
from nmsolve.solvers.schedule.rules import Choice
from nmsolve.solvers.schedule.turns import SUMS, Setting
from nmsolve.solvers.search.rows import Built, CpSatRows
from nmsolve.solvers.search.scaling import Scale


def build(
    data: ScheduleData,
    setting: Setting = SUMS,
    *,
    start: Schedule | None = None,
    bound: float = 0.0,
    below: float = np.inf,
    again: int | None = None,
) -> Built:
    """State the problem for CP-SAT.

    Parameters
    ----------
    setting : how CP-SAT is to run
    start : a schedule to begin with, as a hint
    bound : a proven lower bound on the objective, added as a row
    below : no answer above this is of interest
    again : how often units are woken again in such answers, at most (:func:`.power_intervals.wakings`); None: not known
    """
    rows, problem = CpSatRows(), data.problem
    claim = Scale(1.0, exact=True, integral=True)
    least = claim.floor_row(bound) or 0
    v = rules.choose(rows, data)
    at = moments.make_moments(rows, data, v, least if problem.objective == "makespan" else 0)
    for rule in (
        moments.paths,
        moments.dependencies,
        moments.units,
        moments.resources,
        moments.items,
        moments.memory,
    ):
        rule(rows, data, v, at)
    if "tardiness" in data.stated:
        moments.lateness(rows, data, v, at)
    if data.gaps and again is not None:
        power_on_intervals(rows, data, v, at, again)
    elif data.gaps:
        moments.gaps(rows, data, v, at)
    if any(name == "waste" for name, _ in problem.weights) or problem.objective == "waste":
        moments.waste(rows, data, v, at)
    rules.work_of_units(rows, data, v)
    rules.work_of_resources(rows, data, v)
    rules.budgets(rows, data, v)
    rules.ceilings(rows, data, v)
    goal = rules.objective(rows, data, v, at.waste)
    if problem.objective != "makespan":
        if least > 0:
            rows.add(goal >= least)
        if np.isfinite(below):
            rows.add(goal <= int(below))
    rows.minimise(goal)
    if start is not None:
        hint(rows, data, v, at, start)
    read = partial(_read, data, v, at)
    return Built(
        rows.model, claim, lambda value: read(lambda x: int(value(x))), data, (v, at), read, setting.level, setting.flags
    )  # fmt: skip


def _read(data: ScheduleData, v: Choice, at: Moments, value: Callable[[Any], int]) -> IntArray:
    """Return a solution as engines offer it."""
    count = data.problem.count
    mode, start, loaded = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, bool)
    for p in range(count):
        own = data.modes_of(p)
        mode[p] = next(k for k in own if isinstance(v.x[k], int) or value(v.x[k]) > 0)
        start[p] = value(at.start[p])
        here = v.loaded.get(int(mode[p]))
        loaded[p] = here is not None and value(here) > 0
    return Schedule(mode, start, loaded).packed()


def hint(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments, known: Schedule) -> None:
    """Begin with a known schedule: a value for every variable."""
    problem, told = data.problem, set[int]()

    def say(x: Any, number: int) -> None:
        """Hint a variable once; numbers and sums need none."""
        if hasattr(x, "proto") and x.index not in told:
            told.add(x.index)
            rows.hint(x, number)

    begin, end = known.begin(problem).tolist(), known.end(problem).tolist()
    mode, process = known.mode.tolist(), problem.modes.process.tolist()
    for k, x in v.x.items():
        say(x, mode[process[k]] == k)
    for k, x in v.loaded.items():
        say(x, mode[process[k]] == k and bool(known.loaded[process[k]]))
    unit_set = problem.modes.unit_set[known.mode].tolist()
    for (p, s), x in v.on.items():
        say(x, unit_set[p] == s)
    e = problem.edges
    for (k, one, other), x in v.pair.items():
        say(x, unit_set[e.source[k]] == one and unit_set[e.target[k]] == other)
    for p in range(problem.count):
        for x, number in ((at.start[p], int(known.start[p])), (at.begin[p], begin[p]), (at.end[p], end[p])):
            say(x, number)
    say(v.whole, max(end))
    for p, x in v.late.items():
        say(x, max(0, end[p] - int(problem.due[p])))
    _hint_items(say, data, at, known)
    _hint_units(say, data, v, at, known)
    if at.waste is not None:
        say(at.waste, all_objectives(problem, known)["waste"])


def _hint_items(say: Callable[[Any, int], None], data: ScheduleData, at: Moments, known: Schedule) -> None:
    """Hint who finds an item that whom has left."""
    process, end = data.problem.modes.process, known.end(data.problem)
    left: dict[int, int] = {}
    for some in data.uses:
        used = sorted((m for m in some if known.mode[process[m]] == m), key=lambda m: known.start[process[m]])
        for n, k in pairwise(used):
            if not known.loaded[process[k]]:
                left[n] = k
    for (n, k), x in at.kept.items():
        say(x, left.get(n) == k)
    for n, x in at.until.items():
        say(x, int(known.start[process[left[n]]] if n in left else end[process[n]]))


def _hint_units(
    say: Callable[[Any, int], None], data: ScheduleData, v: Choice, at: Moments, known: Schedule
) -> None:
    """Hint the order on every unit and where it is off."""
    problem, queues = data.problem, dict[int, list[int]]()
    begin, end = known.begin(problem), known.end(problem)
    process, unit = on_units(problem, known.mode)
    for k in np.argsort(begin[process], kind="stable").tolist():
        queues.setdefault(int(unit[k]), []).append(int(process[k]))
    there = {(p, u) for u, queue in queues.items() for p in queue}
    for key, x in at.here.items():
        say(x, key in there)
    _hint_intervals(say, data, v, at, queues, begin, end)
    on, off, rest = set[tuple[int, int, int]](), set[tuple[int, int, int]](), dict[tuple[int, int], int]()
    for u, queue in queues.items():
        for p, q in pairwise(queue):
            gap = int(begin[q] - end[p])
            if gap and gap >= problem.units.break_even[u]:
                off.add((u, p, q))
            else:
                on.add((u, p, q))
                rest[p, u] = gap
    for some, of in ((at.follows, on), (at.off, off)):
        for arc, x in some.items():
            say(x, arc in of)
    for (p, u), x in at.rest.items():
        say(x, rest.get((p, u), 0))
    for (p, u), x in at.opens.items():
        say(x, u in queues and queues[u][0] == p)
    for (p, u), x in at.closes.items():
        say(x, u in queues and queues[u][-1] == p)
    for u, x in at.used.items():
        say(x, u in queues)


def _hint_intervals(
    say: Callable[[Any, int], None], data: ScheduleData, v: Choice, at: Moments, queues: dict[int, list[int]], begin: IntArray,
    end: IntArray,
) -> None:  # fmt: skip
    """Hint when every unit is on, and who runs then; ``queues``: processes of every unit by time."""
    if not at.on:
        return
    known, idle = dict[tuple[int, int], list[int]](), dict.fromkeys(at.used, 0)
    for u, queue in queues.items():
        interval = 0
        known[u, 0] = [queue[0]]
        for p, q in pairwise(queue):
            gap = int(begin[q] - end[p])
            dark = gap > 0 and gap >= data.problem.units.break_even[u]
            interval += dark
            idle[u] += 0 if dark else gap
            known.setdefault((u, interval), []).append(q)
    for key, x in at.on.items():
        some = known.get(key)
        say(x, some is not None)
        say(at.since[key], data.most if some is None else int(begin[some[0]]))
        say(at.till[key], data.most if some is None else int(end[some[-1]]))
    for (p, u, j), x in at.within.items():
        say(x, p in known.get((u, j), ()))
    for u, ticks in idle.items():
        say(v.idle[u], ticks)
