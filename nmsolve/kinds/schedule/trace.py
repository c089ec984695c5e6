"""A schedule for other tools: a trace that Perfetto and chrome://tracing open, and a table (CSV) for spreadsheets.

A trace counts microseconds: of the schedule if its file says how long a tick is, else a tick is one of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from nmsolve.check.schedule.reevaluate import Reevaluation
from nmsolve.hw.schedule.occupancy import memory_steps
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.trace_events import counter, named_rows, span, trace_text

#: Columns of the table.
COLUMNS = ("task", "process", "unit", "begin", "start", "end", "loaded")
#: Numbers of the groups of rows in a trace.
UNITS, MEMORY, BARE = 1, 2, 3


def trace_json(problem: ScheduleProblem, answer: Schedule, seen: Reevaluation, tick: float = 0.0) -> str:
    """Return the trace of a legal schedule, as it was ``seen``: JSON in the Trace Event Format.

    A row per unit has its loads, processes and the times in which it is off, from 0 to the makespan; a counter per unit has the
    bytes in its memory. Processes without units have a row per network. Every event of a process has its ticks in ``args``.

    Parameters
    ----------
    tick : seconds, 0 if unknown
    """
    scale = tick * 1e6 if tick else 1.0
    bare = [p for p, k in enumerate(problem.modes.unit_set[answer.mode].tolist()) if k < 0]
    events = _named(problem, seen, bool(bare))
    for u, work in enumerate(seen.work):
        for begin, start, end, p in work:
            args = {
                "begin": begin,
                "start": start,
                "end": end,
                "loaded": start > begin or bool(answer.loaded[p]),
            }
            if start > begin:
                item = problem.items.names[int(problem.modes.item[answer.mode[p]])]
                events.append(_span(f"load {item}", "load", UNITS, u, (begin, start), scale, {}))
            events.append(_span(problem.labels[p], _task(problem, p), UNITS, u, (start, end), scale, args))
        for a, b in _dark(seen.on[u], seen.objectives["makespan"]):
            events.append(_span("off", "power", UNITS, u, (a, b), scale, {}))
    start, ends = answer.start.tolist(), answer.end(problem).tolist()
    for p in bare:
        row = max(0, int(problem.task[p]))
        args = {"start": start[p], "end": ends[p]}
        events.append(
            _span(problem.labels[p], _task(problem, p), BARE, row, (start[p], ends[p]), scale, args)
        )
    steps = memory_steps(problem, answer)
    for u, name in enumerate(problem.units.names):
        for k in range(int(steps.indptr[u]), int(steps.indptr[u + 1])):
            held = {"bytes": int(steps.held[k])}
            events.append(counter(f"memory of {name}", MEMORY, int(steps.time[k]) * scale, held))
    about = {"name": problem.name, "seconds of a tick": tick or None, "makespan": seen.objectives["makespan"]}
    return trace_text(about, events)


def _named(problem: ScheduleProblem, seen: Reevaluation, bare: bool) -> list[dict[str, Any]]:
    """Return the events that name groups and rows; ``bare``: there are processes without units."""
    groups = [(UNITS, "units", problem.units.names), (MEMORY, "memory", ())] if any(seen.work) else []
    return named_rows(groups + ([(BARE, "processes without units", problem.tasks)] if bare else []))


def _span(
    name: str, kind: str, group: int, row: int, when: tuple[int, int], scale: float, args: dict[str, Any]
) -> dict[str, Any]:
    return span(name, kind, (group, row), (when[0] * scale, when[1] * scale), args)


def _task(problem: ScheduleProblem, p: int) -> str:
    """Return the network of a process, both of an interaction."""
    both = (int(problem.task[p]), int(problem.partner[p]))
    return "+".join(problem.tasks[t] for t in both if t >= 0) or "none"


def _dark(intervals: list[tuple[int, int]], finish: int) -> list[tuple[int, int]]:
    """Return when a unit is off, of the times that it is on."""
    edges = [0, *(t for interval in intervals for t in interval), finish]
    return [(a, b) for a, b in list(pairwise(edges))[::2] if b > a]


def schedule_csv(problem: ScheduleProblem, answer: Schedule) -> str:
    """Return the table of :func:`schedule_rows` as text."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(schedule_rows(problem, answer))
    return text.getvalue()


def schedule_rows(problem: ScheduleProblem, answer: Schedule) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of every process and every unit that it takes (or one without a unit), in the order of starts."""
    units, sets = problem.units.names, problem.sets
    begin, start, end = (a.tolist() for a in (answer.begin(problem), answer.start, answer.end(problem)))
    chosen = problem.modes.unit_set[answer.mode].tolist()
    for p in sorted(range(problem.count), key=lambda p: (start[p], p)):
        task = "" if (t := _task(problem, p)) == "none" else t
        own = [units[u] for u in sets.of(chosen[p]).tolist()] if chosen[p] >= 0 else [""]
        loaded = "yes" if answer.loaded[p] else "no"
        for unit in own:
            yield task, problem.labels[p], unit, begin[p], start[p], end[p], loaded
