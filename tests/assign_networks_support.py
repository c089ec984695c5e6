"""Small cost networks whose solutions can all be tried."""

from __future__ import annotations

import itertools

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, network_complaint, network_cost


def random_network(seed: int, nodes: int = 7, *, equal: float = 0.4, capacity: float = np.inf) -> CostNetwork:
    """A network with pairs that determine nodes (their share: ``equal``), parallel pairs, and demands in six positions."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, nodes)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    cost = rng.integers(0, 30, ptr[-1])
    ends, tables = [], []
    for _ in range(nodes + 3):
        u, v = rng.choice(nodes, 2, replace=False)
        table = rng.integers(0, 30, (sizes[u], sizes[v]))
        if rng.random() < equal:
            partner = rng.integers(0, sizes[v], sizes[u])
            table[np.arange(sizes[v]) != partner[:, None]] = FORBIDDEN
        elif rng.random() < 0.3:
            table[rng.random(table.shape) < 0.3] = FORBIDDEN
        ends.append((u, v))
        tables.append(table.ravel())
    start = rng.integers(0, 6, ptr[-1])
    demand = np.column_stack(
        [
            np.arange(ptr[-1]),
            start,
            start + rng.integers(0, 4, ptr[-1]),
            rng.integers(0, 9, ptr[-1]),
            np.zeros_like(start),
        ]
    )
    table_ptr = np.concatenate([[0], np.cumsum([len(t) for t in tables])])
    return CostNetwork(
        f"random {seed}", ptr, cost, np.array(ends), table_ptr, np.concatenate(tables), demand,
        np.array([capacity]), constant=int(rng.integers(0, 5)),
    )  # fmt: skip


def all_solutions(network: CostNetwork) -> dict[tuple[int, ...], int]:
    """Every solution that breaks no rule, and what it costs."""
    every = (np.array(s) for s in itertools.product(*map(range, np.diff(network.ptr).tolist())))
    return {
        tuple(s.tolist()): network_cost(network, s) for s in every if network_complaint(network, s) is None
    }


def require_same(a: CostNetwork, b: CostNetwork) -> None:
    """Nodes, strategies, costs, demands, and what every pair of nodes costs in all: tables may be in parts, or of zeros."""

    def pairs(of: CostNetwork) -> dict[tuple[int, int], list[list[int]]]:
        out: dict[tuple[int, int], np.ndarray] = {}
        for e, (u, v) in enumerate(of.ends.tolist()):
            key, table = ((u, v), of.tables(e)) if u < v else ((v, u), of.tables(e).T)
            out[key] = np.minimum(out.get(key, np.zeros_like(table)) + table, FORBIDDEN)
        return {key: table.tolist() for key, table in out.items() if table.any()}

    assert (a.constant, a.ptr.tolist(), a.cost.tolist()) == (b.constant, b.ptr.tolist(), b.cost.tolist())
    assert a.capacity.tolist() == b.capacity.tolist()
    assert sorted(a.demand.tolist()) == sorted(b.demand.tolist())
    assert pairs(a) == pairs(b)
