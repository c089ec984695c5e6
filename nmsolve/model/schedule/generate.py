"""Random networks on units with memories and power states: the same arguments always give the same ``tasks.json``.

Units form a mesh. Every network lives in a region of it: its processes run on single units, pairs or squares of units there,
faster on more units, though not in proportion. Steps of a network use its layers' weights again and again, as a network that
runs frame by frame does, and memories are too small for the weights of all networks. Some networks meet in interactions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.generators import FileGenerator, Parameter, checked_values
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.schedule.tasks import stated
from nmsolve.model.schedule.tasks_file import (
    After,
    Interaction,
    Links,
    Mesh,
    Power,
    Process,
    TaskEntry,
    TasksFile,
    UnitSet,
    Weights,
    require_count,
    write_tasks,
)

#: What ``nmsolve generate tasks`` can be told.
PARAMETERS = (
    Parameter("networks", 20, "number of networks", 1, 10**5),
    Parameter("processes", 30, "processes of each network", 1, 10**5),
    Parameter("units", 64, "execution units, in the squarest mesh", 1, 4096),
    Parameter(
        "chains",
        0.5,
        "fraction of networks that are chains; the others have layers of one to three processes",
        0,
        1,
    ),
    Parameter("layers", 10, "different weights per network, used in turn", 1, 10**5),
    Parameter("sets", 6, "unit sets per process", 1, 64),
    Parameter("memory", 3.0, "average weights that a unit can hold; 0: no weights, no limit", 0, 10**6),
    Parameter("gating", 1, "1: units take energy while they idle and may be switched off; 0: neither", 0, 1),
    Parameter("meet", 0.25, "interactions of two networks per network", 0, 10),
    Parameter("budgets", 0, "nonrenewable resources, of which runs on more units use more", 0, 64),
    Parameter("seed", 1, "seed of the random numbers", 0),
)
#: Ticks of a process on two and on four units, in parts of those on one.
FASTER = {1: 1.0, 2: 0.56, 4: 0.32}
#: Bytes of an average layer's weights.
WEIGHTS = 4096


def generate_tasks(
    networks: int = 20,
    processes: int = 30,
    units: int = 64,
    *,
    seed: int = 1,
    chains: float = 0.5,
    layers: int = 10,
    sets: int = 6,
    memory: float = 3.0,
    gating: int = 1,
    meet: float = 0.25,
    budgets: int = 0,
    objective: str = "makespan",
) -> TasksFile:
    """Return random networks.

    Parameters
    ----------
    networks, processes : how many, and of each how many steps
    units : execution units, in the squarest mesh
    chains, layers, sets, memory, gating, meet, budgets : as in :data:`PARAMETERS`
    objective : of the file

    Raises
    ------
    InputError : too many processes
    """
    require_count(networks * (processes + 1), "generate tasks")
    rng = np.random.default_rng(seed)
    rows = next(r for r in range(math.isqrt(units), 0, -1) if units % r == 0)
    mesh = _Mesh(rows, units // rows)
    tasks, regions = [], []
    for k in range(networks):
        region = mesh.region(rng, 3 if units >= 16 else 2)
        regions.append(region)
        after = _chain(processes) if rng.random() < chains else _layered(rng, processes)
        tasks.append(_task(rng, f"n{k}", after, mesh, region, min(layers, processes), sets, memory > 0))
    pairs = [
        pair
        for k in range(round(meet * networks))
        if (pair := _meeting(rng, k, tasks, regions, mesh)) is not None
    ]
    power = (
        Power(on=200, idle=80, off=4, off_time=2, wake_time=6, switch_energy=1200)
        if gating
        else Power(on=200)
    )
    amounts = _uses(rng, tasks, budgets)
    room = 0 if memory <= 0 else max(round(memory * WEIGHTS), _largest(tasks))
    return TasksFile(
        tasks=tasks, name=f"tasks-{networks}x{processes}-on-{units}-s{seed}", units=Mesh((rows, units // rows)),
        memory=room or None, power=power,
        network=Links(hop_time=1, bandwidth=256, hop_energy=1, load_bandwidth=512, load_energy=1), interactions=pairs,
        budgets=amounts, objective=objective,
    )  # fmt: skip


def generate_problem(networks: int, processes: int, units: int, **options: int | float | str) -> Stated:
    """Return the problem of :func:`generate_tasks` with the same arguments."""
    return stated(generate_tasks(networks, processes, units, **options), "generated")  # type: ignore[arg-type]


def generate_tasks_file(path: Path, options: Mapping[str, int | float | str]) -> TasksFile:
    """Write random networks to a file, as the command line asks for them; return what was written.

    Raises
    ------
    InputError : an unknown parameter, a value out of its range, a name that does not end in ``.json``, no such folder
    """
    if path.suffix.lower() != ".json":
        raise InputError(f"the file is called {path.name!r}", str(path), "a name that ends in .json")
    values = checked_values("tasks", PARAMETERS, options)
    made = generate_tasks(**values)  # type: ignore[arg-type]
    write_tasks(path, made)
    return made


class _Mesh:
    """Rows and columns of units, and the sets that processes may run on."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols

    def region(self, rng: np.random.Generator, side: int) -> tuple[int, int, int, int]:
        """Return first row and column, rows and columns of a random part of the mesh."""
        high, wide = min(side, self.rows), min(side, self.cols)
        return int(rng.integers(self.rows - high + 1)), int(rng.integers(self.cols - wide + 1)), high, wide

    @staticmethod
    def within(region: tuple[int, int, int, int]) -> list[tuple[tuple[int, int], ...]]:
        """Return the single units, pairs of neighbours and squares in a region."""
        r0, c0, high, wide = region
        cells = {(r, c) for r in range(r0, r0 + high) for c in range(c0, c0 + wide)}
        found = []
        for r, c in sorted(cells):
            shapes = (((0, 0),), ((0, 0), (0, 1)), ((0, 0), (1, 0)), ((0, 0), (0, 1), (1, 0), (1, 1)))
            whole = [tuple((r + a, c + b) for a, b in one) for one in shapes]
            found += [one for one in whole if cells.issuperset(one)]
        return found


