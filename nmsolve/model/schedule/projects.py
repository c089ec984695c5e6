"""Projects whose activities share resources (RCPSP), as scheduling problems: from PSPLIB (:mod:`.psplib`), or rows of numbers.

Every activity is a process without units. It takes its demand of every renewable resource while it runs, and what its mode uses
of every nonrenewable one for good. Activities that only stand for begin and end take no time and no resource and are left out;
the others keep their numbers as names.

Patterson's format, ``.rcp``: activities and resources, capacities, then duration, demands and successors of each activity.
``.rcmp`` (MPLIB; also ``.txt``; Van Eynde and Vanhoucke 2020), projects that share resources: projects, resources, capacities;
then for every project its activities and its release time, which resources it uses, and rows of activities, whose successors are
called ``project:activity``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited
from nmsolve.model.schedule.budgets import Budgets
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
from nmsolve.model.types import starts

#: Most resources of a file.
MOST_RESOURCES = 1024


class Way(NamedTuple):
    """A mode: its ticks, its demand of every renewable resource, its use of every nonrenewable one."""

    span: int
    demand: list[int]
    use: list[int]


class Activity(NamedTuple):
    """One activity of a project: its name, its modes, the activities after it; its project (-1: there is one), its release;
    ``due`` and ``weight`` as in :class:`ScheduleProblem`."""

    name: str
    modes: list[Way]
    after: list[int]
    project: int = -1
    release: int = 0
    due: int = NEVER
    weight: int = 0


class Pool(NamedTuple):
    """What activities share, by name: of renewable resources at any time, of nonrenewable ones in all."""

    capacity: dict[str, int]
    budget: dict[str, int]


def renewable(capacity: Sequence[int]) -> Pool:
    """Return renewable resources R1, R2 and so on."""
    return Pool({f"R{k}": amount for k, amount in enumerate(capacity, start=1)}, {})


def project(
    path: Path, activities: Sequence[Activity], pool: Pool, form: str, projects: Sequence[str] = ()
) -> Stated:
    """Return the problem of some projects that share resources, without the activities that are only begin or end.

    A mode that demands more of a renewable resource than there is can never run: it is left out, as in tables of the field.

    Raises
    ------
    InputError : a circle, an activity without a mode that can run, nothing to do
    """
    count = sum(len(a.modes) for a in activities)
    if len(activities) > MOST_PROCESSES or count > MOST_MODES:
        raise InputError(
            f"{len(activities):,} activities, {count:,} modes", str(path), f"at most {MOST_PROCESSES:,}"
        )
    awaits = {q for a in activities for q in a.after}
    kept = [k for k in range(len(activities)) if not _is_end(activities, k, k in awaits)]
    number = {k: n for n, k in enumerate(kept)}
    pairs = [(number[k], number[q]) for k in kept for q in activities[k].after if q in number]
    chosen = [activities[k] for k in kept]
    labels = [f"{projects[a.project]}/{a.name}" if a.project >= 0 else a.name for a in chosen]
    edges = bare_edges([a for a, _ in pairs], [b for _, b in pairs])
    require_no_circle(labels, edges.source, edges.target, str(path))
    units = plain_units(())
    modes, budgets = _modes(path, chosen, pool)
    problem = ScheduleProblem(
        path.stem, tuple(labels), tuple(projects), whole([a.project for a in chosen]), np.full(len(kept), -1), units,
        unit_sets((), units.hops, str(path)), modes, no_items(), edges, Network(), tuple(pool.capacity),
        whole(list(pool.capacity.values())), whole([a.release for a in chosen]), np.full(len(kept), NEVER),
        whole([a.due for a in chosen]), whole([a.weight for a in chosen]), budgets=budgets,
    )  # fmt: skip
    return Stated(problem, form, process=tuple(a.name for a in chosen))


def _modes(path: Path, activities: Sequence[Activity], pool: Pool) -> tuple[Modes, Budgets]:
    """Return the modes that can run alone, with their numbers in the file, and what they use of nonrenewable resources."""
    ways = [[(k, way) for k, way in enumerate(a.modes) if not _excess(way, pool)] for a in activities]
    stuck = next((a for a, some in zip(activities, ways, strict=True) if not some), None)
    if stuck is not None:
        name, need, most = _excess(stuck.modes[0], pool)[0]
        every = "" if len(stuck.modes) == 1 else " in its first mode, and no other one can run"
        raise InputError(
            f"activity {stuck.name} needs {need:,} of resource {name}, there are {most:,}{every}", str(path),
            "demands that fit the capacities",
        )  # fmt: skip
    flat = [(k, way) for some in ways for k, way in some]
    none = np.zeros(len(flat), np.int64)
    first = starts([len(some) for some in ways])
    all_here = len(flat) == sum(len(a.modes) for a in activities)
    modes = Modes(
        first, whole([way.span for _, way in flat]), none - 1,
        whole([need for _, way in flat for need in way.demand]).reshape(len(flat), len(pool.capacity)), none, none - 1, none,
        None if all_here else whole([k for k, _ in flat]),
    )  # fmt: skip
    if not pool.budget:
        return modes, Budgets()
    use = whole([used for _, way in flat for used in way.use]).reshape(len(flat), len(pool.budget))
    return modes, Budgets(tuple(pool.budget), whole(list(pool.budget.values())), use)


def _excess(way: Way, pool: Pool) -> list[tuple[str, int, int]]:
    """Return name, demand and capacity of every renewable resource of which a mode demands more than there is."""
    rows = zip(pool.capacity.items(), way.demand, strict=True)
    return [(name, need, most) for (name, most), need in rows if need > most]


def _is_end(activities: Sequence[Activity], k: int, awaits: bool) -> bool:
    """Whether an activity only stands for begin or end of its project: the first or last one, if it takes nothing.

    Something that waits for others and that others wait for is kept, and so is an end that may be late at a cost.
    """
    a = activities[k]
    idle = (
        len(a.modes) == 1 and a.modes[0].span == 0 and not any(a.modes[0].demand) and not any(a.modes[0].use)
    )
    begins = k == 0 or activities[k - 1].project != a.project
    ends = k == len(activities) - 1 or activities[k + 1].project != a.project
    return idle and not a.weight and ((begins and not awaits) or (ends and not a.after))


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
