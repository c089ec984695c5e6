"""Compile the kernels of cost networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.solvers.assignment.api import solve_network
from nmsolve.solvers.assignment.registry import REGISTRY

#: Seconds for one engine on one network.
SECONDS = 2.0


def warm_assignment(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Solve a small network with every engine that takes networks; returns what was done."""
    network = _network()
    work = {
        name: partial(solve_network, network, time_limit=SECONDS, engines=[name])
        for name, entry in REGISTRY.items()
        if not entry.child and entry.make().refuses(network) is None
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
