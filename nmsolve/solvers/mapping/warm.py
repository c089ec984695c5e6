"""Compile every kernel once, by running the engines on problems that take no time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.verify import verify
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.branch_bound.frontier import compile_kernels
from nmsolve.solvers.mapping.registry import REGISTRY

#: Seconds for one engine on one tiny problem. Compiling runs over them; the run is then repeated, because phases
#: that it never reached may have kernels of their own.
EACH, SLACK, TRIES = 0.5, 0.4, 6
#: Engines that take longest to compile: begun first. What stands for the joint problem with routes.
SLOW, ROUTES = (
    ("branch-bound", "subgraphs", "multilevel", "anneal", "remap", "nets", "external"),
    "free routes",
)


def warm_up(say: Callable[[str], None]) -> int:
    """Run every engine that needs no child process on a tiny problem of each kind it takes; returns the number of runs.

    ``say`` gets one line per engine. Kernels are cached beside the sources, so later processes only load them. Engines
    share few kernels, so that as many processes as there are cores compile at the same time.
    """
    names = [name for name, entry in REGISTRY.items() if not entry.child]
    names.sort(key=lambda name: name not in SLOW)
    runs = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        begun = {
            pool.submit(_run_engine, name): name
            for name in [*names[: len(SLOW)], ROUTES, *names[len(SLOW) :]]
        }
        for done in as_completed(begun):
            labels = done.result()
            runs += len(labels)
            say(f"{begun[done]}: {', '.join(labels)}")
    return runs


def _run_engine(name: str) -> list[str]:
    """The labels of the problems that the engine was run on, in a process of its own."""
    if name == ROUTES:
        return _with_routes()
    if name == "branch-bound":
        compile_kernels()  # of the best-first search, which a run on a tiny problem never reaches
    taken = []
    for label, problem in _problems():
        try:
            _until_compiled(problem, name)
        except InputError:  # it refuses this kind of problem
            continue
        taken.append(label)
    return taken


def _with_routes() -> list[str]:
    """Free routes, without the engines that run in a child process."""
    from nmsolve.solvers.mapping.joint.api import ENGINES, solve_joint

    names = [name for name in ENGINES if not name.startswith("joint-")]
    problem = make_problem(_graph(8, True), load_machine("mesh:2x2"), balance=0.2, objective="multicast-hops")
    for _ in range(TRIES):
        start = time.monotonic()
        solve_joint(problem, time_limit=EACH, engines=names, seed=1)
        if time.monotonic() - start < EACH + SLACK:
            break
    return names


def _until_compiled(problem: MappingProblem, name: str) -> None:
    """Run one engine until a run takes no longer than its time limit."""
    for _ in range(TRIES):
        start = time.monotonic()
        result = solve(problem, time_limit=EACH, engines=[name], seed=1)
        if result.core is not None:
            verify(problem.graph, problem.machine, (), result.core, node_limit=problem.node_limit)
        if time.monotonic() - start < EACH + SLACK:
            return


def _problems() -> list[tuple[str, MappingProblem]]:
    """One tiny problem for each form a kernel can take its arguments in."""
    mesh, chips = load_machine("mesh:4x4"), load_machine("mesh:2x2,1x2")
    place = np.arange(12)
    # Broken numbers, because tabu has kernels of its own for them.
    matrix = Machine("matrix", (1, 1), (1, 12), distance_matrix=0.3 * np.abs(place[:, None] - place[None, :]))
    one, many, casts = _graph(12, False), _graph(40, False), _graph(40, True)
    return [
        ("one node per core", make_problem(one, mesh)),
        ("one node per core, any distances", make_problem(one, matrix)),
        ("many nodes per core", make_problem(many, mesh, balance=0.2)),
        ("many nodes per core, two chips", make_problem(many, chips, balance=0.2)),
        ("connectivity", make_problem(casts, mesh, balance=0.2, objective="connectivity")),
        ("multicast hops", make_problem(casts, mesh, balance=0.2, objective="multicast-hops")),
        ("link loads", make_problem(casts, mesh, balance=0.2, objective="max-link")),
        ("limited axon tables", make_problem(casts, _few_axons(mesh), balance=0.2, objective="hops")),
        ("migration budget", make_problem(one, mesh, migration=Migration.of(place, 4))),
        (
            "migration budget, multicast hops",
            make_problem(
                casts,
                mesh,
                balance=0.2,
                objective="multicast-hops",
                migration=Migration.of(np.arange(40) // 3, 4),
            ),
        ),
    ]


def _few_axons(machine: Machine) -> Machine:
    """The machine with axon tables so small that a first mapping exceeds them."""
    return replace(machine, capacity={"axons_in": 5, "axons_out": 5})


def _graph(n: int, multicast: bool) -> LogicGraph:
    """A ring with chords."""
    u = np.arange(n)
    flags = np.full(n, multicast)
    return LogicGraph.from_edges(
        n, np.r_[u, u], np.r_[(u + 1) % n, (u + 5) % n], np.r_[u % 3 + 1.0, u % 2 + 1.0], multicast=flags
    )
