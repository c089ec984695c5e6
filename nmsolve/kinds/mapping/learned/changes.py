"""Networks that have changed since they were solved: what a store of solved runs has to cope with."""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

Edges = tuple[int, IntArray, IntArray, FloatArray]


def rewired(edges: Edges, share: float, rng: np.random.Generator) -> Edges:
    """A share of the edges leads from anywhere to anywhere, with its weight."""
    n, source, target, weight = edges
    gone = np.flatnonzero(rng.random(len(source)) < share)
    source, target = source.copy(), target.copy()
    source[gone], target[gone] = rng.integers(0, n, len(gone)), rng.integers(0, n, len(gone))
    return n, source, target, weight


def replaced(edges: Edges, share: float, rng: np.random.Generator) -> Edges:
    """A share of the edges has another target nearby: a node that sends to, or hears from, the old one."""
    n, source, target, weight = edges
    gone = np.flatnonzero(rng.random(len(source)) < share)
    one, other = np.concatenate([source, target]), np.concatenate([target, source])
    order = np.argsort(one, kind="stable")
    first, end = np.searchsorted(one[order], target[gone]), np.searchsorted(one[order], target[gone], "right")
    near = other[order][first + (rng.random(len(gone)) * (end - first)).astype(np.int64)]
    target = target.copy()
    target[gone] = near
    return n, source, target, weight


def reweighted(edges: Edges, sigma: float, rng: np.random.Generator) -> Edges:
    """Every weight times ``exp(N(0, sigma))``."""
    n, source, target, weight = edges
    return n, source, target, weight * np.exp(rng.normal(0, sigma, len(weight)))


def smaller(edges: Edges, share: float, rng: np.random.Generator) -> Edges:
    """A share of the nodes is gone, with its edges."""
    n, source, target, weight = edges
    kept = np.sort(rng.permutation(n)[: n - max(1, int(share * n))])
    number = np.full(n, -1)
    number[kept] = np.arange(len(kept))
    source, target = number[source], number[target]
    whole = (source >= 0) & (target >= 0)
    return len(kept), source[whole], target[whole], weight[whole]


def larger(edges: Edges, share: float, rng: np.random.Generator) -> Edges:
    """New nodes, each with about half of the edges of an old one."""
    n, source, target, weight = edges
    found = [(source, target, weight)]
    more = max(1, int(share * n))
    for new, like in enumerate(rng.integers(0, n, more), n):
        of = np.flatnonzero(((source == like) | (target == like)) & (rng.random(len(source)) < 0.5))
        found.append(
            (
                np.where(source[of] == like, new, source[of]),
                np.where(target[of] == like, new, target[of]),
                weight[of],
            )
        )
    s, t, w = (np.concatenate(column) for column in zip(*found, strict=True))
    return n + more, s, t, w


def changed(graph: LogicGraph, kind: str, seed: int) -> LogicGraph:
    """Return what has become of a network; unless ``kind`` ends in ``ids kept``, its nodes are numbered anew at random.

    ``kind`` holds what has changed, separated by commas: ``2 % of edges``, ``10 % of edges``, ``20 % of edges`` (to neighbours of
    neighbours), the same with ``anywhere`` (from anywhere to anywhere), ``weights``, ``nodes added``, ``nodes removed``
    """
    rng = np.random.default_rng(seed)
    edges: Edges = graph.n, graph.edge_source.astype(np.int64), graph.targets.astype(np.int64), graph.weights
    for percent in (2, 10, 20):
        if f"{percent} % of edges" in kind.split(", "):
            edges = replaced(edges, percent / 100, rng)
        if f"{percent} % of edges anywhere" in kind.split(", "):
            edges = rewired(edges, percent / 100, rng)
    if "weights" in kind:
        edges = reweighted(edges, 0.3, rng)
    if "nodes added" in kind:
        edges = larger(edges, 0.05, rng)
    if "nodes removed" in kind:
        edges = smaller(edges, 0.05, rng)
    n, source, target, weight = edges
    number = np.arange(n) if kind.endswith("ids kept") else rng.permutation(n)
    return LogicGraph.from_edges(n, number[source], number[target], weight, name=graph.name)


def board(nodes: int, per_core: int = 1, lost: tuple[int, ...] = ()) -> Machine:
    """Return the least square mesh with room for this many nodes, and a little more where cores hold several."""
    side = int(np.ceil((nodes / per_core) ** 0.5))
    capacity = {} if per_core == 1 else {"neurons": per_core}
    return Machine("board", (1, 1), (side, side), capacity=capacity, faulty_cores=lost)
