"""Compile the kernels of cost networks, and of makespans and loads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units
from nmsolve.solvers.assignment.api import solve_assignment, solve_network
from nmsolve.solvers.assignment.registry import REGISTRY

#: Seconds for one engine on one network.
SECONDS = 0.6
#: What searches makespans and loads; operators between ``@in`` and ``@out`` of its program, and units.
SEARCH, OPERATORS, UNITS = "list-schedule", 12, 3


def warm_assignment(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Solve a small network with every engine that takes networks, small programs by local search; returns what was done."""
    network = _network()
    work: dict[str, Callable[[], object]] = {
        name: partial(solve_network, network, time_limit=SECONDS, engines=[name])
        for name, entry in REGISTRY.items()
        if not entry.child and entry.make().refuses(network) is None
    }
    work |= {
        f"{SEARCH}, {name}": partial(solve_assignment, _program(name), time_limit=SECONDS, engines=[SEARCH])
        for name in ("load", "makespan")
    }
    for run in work.values():
        until_compiled(run)
    return list(work)


def _network() -> CostNetwork:
    """Eight nodes in a ring, one of which another determines, with memory for some of the cheap strategies."""
    rng, n = np.random.default_rng(1), 8
    table = rng.integers(0, 20, (n, 3, 3))
    table[0][~np.eye(3, dtype=bool)] = FORBIDDEN
    demand = np.array([[3 * i + a, i % 3, i % 3 + 2, 3 - a, 0] for i in range(n) for a in range(3)])
    return CostNetwork(
        "warm", np.arange(n + 1) * 3, np.tile(np.array([0, 5, 9]), n), np.column_stack([np.arange(n), (np.arange(n) + 1) % n]),
        np.arange(n + 1) * 9, table.ravel(), demand, np.array([14.0]),
    )  # fmt: skip


def _program(objective: str) -> AssignProblem:
    """Every operator makes a tensor for the next one and one for the operator after that; pairs of operators can be fused."""
    count, each = OPERATORS + 2, np.arange(OPERATORS + 1)
    time = 5 + np.arange(count * UNITS).reshape(count, UNITS) * 7 % 11
    time[[0, -1]] = [0, *[-1] * (UNITS - 1)]
    users = [[i + 1, i + 3] if i + 3 < count else [i + 1] for i in each.tolist()]
    targets = np.array([u for some in users for u in some], np.int64)
    moved = np.full((len(each), UNITS, UNITS), 3) * ~np.eye(UNITS, dtype=bool)
    room = np.full(UNITS, np.inf)
    gain = np.full((1, UNITS), 2)
    return AssignProblem(
        name="warm",
        labels=tuple(f"o{i}" for i in range(count)),
        kinds=("Add",) * count,
        scalar=np.zeros(count, bool),
        time=time,
        energy=time.copy(),
        flows=Flows(
            names=tuple(f"t{i}" for i in each), source=each, indptr=np.cumsum([0, *map(len, users)]), targets=targets,
            since=each, until=targets, bytes=np.full(len(each), 4), kept=np.zeros(len(each), bool), time=moved, energy=moved,
        ),
        groups=Groups(np.array([0, 2]), np.array([OPERATORS - 1, OPERATORS]), gain, gain),
        units=Units(
            tuple(f"u{j}" for j in range(UNITS)), np.arange(UNITS) == 0, np.arange(UNITS), np.arange(UNITS),
            tuple(f"m{j}" for j in range(UNITS)), room, np.zeros((UNITS, UNITS), np.int64), ("bus",),
        ),
        objective=objective,
    )  # fmt: skip