def _names(members: tuple[tuple[int, int], ...]) -> list[str]:
    return [f"{r},{c}" for r, c in members]


def _chain(count: int) -> list[list[int]]:
    return [[k - 1] if k else [] for k in range(count)]


def _layered(rng: np.random.Generator, count: int) -> list[list[int]]:
    """Return what every process comes after: layers of one to three, each after one or two of the layer before."""
    out: list[list[int]] = []
    before: list[int] = []
    while len(out) < count:
        width = min(int(rng.integers(1, 4)), count - len(out))
        layer = list(range(len(out), len(out) + width))
        for _ in layer:
            many = min(len(before), int(rng.integers(1, 3)))
            out.append(sorted(rng.choice(before, many, replace=False).tolist()) if before else [])
        before = layer
    return out


def _task(
    rng: np.random.Generator, name: str, after: list[list[int]], mesh: _Mesh, region: tuple[int, int, int, int], layers: int,
    sets: int, weighty: bool,
) -> TaskEntry:  # fmt: skip
    """Return a network whose process ``k`` runs layer ``k % layers``."""
    possible = mesh.within(region)
    span = np.maximum(2, np.rint(rng.lognormal(3.2, 0.5, layers))).astype(int).tolist()
    size = (
        np.clip(np.rint(rng.lognormal(math.log(WEIGHTS), 0.5, layers)), 64, 2.5 * WEIGHTS)
        .astype(int)
        .tolist()
    )
    moved = rng.integers(64, 2048, layers).tolist()
    where: list[list[UnitSet]] = []
    for _ in range(layers):
        chosen = sorted(rng.choice(len(possible), min(sets, len(possible)), replace=False).tolist())
        where.append([_names(possible[j]) for j in chosen])
    processes = []
    for k, sources in enumerate(after):
        layer = k % layers
        few = {str(n): max(1, round(span[layer] * part)) for n, part in FASTER.items()}
        processes.append(
            Process(
                name=f"p{k}", span=few, sets=where[layer],
                weights=Weights(f"{name}.w{layer}", size[layer]) if weighty else None,
                working={"1": 256, "2": 128, "4": 64} if weighty else 0,
                after=[After(f"p{j}", moved[j % layers], int(rng.integers(3))) for j in sources],
            )
        )  # fmt: skip
    least = round(2.5 * sum(span) * len(after) / layers)
    return TaskEntry(name=name, processes=processes, due=least, priority=int(rng.integers(1, 6)))


def _uses(rng: np.random.Generator, tasks: list[TaskEntry], budgets: int) -> dict[str, int]:
    """Let every process use budgets, more on more units; return amounts halfway between the least use and the most."""
    amounts = {}
    for name in (f"b{k}" for k in range(budgets)):
        least = most = 0
        for task in tasks:
            for p in task.processes:
                low = int(rng.integers(1, 10))
                use = {str(n): low * n + int(rng.integers(0, 3)) for n in FASTER}
                p.uses[name] = use
                sizes = {str(len(s)) for s in p.sets or ()}
                least += min(use[n] for n in sizes)
                most += max(use[n] for n in sizes)
        amounts[name] = (least + most) // 2
    return amounts


def _largest(tasks: list[TaskEntry]) -> int:
    """Return the bytes that the most demanding process needs on one unit."""
    return max(p.weights.bytes + 256 for t in tasks for p in t.processes if p.weights is not None)


def _meeting(
    rng: np.random.Generator, number: int, tasks: list[TaskEntry], regions: list[tuple[int, int, int, int]], mesh: _Mesh
) -> Interaction | None:  # fmt: skip
    """Return an interaction of two networks that share units, between their processes halfway and those after them."""
    for _ in range(20):
        a, b = (int(k) for k in rng.choice(len(tasks), 2, replace=False)) if len(tasks) > 1 else (0, 0)
        cells = [{m[0] for m in mesh.within(regions[k]) if len(m) == 1} for k in (a, b)]
        shared = sorted(cells[0] & cells[1])
        if a == b or not shared:
            continue
        unit = shared[int(rng.integers(len(shared)))]
        sets: dict[str, list[UnitSet] | str] = {
            tasks[k].name: [_names(m) for m in mesh.within(regions[k]) if unit in m and len(m) < 3]
            for k in (a, b)
        }
        name, halfway = f"x{number}", len(tasks[a].processes) // 2
        for k in (a, b):
            tasks[k].processes[halfway].after.append(After(name, 256, 0))
        came = [After(f"{tasks[k].name}/p{halfway - 1}", 256, 0) for k in (a, b) if halfway]
        span = {"1": int(rng.integers(8, 24)), "2": int(rng.integers(6, 12)), "3": 5}
        return Interaction(
            name=name,
            between=(tasks[a].name, tasks[b].name),
            span=span,
            sets=sets,
            runs_on="all",
            after=list(came),
        )
    return None


def _write(path: Path, options: Mapping[str, str]) -> list[str]:
    made = generate_tasks_file(path, options)
    count = sum(len(t.processes) for t in made.tasks) + len(made.interactions)
    return [f"{path}: {made.name}, {len(made.tasks):,} networks, {count:,} processes"]


GENERATOR = FileGenerator(
    "networks on execution units over time, for nmsolve schedule (a tasks.json)", PARAMETERS, _write
)
