"""Networks that share a machine, made from pipeline plans: every stage becomes a process (``tasks.json``).

A stage of c cores takes as long as in the plan, what it takes in and gives out included, so dependencies carry bytes but take
no time of their own. It runs on the cores where the plan was placed, or else on c cores in a row of the machine, of which
there are several choices. Its storage is static data, loaded at a core's bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.pipeline.to_graph import crossings
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.ordering import circle, topological
from nmsolve.model.pipeline.loads import StageLoads
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.schedule.tasks_file import After, Links, Process, TaskEntry, TasksFile, Weights

#: Most choices of cores for a stage that is not placed.
CHOICES = 16
#: Ticks of the fastest network's slowest stage are at least this many, so that rounding up costs no more than a thousandth ...
LEAST_TICKS = 1000
#: ... unless all stages together take more than this many.
MOST_TICKS = 2**36
#: Seconds per unit of time of a plan.
SECONDS = {"us": 1e-6}


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """What a run of ``nmsolve pipeline`` left.

    Attributes
    ----------
    where : its folder, for messages
    problem, plan : the network in stages
    unit : of its times, "" if unknown
    bandwidth : bytes per second that a core takes in, 0 if unknown
    cores : (K,) units of every stage where the plan was placed, else None
    """

    where: str
    problem: PipelineProblem
    plan: PipelinePlan
    unit: str
    bandwidth: float = 0.0
    cores: Sequence[Sequence[str]] | None = None


def tasks_from_runs(runs: Sequence[PlannedRun], machine: Machine, frames: int = 1) -> TasksFile:
    """Return the networks of several runs, as a file that states them on a machine.

    Parameters
    ----------
    frames : how often each network runs, begun in the rhythm of its slowest stage; each may take until all work is done

    Raises
    ------
    InputError : plans with different units of time, a stage on a host, stages in a circle, more cores
        than the machine has, or other cores, or a bandwidth below a byte per tick
    """
    units = {run.unit for run in runs}
    if len(units) > 1:
        shown = " and ".join(repr(u) if u else "no unit" for u in sorted(units))
        raise InputError(
            f"times in {shown}", runs[-1].where, "plans of models, or of cost graphs, not of both"
        )
    loads = [stage_loads(run.problem, run.plan) for run in runs]
    for run, load in zip(runs, loads, strict=True):
        _require(run, load, machine)
    tick = _tick([load.load for load in loads])
    row = _in_a_row(machine)
    seconds = SECONDS.get(runs[0].unit, 0.0) * tick
    slowest = min(runs, key=lambda run: run.bandwidth)
    bandwidth = int(slowest.bandwidth * seconds * (1 + 1e-12))
    if slowest.bandwidth * seconds > 0 and bandwidth == 0:
        raise InputError(
            f"a core takes in {slowest.bandwidth * seconds:.3g} bytes per tick", slowest.where,
            "a bandwidth of at least a byte in a thousandth of the slowest stage's time",
        )  # fmt: skip
    names = _names([run.problem.name for run in runs])
    tasks = [
        TaskEntry(name, _processes(name, run, load, tick, row))
        for name, run, load in zip(names, runs, loads, strict=True)
    ]
    if frames > 1:
        round_ = sum(_most(p, bandwidth) for task in tasks for p in task.processes)
        for task, load in zip(tasks, loads, strict=True):
            task.frames, task.period = frames, _ticks(float(load.load.max()), tick)
            task.deadline = frames * round_
    memory = [run.problem.memory for run in runs if run.problem.memory is not None]
    return TasksFile(
        tasks, "+".join(names), memory=int(min(memory)) if memory else None, network=Links(load_bandwidth=bandwidth),
        tick=seconds or None,
    )  # fmt: skip


def _require(run: PlannedRun, load: StageLoads, machine: Machine) -> None:
    """Refuse plans whose stages are no processes on the machine's cores."""
    hosts = np.flatnonzero(run.plan.cores == 0)
    if len(hosts):
        raise InputError(
            f"stage {int(hosts[0])} runs on a host", run.where, "a plan whose stages all have cores"
        )
    if run.problem.groups.replicas > 1:
        raise InputError("stages may have replicas", run.where, "a plan with --replicas 1")
    usable, most = int(machine.usable.sum()), int(run.plan.cores.max())
    if run.cores is None and most > usable:
        k = int(np.argmax(run.plan.cores))
        raise InputError(
            f"stage {k} takes {most} cores of {machine.name} with {usable}",
            run.where,
            f"at most {usable} cores",
        )
    known = {f"{c // machine.cols},{c % machine.cols}" for c in np.flatnonzero(machine.usable).tolist()}
    for k, cores in enumerate(run.cores or ()):
        unknown = next((name for name in cores if name not in known), None)
        if unknown is not None:
            raise InputError(
                f"stage {k} is placed on core {unknown}, which {machine.name} lacks",
                run.where,
                "a plan placed on this machine",
            )
    waiting = _circle(run)
    if waiting:
        shown = " and ".join(map(str, waiting))
        raise InputError(
            f"stages {shown} wait for each other", run.where, "a plan of --split chain or contiguous"
        )


