"""M2.3: bisection by greedy growing with a min-priority queue, and the recursion that ends when parts fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, heapify, remove
from nmsolve.heuristics.mapping.published.m2.topology import Piece, Topology, induced
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray

#: Connections looked at in one kernel call; keeps a call well under 0.2 s.
SLICE = 1_000_000


def bisection(
    top: Topology,
    mass: FloatArray,
    target: float,
    tries: int,
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> tuple[BoolArray, float]:
    """M2.3: grow a set from a random vertex until it holds ``target`` mass; the best of ``tries`` (4 to 8).

    The vertex with the least selection cost (weight to unselected minus weight to selected neighbours) is
    moved in each time; all costs live in an indexed binary heap, so a run takes O((n + m) log n).

    Parameters
    ----------
    mass : (n,) float64 > 0; all ones for "half of the vertices" as the source has it
    target : mass to select; the set ends at the vertex count that comes closest to it, never empty, never
        everything

    Returns
    -------
    (n,) bool: selected or not, and the cut (weight between the two sets).
    """
    n = top.n
    best, best_cut = np.zeros(n, np.bool_), np.inf
    front = Front(
        np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.zeros(1, np.int64), np.zeros(2)
    )
    for start in rng.choice(n, size=min(tries, n), replace=False):
        _start(top.piece, start, front)
        while not _grow(top.piece, mass, target, front, SLICE):
            poll()
        poll()
        if front.state[0] < best_cut:
            best, best_cut = front.place < 0, front.state[0]
    return best, float(best_cut)


class Front(NamedTuple):
    """The vertices that are not selected, as a heap (:mod:`~nmsolve.heuristics.mapping.common.heap`) whose keys are their
    selection costs with the sign turned; ``state``: [cut, selected mass]."""

    heap: Int32Array
    place: Int32Array
    key: FloatArray
    size: IntArray
    state: FloatArray


@kernel
def _start(edges: Piece, start: int, front: Front) -> None:
    """Queue all vertices, ``start`` first."""
    heap, place, key, size, state = front
    for u in range(len(key)):
        key[u] = -edges.weights[edges.indptr[u] : edges.indptr[u + 1]].sum()
        heap[u] = place[u] = u
    state[0], state[1] = -key[start], 0.0
    size[0] = len(key)
    key[start] = np.inf
    heapify(heap, place, key, size)


@plain
def _grow(edges: Piece, mass: FloatArray, target: float, front: Front, budget: int) -> bool:
    """Move vertices in until the target (True) or the budget of connections (False) is reached."""
    _, indptr, indices, weights = edges
    heap, place, key, size, state = front
    while budget > 0:
        u, some = heap[0], size[0] < len(key)
        late = state[1] + mass[u] - target > target - state[1]  # one more would end farther from the target
        if size[0] == 1 or (some and (late or state[1] >= target)):
            return True
        if some:
            state[0] -= key[u]
        state[1] += mass[u]
        remove(heap, place, key, size, u)
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if place[v] >= 0:
                key[v] += 2.0 * weights[e]
                changed(heap, place, key, size, v)
        budget -= indptr[u + 1] - indptr[u] + 1
    return False


def split_until_fit(
    top: Topology, capacity: IntArray, tries: int, rng: np.random.Generator, poll: Callable[[], None]
) -> tuple[Int32Array, int]:
    """M2.3, the recursion: halve every part whose size exceeds ``capacity`` (in any resource).

    Halves have equal numbers of vertices, as written. Returns the (n,) int32 part of every vertex and the
    number of parts. A single vertex is never split.
    """
    part, parts = np.zeros(top.n, np.int32), 0
    stack = [(top, np.arange(top.n))]
    while stack:
        sub, nodes = stack.pop()
        if len(nodes) == 1 or bool((sub.sizes.sum(axis=0) <= capacity).all()):
            part[nodes] = parts
            parts += 1
            continue
        chosen, _ = bisection(sub, np.ones(sub.n), float(sub.n // 2), tries, rng, poll)
        for side in (np.flatnonzero(~chosen), np.flatnonzero(chosen)):
            stack.append((induced(sub, side), nodes[side]))
    return part, parts


def split_into(
    top: Topology,
    capacity: IntArray,
    parts: int,
    tries: int,
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> Int32Array:
    """Deviation of M2.3 for a machine with few spare cores: exactly ``parts`` parts of about equal load.

    Halving by vertex count makes up to twice as many parts as needed. Here each bisection is grown to the
    share of the load that belongs to its half of the parts; a vertex's load is its largest share of any
    resource. Parts may exceed ``capacity`` by a vertex; the uncoarsening puts that right.
    """
    limit = np.maximum(capacity, 1).astype(np.float64)
    load = (top.sizes / limit).max(axis=1, initial=0.0) + 1e-9
    part = np.zeros(top.n, np.int32)
    stack = [(top, np.arange(top.n), 0, parts)]
    while stack:
        sub, nodes, first, k = stack.pop()
        if k == 1 or len(nodes) <= 1:
            part[nodes] = first
            continue
        left = k // 2
        mass = load[nodes]
        chosen, _ = bisection(sub, mass, float(mass.sum()) * left / k, tries, rng, poll)
        for side, at, count in ((chosen, first, left), (~chosen, first + left, k - left)):
            where = np.flatnonzero(side)
            stack.append((induced(sub, where), nodes[where], at, count))
    return part
