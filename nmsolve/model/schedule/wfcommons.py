"""Workflows in WfFormat (WfCommons, schema 1.4 and 1.5): tasks with run times, joined by files.

Every task is a process that can run on each of some equal units. A tick is a millisecond; a task takes at least one. What a task
reads of the files that another one wrote are the bytes between them, which take time and energy only where a machine says so.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import decode_json, read_limited
from nmsolve.model.schedule.build import (
    MOST_BYTES,
    MOST_MODES,
    MOST_PROCESSES,
    MOST_UNITS,
    no_items,
    plain_units,
    require_no_circle,
    unit_sets,
    whole,
)
from nmsolve.model.schedule.problem import NEVER, Edges, Modes, Network, ScheduleProblem, Units
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.unknown_members import name_unknown_members

#: Ticks of a second.
TICKS = 1000

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class _File(msgspec.Struct, rename="camel"):
    """A file: of the whole workflow (``id``), or of one task (``name`` and ``link``, schema 1.4)."""

    id: str = ""
    name: str = ""
    link: str = ""
    size_in_bytes: Bytes = 0


class _WorkflowTask(msgspec.Struct, rename="camel"):
    """A task as specified; in schema 1.4 with its files and run time, in 1.5 these are elsewhere."""

    name: str
    id: str = ""
    parents: list[str] = []
    children: list[str] = []
    input_files: list[str] = []
    output_files: list[str] = []
    files: list[_File] = []
    runtime_in_seconds: Seconds = 0.0
    runtime: Seconds = 0.0
    cores: float = 1
    core_count: float = 1


class _Run(msgspec.Struct, rename="camel"):
    """How a task ran; the schema has ``machine``, instances have ``machines``."""

    id: str
    runtime_in_seconds: Seconds
    machine: str = ""
    machines: list[str] = []
    core_count: float = 1


class _Specification(msgspec.Struct):
    tasks: list[_WorkflowTask]
    files: list[_File] = []


class _Execution(msgspec.Struct):
    tasks: list[_Run]


class _Workflow(msgspec.Struct):
    specification: _Specification | None = None
    execution: _Execution | None = None
    tasks: list[_WorkflowTask] = []


class _Document(msgspec.Struct):
    workflow: _Workflow
    name: str = ""


def load_workflow(path: Path, units: Units | None = None, network: Network | None = None) -> Stated:
    """Read a workflow.

    Parameters
    ----------
    units : where it runs; by default as many equal ones as machines ran it, or one
    network : between them; by default moving data takes nothing

    Raises
    ------
    InputError : not of this form, unknown or repeated ids, a circle
    """
    data = read_limited(path, MOST_BYTES)
    _require_count(data, path)
    workflow = decode_json(data, _Document, path).workflow
    name_unknown_members(data, _Document, path, NOT_READ)
    _warn_of_cores(workflow, path)
    tasks, span, machines = _described(workflow, path)
    names = [t.id or t.name for t in tasks]
    twice = next((name for name, k in Counter(names).items() if k > 1), None)
    if twice is not None:
        raise InputError(f"two tasks are called {twice!r}", f"{path}: $.workflow", "every id once")
    if units is None:
        units = plain_units([f"unit{k}" for k in range(max(1, min(machines, MOST_UNITS)))])
    count, each = len(tasks), units.count
    if not 1 <= count <= MOST_PROCESSES or count * each > MOST_MODES:
        raise InputError(
            f"{count:,} tasks on {each:,} units",
            str(path),
            f"1 to {MOST_PROCESSES:,} tasks, {MOST_MODES:,} pairs",
        )
    edges = _edges(tasks, names, workflow.specification.files if workflow.specification else [], path)
    require_no_circle(names, edges.source, edges.target, str(path))
    total, nothing = count * each, np.full(count, NEVER)
    none = np.zeros(total, np.int64)
    problem = ScheduleProblem(
        path.stem, tuple(names), (), np.full(count, -1), np.full(count, -1), units,
        unit_sets([(k,) for k in range(each)], units.hops, str(path)),
        Modes(
            np.arange(count + 1) * each, np.repeat(whole(span), each), np.tile(np.arange(each), count),
            np.zeros((total, 0), np.int64), none, none - 1, none,
        ),
        no_items(), edges, network or Network(), (), np.zeros(0, np.int64), np.zeros(count, np.int64), nothing, nothing,
        np.zeros(count, np.int64),
    )  # fmt: skip
    return Stated(problem, "WfFormat", tick=1 / TICKS, process=tuple(names))


class _CountedTasks(msgspec.Struct):
    """How many tasks there are, before any of them is looked at."""

    tasks: list[msgspec.Raw] = []


class _CountedWorkflow(_CountedTasks):
    specification: _CountedTasks = msgspec.field(default_factory=_CountedTasks)


class _CountedDocument(msgspec.Struct):
    workflow: _CountedWorkflow


def _require_count(data: bytes, path: Path) -> None:
    try:
        found = msgspec.json.decode(data, type=_CountedDocument).workflow
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # the whole reading says what is wrong
    count = max(len(found.tasks), len(found.specification.tasks))
    if count > MOST_PROCESSES:
        raise InputError(f"{count:,} tasks", f"{path}: $.workflow", f"at most {MOST_PROCESSES:,}")


def _described(workflow: _Workflow, path: Path) -> tuple[list[_WorkflowTask], list[int], int]:
    """Return the tasks, their ticks, and on how many machines they ran."""
    if workflow.specification is None:
        seconds = [t.runtime_in_seconds or t.runtime for t in workflow.tasks]
        return workflow.tasks, [max(1, round(TICKS * s)) for s in seconds], 1
    tasks = workflow.specification.tasks
    listed = workflow.execution.tasks if workflow.execution else []
    runs = {r.id: r for r in listed}
    _require_runs(listed, {t.id or t.name for t in tasks}, path)
    for k, t in enumerate(tasks):
        if (t.id or t.name) not in runs:
            raise InputError(
                f"nothing says how long {t.id or t.name!r} takes", f"{path}: $.workflow.specification.tasks[{k}]",
                "its run time in workflow.execution",
            )  # fmt: skip
    span = [max(1, round(TICKS * runs[t.id or t.name].runtime_in_seconds)) for t in tasks]
    return tasks, span, len({m for r in runs.values() for m in (*r.machines, r.machine) if m})


def _require_runs(runs: list[_Run], tasks: set[str], path: Path) -> None:
    """Refuse run times of no task, and two of one."""
    for k, (name, times) in enumerate(Counter(r.id for r in runs).items()):
        if times > 1 or name not in tasks:
            what = (
                f"run times of {name!r}, which is no task" if times == 1 else f"{times} run times of {name!r}"
            )
            raise InputError(what, f"{path}: $.workflow.execution.tasks[{k}]", "one of every task")


def _warn_of_cores(workflow: _Workflow, path: Path) -> None:
    """Name tasks that need several cores: here a task takes one unit."""
    of_runs = [r.core_count for r in workflow.execution.tasks] if workflow.execution else []
    most = max([1, *of_runs, *(max(t.cores, t.core_count) for t in workflow.tasks)])
    if most > 1:
        doubtful(f"tasks have a coreCount up to {most:g}", str(path), "1: every task takes one whole unit")


#: Members of the schemas 1.4 to 1.6 that describe the run: they do not change the problem.
NOT_READ: dict[type[msgspec.Struct], tuple[str, ...]] = {
    _Document: ("description", "createdAt", "schemaVersion", "runtimeSystem", "wms", "author"),
    _Workflow: ("makespan", "makespanInSeconds", "executedAt", "machines"),
    _Specification: ("metrics",),
    _Execution: ("makespanInSeconds", "executedAt", "machines", "metrics"),
    _WorkflowTask: (
        "category", "type", "command", "avgCPU", "readBytes", "writtenBytes", "memory", "memoryInBytes", "energy", "energyInKWh",
        "avgPower", "avgPowerInW", "priority", "program", "machine", "machines", "executedAt",
    ),
    _Run: (
        "command", "avgCPU", "readBytes", "writtenBytes", "memoryInBytes", "energyInKWh", "avgPowerInW", "priority", "executedAt"
    ),
}  # fmt: skip


def _edges(tasks: list[_WorkflowTask], names: list[str], files: list[_File], path: Path) -> Edges:
    """Return who waits for whom, with the bytes that one wrote and the other reads."""
    number = {name: k for k, name in enumerate(names)}
    pairs: dict[tuple[int, int], None] = {}
    for k, t in enumerate(tasks):
        for kind, others in (("parents", t.parents), ("children", t.children)):
            for other in others:
                if other not in number:
                    raise InputError(
                        f"{names[k]!r} has {kind[:-1] if kind == 'parents' else 'child'} {other!r}, which is no task",
                        f"{path}: {kind} of task {k}", "ids of tasks",
                    )  # fmt: skip
                pairs[(number[other], k) if kind == "parents" else (k, number[other])] = None
    size = {f.id: f.size_in_bytes for f in files}
    reads, writes = [], []
    for t in tasks:
        size.update({f.name: f.size_in_bytes for f in t.files})
        reads.append({*t.input_files, *(f.name for f in t.files if f.link == "input")})
        writes.append({*t.output_files, *(f.name for f in t.files if f.link == "output")})
    unsized = next((f for a, b in pairs for f in sorted(writes[a] & reads[b]) if f not in size), None)
    if unsized is not None:
        doubtful(f"no size of file {unsized!r}, taken as 0 bytes", str(path), "the size of every file")
    moved = [sum(size.get(name, 0) for name in writes[a] & reads[b]) for a, b in pairs]
    return Edges(
        whole([a for a, _ in pairs]),
        whole([b for _, b in pairs]),
        whole(moved),
        np.zeros(len(pairs), np.int64),
    )