def _stage_bytes(run: PlannedRun) -> dict[tuple[int, int], int]:
    """Return what stages hand each other, in bytes."""
    cross = crossings(run.problem, run.plan)
    found: dict[tuple[int, int], float] = {}
    volume = run.problem.tensors.volume[cross.tensor].tolist()
    for a, b, size in zip(cross.source.tolist(), cross.target.tolist(), volume, strict=True):
        found[a, b] = found.get((a, b), 0.0) + size
    return {pair: math.ceil(size) for pair, size in found.items()}


def _circle(run: PlannedRun) -> list[int]:
    """Return stages that wait for each other in a circle, [] if none do."""
    before: list[list[int]] = [[] for _ in run.plan.cores]
    for a, b in _stage_bytes(run):
        before[b].append(a)
    order = topological(before)
    return [] if len(order) == len(before) else sorted(set(circle(before, order)))


def _tick(loads: Sequence[np.ndarray]) -> float:
    """Return how much of the plans' time a tick is: a power of ten."""
    fastest = min(float(load.max()) for load in loads)
    total = sum(float(load.sum()) for load in loads)
    finest = 10.0 ** math.floor(math.log10(fastest / LEAST_TICKS)) if fastest > 0 else 1.0
    return max(finest, 10.0 ** math.ceil(math.log10(total / MOST_TICKS))) if total > 0 else finest


def _ticks(time: float, tick: float) -> int:
    """Return a time in whole ticks, rounded up but for what the division itself adds."""
    return max(1, math.ceil(time / tick * (1 - 1e-12)))


def _in_a_row(machine: Machine) -> list[str]:
    """Return the usable cores so that each is beside the next: row by row, there and back."""
    usable = machine.usable.reshape(machine.rows, machine.cols)
    names = []
    for r in range(machine.rows):
        columns = range(machine.cols) if r % 2 == 0 else range(machine.cols - 1, -1, -1)
        names += [f"{r},{c}" for c in columns if usable[r, c]]
    return names


def _choices(count: int, row: Sequence[str]) -> list[list[str] | str]:
    """Return sets of ``count`` cores in a row that do not overlap, at most :data:`CHOICES`, spread evenly."""
    begins = range(0, len(row) - count + 1, count)
    step = max(1, -(-len(begins) // CHOICES))
    return [list(row[k : k + count]) for k in begins[::step]]


def _processes(
    name: str, run: PlannedRun, load: StageLoads, tick: float, row: Sequence[str]
) -> list[Process]:
    """Return a process for every stage of the network ``name``."""
    before: dict[int, list[str | After]] = {}
    for (a, b), size in _stage_bytes(run).items():
        before.setdefault(b, []).append(After(f"s{a}", size))
    found = []
    for k, (time, storage) in enumerate(zip(load.load.tolist(), load.resident.tolist(), strict=True)):
        sets: list[list[str] | str] = [list(run.cores[k])] if run.cores is not None else \
            _choices(int(run.plan.cores[k]), row)  # fmt: skip
        weights = Weights(f"{name}/s{k}", math.ceil(storage)) if storage > 0 else None
        found.append(Process(f"s{k}", _ticks(time, tick), sets, weights=weights, after=before.get(k, [])))
    return found


def _most(process: Process, bandwidth: int) -> int:
    """Return the ticks of a stage with its load."""
    assert isinstance(process.span, int) and isinstance(process.sets, list)
    size = 0 if process.weights is None else -(-process.weights.bytes // len(process.sets[0]))
    return process.span + (-(-size // bandwidth) if bandwidth else 0)


def _names(names: Sequence[str]) -> list[str]:
    """Return names for tasks, every one once."""
    found: list[str] = []
    for name in (text.replace("/", "_") or "network" for text in names):
        number = next(k for k in range(1, len(names) + 1) if (f"{name}-{k}" if k > 1 else name) not in found)
        found.append(f"{name}-{number}" if number > 1 else name)
    return found
