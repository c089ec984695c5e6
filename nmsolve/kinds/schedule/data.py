"""What the script of a schedule's page draws: bars, power, memory and transfers as short lists of whole numbers.

A page stays below some megabytes: where there is more than :data:`BARS` allow, neighbouring runs of a unit are drawn as one, and
what is left out is said in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain as joined
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.hw.schedule.occupancy import Steps, memory_steps, transfers
from nmsolve.model.schedule.problem import NEVER
from nmsolve.report.drawing import PALETTE

if TYPE_CHECKING:
    from nmsolve.check.schedule.reevaluate import Reevaluation
    from nmsolve.hw.schedule.critical import Link
    from nmsolve.kinds.schedule.statement import Given
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule

#: Most bars, steps of memory, transfers, deadlines and letters of labels in a page, and most processes without units.
BARS, STEPS, MOVES, MARKS, LETTERS, ROWS = 50_000, 50_000, 12_000, 5_000, 600_000, 2_000
#: The finest bars where neighbours are merged: parts of the schedule.
FINEST = 4000

Bar = tuple[int, int, int, int]


@dataclass
class PageData:
    """What goes into the page: ``data`` for the script, and ``left_out`` in words."""

    data: dict[str, Any]
    left_out: list[str] = field(default_factory=list)


def page_data(given: Given, answer: Schedule, seen: Reevaluation, chain: Sequence[Link]) -> PageData:
    """Return what is drawn of a legal schedule."""
    problem = given.problem
    out = PageData({})
    on_units = any(seen.work)
    names, bars, merged = bars_by_row(problem, answer, seen, out, BARS)
    if on_units and (bare := int((problem.modes.unit_set[answer.mode] < 0).sum())):
        out.left_out.append(f"{bare:,} processes take no unit and are not drawn")
    end = max(1, seen.objectives["makespan"])
    out.data |= {
        "end": end,
        "tick": given.stated.tick or 0,
        "rows": names,
        "what": "unit" if on_units else "process",
        "networks": list(problem.tasks),
        "colours": PALETTE,
        "merged": merged,
        "bars": [_flat(row) for row in bars],
        "on": [_pairs(intervals) for intervals in seen.on] if on_units else [],
        "net": problem.task.tolist(),
        "partner": [[p, int(problem.partner[p])] for p in np.flatnonzero(problem.partner >= 0).tolist()],
        "labels": _labels(problem, merged, out),
        "chain": [[link.process, link.source, _reason(link)] for link in chain],
        "marks": _marks(problem, answer, given.stated.frame, out),
    }
    if on_units:
        out.data |= {"moves": _moves(problem, answer, out), "memory": _memory(problem, answer, end, out)}
        out.data["limits"] = [0 if m >= NEVER else m for m in problem.units.memory.tolist()]
    return out


def bars_by_row(
    problem: ScheduleProblem, answer: Schedule, seen: Reevaluation, out: PageData, most: int
) -> tuple[list[str], Sequence[Sequence[Bar]], bool]:
    """Return the rows' names (units, or processes where none takes a unit), at most this many bars, and whether some were merged.

    Then a bar names a network, else a process. What is left out is said in ``out``.
    """
    on_units = any(seen.work)
    names, rows = (list(problem.units.names), seen.work) if on_units else _process_rows(problem, answer, out)
    bars, merged = _few(problem, rows, max(1, seen.objectives["makespan"]), out, most)
    return names, bars, merged


def _reason(link: Link) -> str:
    return "" if link.source < 0 else f"{link.reason} {link.away} {link.wait}"


def _process_rows(
    problem: ScheduleProblem, answer: Schedule, out: PageData
) -> tuple[list[str], list[list[Bar]]]:
    """Return a row for every process, in the order of starts, where none takes a unit."""
    order = np.lexsort((np.arange(problem.count), answer.start))
    if len(order) > ROWS:
        out.left_out.append(f"the last {len(order) - ROWS:,} of {len(order):,} processes are not drawn")
        order = order[:ROWS]
    start, end = answer.start.tolist(), answer.end(problem).tolist()
    rows = [[(start[p], start[p], end[p], p)] for p in order.tolist()]
    return [problem.labels[p] for p in order.tolist()], rows


def _few(
    problem: ScheduleProblem, rows: Sequence[Sequence[Bar]], end: int, out: PageData, most: int
) -> tuple[Sequence[Sequence[Bar]], bool]:
    """Return at most ``most`` bars, by row, and whether neighbours were merged: then a bar names a network."""
    count = sum(map(len, rows))
    if count <= most:
        return rows, False
    parts = FINEST
    while True:
        width = -(-end // parts)
        merged = [_merged(problem, row, width) for row in rows]
        if sum(map(len, merged)) <= most or parts == 1:
            break
        parts //= 2
    out.left_out.append(
        f"{count:,} runs are too many: those of a unit that are less than {width:,} ticks apart are one bar, in the colour of "
        "the network that works longest in it"
    )
    return merged, True


def _merged(problem: ScheduleProblem, row: Sequence[Bar], width: int) -> list[Bar]:
    """Join bars that are less than ``width`` apart, up to bars of four such widths."""
    task, found = problem.task, []
    work: dict[int, int] = {}
    since = until = -1
    for begin, _, end, p in row:
        if work and (begin - until >= width or end - since > 4 * width):
            found.append((since, since, until, max(work, key=lambda t: work[t])))
            work = {}
        if not work:
            since = begin
        net, until = int(task[p]), end
        work[net] = work.get(net, 0) + end - begin
    if work:
        found.append((since, since, until, max(work, key=lambda t: work[t])))
    return found


def _flat(row: Sequence[Bar]) -> list[int]:
    """Return bars as distances: from the end of the last one to the begin, load, run; then the process."""
    last, out = 0, []
    for begin, start, end, p in row:
        out += [begin - last, start - begin, end - start, p]
        last = end
    return out


def _pairs(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Return intervals as distances: from the end of the last one, and lengths."""
    last, out = 0, []
    for a, b in intervals:
        out += [a - last, b - a]
        last = b
    return out


