"""Job shops: flexible ones (``.fjs``; Brandimarte, Hurink, Dauzère-Pérès) and classic ones (``.jsp``).

A job is a network, an operation a process of one unit; the operations of a job follow one another. ``.fjs``: jobs and machines,
then for every job its operations, and for each the number of machines that can do it, with their times. ``.jsp``: jobs and
machines, then a row for every job, machine and time of each operation in turn, machines from 0 (Fisher and Thompson 1963); or all
times and then all machines, from 1 (Taillard 1993).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import (
    MOST_BYTES,
    MOST_MODES,
    MOST_PROCESSES,
    MOST_UNITS,
    Numbers,
    bare_edges,
    no_items,
    plain_units,
    unit_sets,
    whole,
)
from nmsolve.model.schedule.problem import MOST_TICKS, NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.schedule.statement import Stated

#: Machines, from 0, that can do an operation, with their times; none for an operation that is left out.
Operation = list[tuple[int, int]]


def load_fjsp(path: Path) -> Stated:
    """Read an ``.fjs`` file; job ``j`` and its operation ``k`` make the process ``j/k``, machine ``m`` is the unit ``m``.

    Raises
    ------
    InputError : damaged, or nothing to do
    """
    data = read_limited(path, MOST_BYTES)
    head = data.lstrip().split(b"\n", 1)[0].split()
    numbers = Numbers(data, str(path))
    count = numbers.take("the number of jobs", 1, MOST_PROCESSES)
    machines = numbers.take("the number of machines", 1, MOST_UNITS)
    if len(head) not in (2, 3):
        raise InputError(
            f"{len(head)} words in the first line",
            f"{path}:1",
            "jobs, machines, and maybe machines per operation",
        )
    numbers.at = len(head)
    jobs: list[list[Operation]] = []
    operations = modes = 0
    for j in range(count):
        jobs.append([])
        for k in range(numbers.take(f"the number of operations of job {j + 1}", 0, MOST_PROCESSES)):
            what = f"operation {k + 1} of job {j + 1}"
            ways = numbers.take(f"the number of machines for {what}", 1, MOST_MODES)
            some = [_way(numbers, what, machines) for _ in range(ways)]
            if len({m for m, _ in some}) < ways:
                doubtful(f"{what} has a machine twice", numbers.where(), "every machine once")
            jobs[-1].append(some)
            operations, modes = operations + 1, modes + ways
        numbers.require_line_end(f"job {j + 1}")
        if operations > MOST_PROCESSES or modes > MOST_MODES:
            raise InputError(
                f"more than {MOST_PROCESSES:,} operations or {MOST_MODES:,} times", numbers.where(), "fewer"
            )
    numbers.require_end()
    return _shop(path, jobs, machines, "flexible job shop")


def _way(numbers: Numbers, what: str, machines: int) -> tuple[int, int]:
    machine = numbers.take(f"a machine of {what}", 1, machines) - 1
    return machine, numbers.take(f"a time of {what}", 1)


def _shop(path: Path, jobs: list[list[Operation]], machines: int, form: str, base: int = 1) -> Stated:
    """Return the problem; machines are called by their numbers, the first one ``base``."""
    labels = [(j, k) for j, job in enumerate(jobs) for k, ways in enumerate(job) if ways]
    if not labels:
        raise InputError("no operations", str(path), "at least one")
    flat = [way for job in jobs for ways in job for way in ways]
    first = np.cumsum([0, *(len(ways) for job in jobs for ways in job if ways)]).astype(np.int64)
    units = plain_units([str(m + base) for m in range(machines)])
    count, none = len(labels), np.zeros(len(flat), np.int64)
    follows = [k for k in range(1, count) if labels[k][0] == labels[k - 1][0]]
    nothing = np.full(count, NEVER)
    problem = ScheduleProblem(
        path.stem, tuple(f"{j + 1}/{k + 1}" for j, k in labels), tuple(str(j + 1) for j in range(len(jobs))),
        whole([j for j, _ in labels]), np.full(count, -1), units,
        unit_sets([(m,) for m in range(machines)], units.hops, str(path)),
        Modes(
            first, whole([span for _, span in flat]), whole([m for m, _ in flat]), np.zeros((len(flat), 0), np.int64), none,
            none - 1, none,
        ),
        no_items(), bare_edges([k - 1 for k in follows], follows), Network(), (), np.zeros(0, np.int64),
        np.zeros(count, np.int64), nothing, nothing, np.zeros(count, np.int64),
    )  # fmt: skip
    return Stated(problem, form, process=tuple(str(k + 1) for _, k in labels))


class _Line(NamedTuple):
    """The numbers of a line, and where it is."""

    where: str
    numbers: list[int]


def load_job_shop(path: Path) -> Stated:
    """Read a ``.jsp`` file of either form, which the lengths of its rows tell apart; processes as of :func:`load_fjsp`, units by
    the numbers of machines in the file.

    Raises
    ------
    InputError : damaged, or nothing to do
    """
    lines = _lines(path)
    head = lines[0].numbers if lines else []
    # Taillard's own files have seeds and bounds behind these
    if len(head) not in (2, 6) or not (1 <= head[0] <= MOST_PROCESSES and 1 <= head[1] <= MOST_UNITS):
        raise InputError(
            f"the first numbers are {head[:6]}", lines[0].where if lines else str(path), "jobs and machines"
        )
    (count, machines), rows = head[:2], lines[1:]
    if count * machines > MOST_PROCESSES:
        raise InputError(f"{count * machines:,} operations", str(path), f"at most {MOST_PROCESSES:,}")
    wide = 2 * machines
    matrices = len(rows) == 2 * count and all(len(row.numbers) == machines for row in rows)
    if matrices:
        times, rows = rows[:count], rows[count:]
        pairs = [list(zip(m.numbers, t.numbers, strict=True)) for t, m in zip(times, rows, strict=True)]
    else:
        wrong = next((row for row in rows if len(row.numbers) != wide), None)
        if len(rows) != count or wrong is not None:
            what = f"{len(rows)} rows of jobs" if wrong is None else f"{len(wrong.numbers)} numbers"
            raise InputError(
                what, wrong.where if wrong else str(path),
                f"{count} rows of {wide} numbers, machine and time in turn, or {2 * count} of {machines}, times then machines",
            )  # fmt: skip
        pairs = [list(zip(row.numbers[::2], row.numbers[1::2], strict=True)) for row in rows]
    base = _base(pairs, machines, int(matrices), rows)
    jobs = [[[(m - base, span)] if span else [] for m, span in job] for job in pairs]
    return _shop(path, jobs, machines, "job shop", base)


def _base(pairs: list[list[tuple[int, int]]], machines: int, usual: int, rows: list[_Line]) -> int:
    """Return the number of the first machine, 0 or 1; machines and times that cannot be are refused."""
    used = {m for job in pairs for m, _ in job}
    other = 1 - usual
    apart = not usual <= min(used) <= max(used) < usual + machines
    base = other if apart and other <= min(used) <= max(used) < other + machines else usual
    for job, row in zip(pairs, rows, strict=True):
        for k, (m, span) in enumerate(job, start=1):
            if not base <= m < base + machines:
                raise InputError(
                    f"operation {k} is on machine {m}", row.where, f"{usual}..{usual + machines - 1}"
                )
            if span >= MOST_TICKS:
                raise InputError(f"operation {k} takes {span}", row.where, f"less than {MOST_TICKS:,} ticks")
            if span == 0:
                doubtful(f"operation {k} takes no time and is left out", row.where, "at least 1 tick")
        if len({m for m, _ in job}) < len(job):
            doubtful("a job is on one machine twice", row.where, "every machine once, as in job shops")
    if base != usual:
        doubtful(f"machines are numbered from {base}", rows[0].where, f"from {usual} in this form")
    return base


def _lines(path: Path) -> list[_Line]:
    """Return the lines of numbers. Comments (``#``) and Taillard's headings are passed over, other words with a warning."""
    out = []
    text = read_limited(path, MOST_BYTES).decode("utf-8-sig", "replace")
    for k, whole_line in enumerate(text.split("\n"), start=1):
        words, where = whole_line.partition("#")[0].split(), f"{path}:{k}"
        bad = next((w for w in words if not (w.isascii() and w.isdigit() and len(w) < 14)), None)
        if bad is None:
            out += [_Line(where, [int(w) for w in words])] if words else []
        elif out and not words[0].isalpha():
            raise InputError(f"found {bad[:30]!r}", where, "whole numbers")
        elif words[:2] != ["Nb", "of"] and words not in (["Times"], ["Machines"]):
            doubtful(
                f"the line {' '.join(words)[:60]!r} is passed over", where, "numbers, or # and a comment"
            )
    return out
