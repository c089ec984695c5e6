"""Projects as rows of numbers: Patterson's format, ``.rcp``, and several projects that share resources, ``.rcmp``.

``.rcp``: activities and resources, capacities, then duration, demands and successors of each activity. ``.rcmp`` (MPLIB; also
``.txt``; Van Eynde and Vanhoucke 2020): projects, resources, capacities; then for every project its activities and its release
time, which resources it uses, and rows of activities, whose successors are called ``project:activity``.
"""

from __future__ import annotations

from pathlib import Path

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import MOST_BYTES, MOST_PROCESSES, Numbers
from nmsolve.model.schedule.projects import MOST_RESOURCES, Activity, Way, project, renewable
from nmsolve.model.schedule.statement import Stated


def load_patterson(path: Path) -> Stated:
    """Read an ``.rcp`` file.

    Raises
    ------
    InputError : damaged, or nothing that can run
    """
    numbers = Numbers(read_limited(path, MOST_BYTES), str(path))
    count, resources = numbers.take("the number of activities", 1, MOST_PROCESSES), _resources(numbers)
    capacity = [numbers.take("a capacity") for _ in range(resources)]
    found = []
    for k in range(count):
        way, after = _row(numbers, k + 1, resources)
        ends = [numbers.take(f"a successor of activity {k + 1}", 1, count) - 1 for _ in range(after)]
        numbers.require_line_end(f"activity {k + 1}")
        found.append(Activity(str(k + 1), [way], ends))
    numbers.require_end()
    return project(path, found, renewable(capacity), "Patterson")


def _resources(numbers: Numbers) -> int:
    return numbers.take("the number of resources", 0, MOST_RESOURCES)


def _row(numbers: Numbers, activity: int, resources: int) -> tuple[Way, int]:
    """Return duration and demands, and the number of successors, of the next activity."""
    span = numbers.take(f"the duration of activity {activity}")
    demand = [numbers.take(f"a demand of activity {activity}") for _ in range(resources)]
    after = numbers.take(f"the number of successors of activity {activity}", 0, MOST_PROCESSES)
    return Way(span, demand, []), after


def load_mplib(path: Path) -> Stated:
    """Read an ``.rcmp`` file; projects are called ``1``, ``2``, ..., their processes ``1/2`` and so on.

    Raises
    ------
    InputError : damaged, or nothing that can run
    """
    numbers = Numbers(read_limited(path, MOST_BYTES), str(path))
    count, resources = numbers.take("the number of projects", 1, MOST_PROCESSES), _resources(numbers)
    capacity = [numbers.take("a capacity") for _ in range(resources)]
    found: list[Activity] = []
    after: list[list[tuple[int, int]]] = []
    first = [0]
    for k in range(count):
        size = numbers.take(f"the number of activities of project {k + 1}", 1, MOST_PROCESSES)
        release = numbers.take(f"the release time of project {k + 1}")
        uses = [numbers.take(f"whether project {k + 1} uses a resource", 0, 1) for _ in range(resources)]
        for n in range(size):
            way, ends = _row(numbers, n + 1, resources)
            after.append([_end(numbers, count) for _ in range(ends)])
            numbers.require_line_end(f"activity {n + 1} of project {k + 1}")
            for r, need in enumerate(way.demand):
                if need and not uses[r]:
                    raise InputError(
                        f"activity {n + 1} of project {k + 1} needs {need} of resource {r + 1}, which its project does not use",
                        numbers.where(), "0, or a 1 for the resource in the project's second row",
                    )  # fmt: skip
            found.append(Activity(str(n + 1), [way], [], k, release))
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
    return project(path, found, renewable(capacity), "MPLIB", [str(k + 1) for k in range(count)])


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
