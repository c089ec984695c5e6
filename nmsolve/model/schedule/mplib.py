"""Several projects that share resources: ``.txt`` files of MPLIB (Van Eynde and Vanhoucke).

Projects, resources and capacities; then for every project its activities and its release time, which resources it uses, and
per activity the duration, the demands, the number of successors, and these as ``project:activity``.
"""

from __future__ import annotations

from pathlib import Path

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import MOST_BYTES, MOST_PROCESSES, Numbers
from nmsolve.model.schedule.psplib import MOST_RESOURCES, Activity, project, row
from nmsolve.model.schedule.statement import Stated


def load_mplib(path: Path) -> Stated:
    """Read an MPLIB file; projects are called ``1``, ``2``, ..., their processes ``1/2`` and so on.

    Raises
    ------
    InputError : damaged, or nothing that can run
    """
    numbers = Numbers(read_limited(path, MOST_BYTES), str(path))
    count = numbers.take("the number of projects", 1, MOST_PROCESSES)
    resources = numbers.take("the number of resources", 0, MOST_RESOURCES)
    capacity = [numbers.take("a capacity") for _ in range(resources)]
    found: list[Activity] = []
    after: list[list[tuple[int, int]]] = []
    first = [0]
    for k in range(count):
        size = numbers.take(f"the number of activities of project {k + 1}", 1, MOST_PROCESSES)
        release = numbers.take(f"the release time of project {k + 1}")
        for _ in range(resources):
            numbers.take(f"whether project {k + 1} uses a resource", 0, 1)
        for n in range(size):
            span, demand, ends = row(numbers, n + 1, resources)
            after.append([_end(numbers, count) for _ in range(ends)])
            found.append(Activity(str(n + 1), [(span, demand)], [], k, release))
        first.append(len(found))
        if len(found) > MOST_PROCESSES:
            raise InputError(f"more than {MOST_PROCESSES:,} activities", numbers.where(), "fewer")
    numbers.require_end()
    for a, targets in zip(found, after, strict=True):
        for k, n in targets:
            if n > first[k] - first[k - 1]:
                raise InputError(
                    f"activity {a.name} of project {a.project + 1} precedes {k}:{n}", str(path),
                    f"an activity of project {k}, 1..{first[k] - first[k - 1]}",
                )  # fmt: skip
            a.after.append(first[k - 1] + n - 1)
    return project(path, found, capacity, "MPLIB", [str(k + 1) for k in range(count)])


def _end(numbers: Numbers, count: int) -> tuple[int, int]:
    """Return project and activity, from 1, of the next word ``project:activity``."""
    word = numbers.words[numbers.at] if numbers.at < len(numbers.words) else b""
    parts = word.split(b":")
    if len(parts) == 2 and all(p.isdigit() and len(p) < 10 for p in parts) and 1 <= int(parts[0]) <= count:
        numbers.at += 1
        if int(parts[1]) >= 1:
            return int(parts[0]), int(parts[1])
    numbers.at += 1
    shown = word[:30].decode("utf-8", "replace")
    raise InputError(f"a successor is {shown!r}", numbers.where(), f"project:activity, projects 1..{count}")
