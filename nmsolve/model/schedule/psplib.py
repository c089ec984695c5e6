"""Projects with limited resources (RCPSP): PSPLIB ``.sm`` and ``.mm``, and the format of Patterson, ``.rcp``.

Every activity is a process without units; it takes its demand of every resource while it runs. The first and the last activity
of such files stand for begin and end: they take no time and no resource and are left out. The others keep their numbers as names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.build import (
    MOST_BYTES,
    MOST_MODES,
    MOST_PROCESSES,
    Numbers,
    bare_edges,
    no_items,
    plain_units,
    require_no_circle,
    unit_sets,
    whole,
)
from nmsolve.model.schedule.problem import NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.schedule.statement import Stated

#: Most resources of a file.
MOST_RESOURCES = 1024


class Activity(NamedTuple):
    """One activity of a project: its name, its modes (span, demands), the activities after it, its project (-1: there is one)."""

    name: str
    modes: list[tuple[int, list[int]]]
    after: list[int]
    project: int = -1
    release: int = 0


def load_patterson(path: Path) -> Stated:
    """Read an ``.rcp`` file: activities and resources, capacities, then duration, demands and successors of each activity.

    Raises
    ------
    InputError : damaged, or nothing that can run
    """
    numbers = Numbers(read_limited(path, MOST_BYTES), str(path))
    count, resources = numbers.take("the number of activities", 1, MOST_PROCESSES), _resources(numbers)
    capacity = [numbers.take("a capacity") for _ in range(resources)]
    found = []
    for k in range(count):
        span, demand, after = row(numbers, k + 1, resources)
        ends = [numbers.take(f"a successor of activity {k + 1}", 1, count) - 1 for _ in range(after)]
        found.append(Activity(str(k + 1), [(span, demand)], ends))
    numbers.require_end()
    return project(path, found, capacity, "Patterson")


def _resources(numbers: Numbers) -> int:
    return numbers.take("the number of resources", 0, MOST_RESOURCES)


def row(numbers: Numbers, activity: int, resources: int) -> tuple[int, list[int], int]:
    """Return duration, demands, and number of successors of the next activity."""
    span = numbers.take(f"the duration of activity {activity}")
    demand = [numbers.take(f"a demand of activity {activity}") for _ in range(resources)]
    return span, demand, numbers.take(f"the number of successors of activity {activity}", 0, MOST_PROCESSES)


def load_psplib(path: Path) -> Stated:
    """Read an ``.sm`` file (one mode per activity) or an ``.mm`` file (several).

    Raises
    ------
    InputError : damaged, nothing that can run, or resources that are used up (nonrenewable ones)
    """
    text = read_limited(path, MOST_BYTES).decode("latin-1")
    count = _header(text, path, "jobs", MOST_PROCESSES)
    resources = _header(text, path, "- renewable", MOST_RESOURCES)
    for kind in ("nonrenewable", "doubly constrained"):
        if _header(text, path, f"- {kind}", MOST_RESOURCES, 0):
            raise InputError(f"the file has {kind} resources", str(path), "renewable resources only")
    after = _successors(text, path, count)
    modes = _requests(text, path, count, resources)
    rows = _section(text, path, "RESOURCEAVAILABILITIES", 1)
    capacity = [n for _, words in rows[:1] for n in words]
    if len(capacity) != resources:
        raise InputError(
            f"{len(capacity)} capacities", f"{path}: RESOURCEAVAILABILITIES", f"{resources}, one per resource"
        )
    found = [Activity(str(k + 1), modes[k], after[k]) for k in range(count)]
    return project(path, found, capacity, "PSPLIB")


def _header(text: str, path: Path, key: str, most: int, default: int | None = None) -> int:
    """Return the number after ``key ... :`` in the file's head."""
    found = re.search(rf"^[ \t]*{re.escape(key)}\b[^:\n]*:[ \t]*(\d{{1,9}})\b", text, re.MULTILINE)
    if found is None and default is not None:
        return default
    number = int(found[1]) if found else -1
    if not 0 <= number <= most:
        what = f"{key!r} is {number:,}" if found else f"no line {key!r}"
        raise InputError(what, str(path), f"the head of a PSPLIB file, numbers up to {most:,}")
    return number


def _section(text: str, path: Path, title: str, headings: int) -> list[tuple[int, list[int]]]:
    """Return line number and numbers of the rows between ``title`` (and so many headings) and the next line of stars."""
    lines = text.split("\n")
    begin = next((k for k, line in enumerate(lines) if line.strip().startswith(title)), None)
    if begin is None:
        raise InputError(f"no section {title}", str(path), "a PSPLIB file")
    out = []
    for k in range(begin + 1 + headings, len(lines)):
        line = lines[k].strip()
        if line.startswith("***"):
            break
        if not line or not line.strip("-"):
            continue
        words = line.split()
        if not all(w.isascii() and w.isdigit() and len(w) <= 12 for w in words):
            bad = next(w for w in words if not (w.isascii() and w.isdigit() and len(w) <= 12))
            raise InputError(f"found {bad[:30]!r}", f"{path}:{k + 1}", "a whole number from 0 to 10^12")
        out.append((k + 1, [int(w) for w in words]))
    return out


