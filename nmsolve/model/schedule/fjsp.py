"""Flexible job shops: ``.fjs`` files of Brandimarte, Hurink, Dauzère-Pérès.

Jobs and machines, then for every job its operations, and for each the number of machines that can do it, with their times. A job
is a network, an operation a process of one unit; the operations of a job follow one another.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
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
from nmsolve.model.schedule.problem import NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.schedule.statement import Stated


def load_fjsp(path: Path) -> Stated:
    """Read an ``.fjs`` file; job ``j`` and its operation ``k`` make the process ``j/k``, machine ``m`` is the unit ``m``.

    Raises
    ------
    InputError : damaged, or nothing to do
    """
    data = read_limited(path, MOST_BYTES)
    head = data.lstrip().split(b"\n", 1)[0].split()
    numbers = Numbers(data, str(path))
    jobs = numbers.take("the number of jobs", 1, MOST_PROCESSES)
    machines = numbers.take("the number of machines", 1, MOST_UNITS)
    if len(head) not in (2, 3):
        raise InputError(
            f"{len(head)} words in the first line",
            f"{path}:1",
            "jobs, machines, and maybe machines per operation",
        )
    numbers.at = len(head)
    labels: list[tuple[int, int]] = []
    first, span, unit = [0], [], []
    for j in range(jobs):
        for k in range(numbers.take(f"the number of operations of job {j + 1}", 0, MOST_PROCESSES)):
            ways = numbers.take(f"the number of machines for operation {k + 1} of job {j + 1}", 1, MOST_MODES)
            for _ in range(ways):
                unit.append(numbers.take(f"a machine of operation {k + 1} of job {j + 1}", 1, machines) - 1)
                span.append(numbers.take(f"a time of operation {k + 1} of job {j + 1}", 1))
            labels.append((j, k))
            first.append(len(span))
        if len(labels) > MOST_PROCESSES or len(span) > MOST_MODES:
            raise InputError(
                f"more than {MOST_PROCESSES:,} operations or {MOST_MODES:,} times", numbers.where(), "fewer"
            )
    numbers.require_end()
    if not labels:
        raise InputError("no operations", str(path), "at least one")
    units = plain_units([str(m + 1) for m in range(machines)])
    count, none = len(labels), np.zeros(len(span), np.int64)
    follows = [k for k in range(1, count) if labels[k][0] == labels[k - 1][0]]
    nothing = np.full(count, NEVER)
    problem = ScheduleProblem(
        path.stem, tuple(f"{j + 1}/{k + 1}" for j, k in labels), tuple(str(j + 1) for j in range(jobs)),
        whole([j for j, _ in labels]), np.full(count, -1), units,
        unit_sets([(m,) for m in range(machines)], units.hops, str(path)),
        Modes(whole(first), whole(span), whole(unit), np.zeros((len(span), 0), np.int64), none, none - 1, none),
        no_items(), bare_edges([k - 1 for k in follows], follows), Network(), (), np.zeros(0, np.int64),
        np.zeros(count, np.int64), nothing, nothing, np.zeros(count, np.int64),
    )  # fmt: skip
    return Stated(problem, "flexible job shop", process=tuple(str(k + 1) for _, k in labels))