def _labels(problem: ScheduleProblem, merged: bool, out: PageData) -> list[str]:
    """Return the names of the processes, without the network where the label begins with it."""
    if merged:
        return []
    short = []
    for label, t in zip(problem.labels, problem.task.tolist(), strict=True):
        head = f"{problem.tasks[t]}/" if t >= 0 else ""
        short.append(label[len(head) - 1 :] if head and label.startswith(head) else label)
    if sum(map(len, short)) > LETTERS:
        out.left_out.append("the names of the processes are too many; their numbers are shown")
        return []
    return short


def _marks(problem: ScheduleProblem, answer: Schedule, frame: Any, out: PageData) -> list[list[int]]:
    """Return ``process, deadline, due, late`` (-1: none) of late processes, and of the last one of every network and frame."""
    end, weight = answer.end(problem), problem.weight
    late = np.where(weight > 0, np.maximum(0, end - problem.due), 0)
    number = frame if len(frame) == problem.count else np.zeros(problem.count, np.int64)
    bound = np.flatnonzero((problem.deadline < NEVER) | (problem.due < NEVER))
    order = bound[np.lexsort((end[bound], number[bound], problem.task[bound]))]
    last = np.ones(len(order), bool)
    last[:-1] = (np.diff(problem.task[order]) != 0) | (np.diff(number[order]) != 0)
    shown = np.union1d(order[last], np.flatnonzero(late > 0))
    if len(shown) > MARKS:
        out.left_out.append(f"only the first {MARKS:,} of {len(shown):,} deadlines and late ends are marked")
        shown = shown[np.argsort(end[shown], kind="stable")][:MARKS]
    deadline, due = (
        np.where(t[shown] < NEVER, t[shown], -1)
        for t in (problem.deadline, np.where(weight > 0, problem.due, NEVER))
    )
    return np.stack([shown, deadline, due, late[shown]], axis=1).tolist()  # type: ignore[no-any-return]


def _moves(problem: ScheduleProblem, answer: Schedule, out: PageData) -> list[int]:
    """Return transfers as ``source process, target process, unit, unit, since the last one leaves, ticks on the way``."""
    moved = transfers(problem, answer)
    shown = np.arange(len(moved.edge))
    if len(shown) > MOVES:
        out.left_out.append(f"of {len(shown):,} transfers the {MOVES:,} with most bytes are drawn")
        shown = np.sort(np.argsort(-problem.edges.bytes[moved.edge], kind="stable")[:MOVES])
    edge, begin = moved.edge[shown], moved.begin[shown]
    columns = (
        problem.edges.source[edge], problem.edges.target[edge], moved.source[shown], moved.target[shown],
        np.diff(begin, prepend=0), moved.end[shown] - begin,
    )  # fmt: skip
    return np.stack(columns, axis=1).ravel().tolist() if len(shown) else []  # type: ignore[no-any-return]


def _memory(problem: ScheduleProblem, answer: Schedule, end: int, out: PageData) -> list[list[int]]:
    """Return steps of every unit as distances in time and bytes held."""
    steps = memory_steps(problem, answer)
    if not len(steps.time):
        return []
    parts = FINEST
    found = [_unit_steps(steps, u, 1) for u in range(problem.units.count)]
    width = 1
    while sum(len(row) for row in found) > 2 * STEPS and parts >= 1:
        width = -(-end // parts)
        found = [_unit_steps(steps, u, width) for u in range(problem.units.count)]
        parts //= 2
    if width > 1:
        out.left_out.append(f"of what a memory holds, the most in every {width:,} ticks is drawn")
    return found


def _unit_steps(steps: Steps, u: int, width: int) -> list[int]:
    """Return the steps of one unit; of those in ``width`` ticks the largest."""
    part = slice(int(steps.indptr[u]), int(steps.indptr[u + 1]))
    time, held = steps.time[part], steps.held[part]
    if width > 1 and len(time):
        place = time // width
        first = np.flatnonzero(np.diff(place, prepend=-1))
        most = np.maximum.reduceat(held, first)
        # What is held when a part begins counts in it, too.
        before = np.where(first > 0, held[np.maximum(first - 1, 0)], 0)
        time, held = place[first] * width, np.maximum(most, before)
        after = np.append(place[first][1:] > place[first][:-1] + 1, True)
        tail = np.append(first[1:], len(place)) - 1
        time = np.stack([time, np.where(after, time + width, time)], axis=1).ravel()
        held = np.stack([held, np.where(after, steps.held[part][tail], held)], axis=1).ravel()
        kept = np.append(True, held[1:] != held[:-1])
        time, held = time[kept], held[kept]
    return list(joined.from_iterable(zip(np.diff(time, prepend=0).tolist(), held.tolist(), strict=True)))