def _successors(text: str, path: Path, count: int) -> list[list[int]]:
    rows = _section(text, path, "PRECEDENCE RELATIONS", 1)
    if len(rows) != count:
        raise InputError(f"{len(rows)} activities", f"{path}: PRECEDENCE RELATIONS", f"{count}")
    out = []
    for k, (line, words) in enumerate(rows):
        ends = words[3:]
        if len(words) < 3 or words[0] != k + 1 or len(ends) != words[2]:
            raise InputError(
                f"the row of activity {k + 1} does not say its successors", f"{path}:{line}",
                "its number, its number of modes, of successors, and these",
            )  # fmt: skip
        bad = [q for q in ends if not 1 <= q <= count]
        if bad:
            raise InputError(f"activity {k + 1} precedes {bad[0]}", f"{path}:{line}", f"1..{count}")
        out.append([q - 1 for q in ends])
    return out


def _requests(text: str, path: Path, count: int, resources: int) -> list[list[tuple[int, list[int]]]]:
    """Return the modes of every activity: the first row of an activity begins with its number, all with the mode's."""
    out: list[list[tuple[int, list[int]]]] = []
    for line, words in _section(text, path, "REQUESTS/DURATIONS", 1):
        if len(words) == resources + 3 and words[0] == len(out) + 1:
            out.append([])
            words = words[1:]
        if len(words) != resources + 2 or not out or words[0] != len(out[-1]) + 1:
            raise InputError(
                f"the row is no mode of activity {max(1, len(out))} or {len(out) + 1}", f"{path}:{line}",
                f"activity, mode, duration and {resources} demands",
            )  # fmt: skip
        out[-1].append((words[1], words[2:]))
    if len(out) != count:
        raise InputError(f"{len(out)} activities", f"{path}: REQUESTS/DURATIONS", f"{count}")
    return out


def project(
    path: Path,
    activities: Sequence[Activity],
    capacity: Sequence[int],
    form: str,
    projects: Sequence[str] = (),
) -> Stated:
    """Return the problem of some projects that share resources, without the activities that are only begin or end.

    Raises
    ------
    InputError : a circle, a demand above the capacity, nothing to do
    """
    modes = sum(len(a.modes) for a in activities)
    if len(activities) > MOST_PROCESSES or modes > MOST_MODES:
        raise InputError(
            f"{len(activities):,} activities, {modes:,} modes", str(path), f"at most {MOST_PROCESSES:,}"
        )
    _require_resources(path, activities, capacity)
    awaits = {q for a in activities for q in a.after}
    kept = [k for k in range(len(activities)) if not _is_end(activities, k, k in awaits)]
    number = {k: n for n, k in enumerate(kept)}
    pairs = [(number[k], number[q]) for k in kept for q in activities[k].after if q in number]
    chosen = [activities[k] for k in kept]
    labels = [f"{projects[a.project]}/{a.name}" if a.project >= 0 else a.name for a in chosen]
    edges = bare_edges([a for a, _ in pairs], [b for _, b in pairs])
    require_no_circle(labels, edges.source, edges.target, str(path))
    flat = [mode for a in chosen for mode in a.modes]
    none = np.zeros(len(flat), np.int64)
    units, nothing = plain_units(()), np.full(len(kept), NEVER)
    first = np.concatenate([[0], np.cumsum([len(a.modes) for a in chosen])]).astype(np.int64)
    problem = ScheduleProblem(
        path.stem, tuple(labels), tuple(projects), whole([a.project for a in chosen]), np.full(len(kept), -1), units,
        unit_sets((), units.hops, str(path)),
        Modes(
            first, whole([span for span, _ in flat]), none - 1,
            whole([need for _, demand in flat for need in demand]).reshape(len(flat), len(capacity)), none, none - 1, none,
        ),
        no_items(), edges, Network(), tuple(f"R{k + 1}" for k in range(len(capacity))), whole(capacity),
        whole([a.release for a in chosen]), nothing, nothing, np.zeros(len(kept), np.int64),
    )  # fmt: skip
    return Stated(problem, form, process=tuple(a.name for a in chosen))


def _is_end(activities: Sequence[Activity], k: int, awaits: bool) -> bool:
    """Whether an activity stands for begin or end of its project: the first or last one, if it takes nothing.

    Something that waits for others and that others wait for is kept.
    """
    a = activities[k]
    idle = len(a.modes) == 1 and a.modes[0][0] == 0 and not any(a.modes[0][1])
    begins = k == 0 or activities[k - 1].project != a.project
    ends = k == len(activities) - 1 or activities[k + 1].project != a.project
    return idle and ((begins and not awaits) or (ends and not a.after))


def _require_resources(path: Path, activities: Sequence[Activity], capacity: Sequence[int]) -> None:
    for a in activities:
        for _, demand in a.modes:
            for r, need in enumerate(demand):
                if need > capacity[r]:
                    raise InputError(
                        f"activity {a.name} needs {need:,} of resource R{r + 1}, there are {capacity[r]:,}", str(path),
                        "demands that fit the capacities",
                    )  # fmt: skip
