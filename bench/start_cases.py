"""Instances of ``starts.py``: generated problems of all kinds, each with what solves it.

Networks to map, by kind: ``many`` nodes per core, ``separable`` ones of these, the same as ``many`` on ``chips``, ``messages``
with one charge for many targets, ``one`` node per core. The other kinds take generated instances of the built-in suites, with
other seeds and sizes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sparse import box, delaunay, geometric, random_graph, small_world, windows

from nmsolve.hw.machines import load_machine
from nmsolve.kinds.assignment import bench as assignments
from nmsolve.kinds.bench import Bench, Maker
from nmsolve.kinds.pipeline import bench as pipelines
from nmsolve.kinds.routing import bench as routes
from nmsolve.kinds.schedule import bench as schedules
from nmsolve.learn.pipeline.train import random_chain
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.lookup import named
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.registry import REGISTRY
from nmsolve.solvers.pipeline.api import plan

#: A run: what solves the instance, given engines and seconds.
Solve = Callable[..., Any]


class Case(NamedTuple):
    """An instance: what makes its solver, and the table of its engines."""

    name: str
    make: Callable[[], Solve]
    registry: MutableMapping[str, Any] = REGISTRY


def mapping(graph: Callable[[], LogicGraph], board: str, objective: str, room: int) -> Solve:
    """Return the solver of a mapping; ``room``: nodes per core, 0 for what a balance of 0.03 gives."""
    made, machine = graph(), load_machine(board)
    limit = room or default_node_limit(made, machine, 0.03)
    return partial(solve, MappingProblem(made, machine, objective, node_limit=limit))


def networks() -> Iterator[tuple[str, Callable[[], LogicGraph], str]]:
    """Yield networks of 500 to 8,000 nodes with objectives."""
    for n in (2000, 8000):
        for seed in (1, 2):
            yield f"delaunay-{n}-{seed}", partial(delaunay, n, seed), "hops"
            yield f"geometric-{n}-{seed}", partial(geometric, n, seed), "hops"
        yield f"small-world-{n}", partial(small_world, n, 8), "hops"
        yield f"random-{n}", partial(random_graph, n, 6), "hops"
    yield from ((f"box-{side}", partial(box, side), "hops") for side in (12, 20))
    yield from ((f"windows-{k}x{s}", partial(windows, k, s), "hops") for k, s in ((8, 16), (20, 20)))
    for n in (1000, 2000, 4000):
        for seed in (1, 2):
            kind = partial(generate, "snn", nodes=n, synapses=20 * n, layers=6, sigma=0.2, seed=seed)
            yield f"snn-{n}-{seed}", partial(kind, directed=0), "hops"
            yield f"snn-{n}-{seed}-multicast", partial(kind, directed=1), "multicast-hops"
            yield f"snn-{n}-{seed}-cut", partial(kind, directed=0), "cut"
    for family in ("geo", "layered", "rnd", "comm"):
        for n in (500, 1000):
            yield f"mesh-{family}-{n}", partial(generate, f"mesh-{family}", nodes=n), "hops"


def separable() -> list[Case]:
    """Return networks that fall into halves with few edges between them, many nodes on a core."""
    kinds = {
        "delaunay": delaunay,
        "geometric": geometric,
        "comm": lambda n, seed: generate("mesh-comm", nodes=n, seed=seed),
    }
    return [
        Case(
            f"{family}-{n}-{seed}-{board}",
            partial(mapping, partial(graph, n, seed), f"mesh:{board}", "hops", 0),
        )
        for family, graph in kinds.items()
        for n in (2000, 4000, 8000)
        for seed in (1, 2)
        for board in ("4x4", "8x8")
    ]


def messages() -> Iterator[tuple[str, Callable[[], LogicGraph], str]]:
    """Yield networks whose messages are charged once for many targets."""
    made: list[tuple[str, Callable[[], LogicGraph]]] = []
    for seed in (1, 2):
        for n in (500, 1000, 2000, 4000, 8000):
            wide = partial(
                generate, "snn", nodes=n, synapses=20 * n, layers=6, sigma=0.2, directed=1, seed=seed
            )
            made.append((f"snn-{n}-{seed}", wide))
        for n in (2000, 8000):
            near = partial(generate, "snn", nodes=n, synapses=30 * n, directed=1, seed=seed)
            made.append((f"snn-near-{n}-{seed}", near))
            made.append(
                (
                    f"reservoir-{n // 2}-{seed}",
                    partial(generate, "reservoir", nodes=n // 2, fan=40, seed=seed),
                )
            )
        made.append((f"microcircuit-{seed}", partial(generate, "microcircuit", scale=0.02, seed=seed)))
    yield from (
        (f"{name}-{aim}", graph, aim) for name, graph in made for aim in ("multicast-hops", "connectivity")
    )


def many(board: str) -> list[Case]:
    """Return networks of which many nodes share a core."""
    return [Case(name, partial(mapping, graph, board, aim, 0)) for name, graph, aim in networks()]


def one(boards: Sequence[tuple[int, str]]) -> list[Case]:
    """Return networks with one node per core."""
    return [
        Case(
            f"{family}-{n}-{seed}",
            partial(mapping, partial(generate, f"mesh-{family}", nodes=n, seed=seed), board, "hops", 1),
        )
        for n, board in boards
        for family in ("geo", "layered", "rnd", "comm")
        for seed in (1, 2, 3)
    ]


def stated(bench: Bench, maker: Maker) -> Solve:
    """Return the solver of an instance of a suite."""
    with tempfile.TemporaryDirectory() as folder:
        return bench.load(maker(Path(folder) / "instance")).solve


def of(bench: Bench, name: str, maker: Maker) -> Case:
    """Return an instance of a suite."""
    return Case(name, partial(stated, bench, maker), named(bench.registry))


def branching(seed: int, layers: int, reach: int, cores: int, split: str) -> PipelineProblem:
    """Return layers that any number of cores may share, each with one or two of the ``reach`` layers before it as inputs."""
    chain = random_chain(seed, cores, layers)
    rng = np.random.default_rng(seed)
    users: list[list[int]] = [[] for _ in range(layers)]
    for k in range(1, layers):
        for earlier in {int(k - d) for d in rng.integers(1, min(reach, k) + 1, 2)}:
            users[earlier].append(k)
    source = [k for k in range(layers) if users[k]]
    indptr = np.append(0, np.cumsum([len(users[k]) for k in source]))
    targets = np.array([user for k in source for user in users[k]], np.int64)
    time = np.append(chain.tensors.time, chain.tensors.time.mean())[source]
    tensors = Tensors(np.array(source, np.int64), indptr, targets, time, np.ones(len(source)))
    name = f"branching-{seed}"
    return PipelineProblem(
        name, chain.labels, chain.time, chain.storage, tensors, cores, stages=cores, split=split, macs=chain.macs
    )  # fmt: skip


def pipeline_cases() -> Iterator[Case]:
    """Yield layers of branching graphs: on cores that hold stages of their own, and in groups of cores."""
    for split in ("any", "contiguous"):
        for layers, reach, cores in ((60, 3, 8), (100, 8, 12), (200, 60, 16)):
            for seed in range(1, 5):
                maker = pipelines.drawn(layers, reach, seed, cores=cores, split=split)
                yield of(pipelines.BENCH, f"single-{layers}-{split}-{seed}", maker)
        for layers, reach, cores in ((40, 3, 16), (100, 8, 32), (200, 20, 64)):
            for seed in range(1, 5):
                make = partial(branching, 10**6 + seed, layers, reach, cores, split)
                yield Case(
                    f"groups-{layers}-{split}-{seed}",
                    lambda make=make: partial(plan, make()),  # type: ignore[misc]
                    named(pipelines.BENCH.registry),
                )


def assign_cases() -> Iterator[Case]:
    """Yield models of blocks on three and five unlike units."""
    for objective in ("makespan", "load"):
        for machine in ("soc-3", "server-4acc"):
            for count in (4, 8, 16, 32):
                for branches in (2, 3, 5):
                    maker = assignments.blocks(count, 128, branches, machine=machine, objective=objective)
                    name = f"{objective}-{machine}-{count}x{branches}"
                    yield of(assignments.BENCH, name, maker)


def network_cases() -> Iterator[Case]:
    """Yield cost networks with little memory."""
    for nodes, strategies, reach in ((100, 5, 6), (200, 6, 8), (400, 8, 12), (800, 8, 12)):
        for seed in range(1, 11):
            maker = assignments.network(nodes, strategies, reach, 0.85, seed)
            yield of(assignments.BENCH, f"network-{nodes}-{seed}", maker)


def schedule_cases() -> Iterator[Case]:
    """Yield projects with limited resources and flexible job shops."""
    for seed in range(1, 11):
        for count in (60, 90):
            yield of(schedules.BENCH, f"project-{count}-{seed}", schedules.project(count, 4, seed))
        for jobs, steps, machines in ((10, 8, 8), (20, 10, 10)):
            yield of(schedules.BENCH, f"shop-{jobs}-{seed}", schedules.shop(jobs, steps, machines, seed))


def unit_cases() -> Iterator[Case]:
    """Yield networks on units of several sizes."""
    for seed in range(1, 8):
        for objective in ("makespan", "energy"):
            for count, processes, units in ((5, 20, 16), (10, 20, 32), (20, 30, 64)):
                maker = schedules.networks(count, processes, units, seed, objective=objective)
                yield of(schedules.BENCH, f"networks-{count}-{objective}-{seed}", maker)


def route_cases() -> Iterator[Case]:
    """Yield flows between layers in random places, with and without detours, and neurons that multicast."""
    for seed in range(1, 9):
        graph = partial(routes.layered, seed=seed)
        for side in (6, 8, 12):
            yield of(routes.BENCH, f"layered-{side}-{seed}", routes.flows(side, graph))
        yield of(routes.BENCH, f"detours-8-{seed}", routes.flows(8, graph, detour=2))
        spiking = partial(routes.spiking, seed=seed)
        yield of(routes.BENCH, f"multicast-6-{seed}", routes.flows(6, spiking, form="source"))


#: Kinds other than mappings.
TASKS: dict[str, Callable[[], Iterator[Case]]] = {
    "pipeline": pipeline_cases, "assign": assign_cases, "networks": network_cases, "schedule": schedule_cases,
    "units": unit_cases, "route": route_cases,
}  # fmt: skip


def cases(kind: str) -> list[Case]:
    """Return the instances of a kind."""
    if kind in TASKS:
        return list(TASKS[kind]())
    if kind == "many":
        return many("mesh:8x8")
    if kind == "separable":
        return separable()
    if kind == "chips":
        return many("mesh:4x4,2x2")
    if kind.startswith("messages"):
        board = "mesh:8x8" if kind == "messages" else "mesh:4x4,2x2"
        return [Case(name, partial(mapping, graph, board, aim, 0)) for name, graph, aim in messages()]
    if kind == "one":
        return one([(64, "mesh:8x8"), (100, "mesh:10x10"), (144, "mesh:12x12"), (256, "mesh:16x16")])
    return one([(64, "mesh:4x4,2x2"), (144, "mesh:6x6,2x2"), (256, "mesh:8x8,2x2")])


KINDS = ("many", "separable", "chips", "messages", "messages-chips", "one", "one-chips", *TASKS)
