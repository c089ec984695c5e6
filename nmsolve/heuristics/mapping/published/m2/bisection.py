"""M2.3: bisection by greedy growing with a min-priority queue, and the recursion that ends when parts fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Topology, induced
from nmsolve.model.compiled import kernel, plain, plain_callee
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
    cost, heap, pos = np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32)
    count, state = np.zeros(2, np.int64), np.zeros(2)
    for start in rng.choice(n, size=min(tries, n), replace=False):
        _start(top.indptr, top.weights, start, cost, heap, pos, count, state)
        while not _grow(
            top.indptr, top.indices, top.weights, mass, target, cost, heap, pos, count, state, SLICE
        ):
            poll()
        poll()
        if state[0] < best_cut:
            best, best_cut = pos < 0, state[0]
    return best, float(best_cut)


@kernel
def _start(
    indptr: IntArray,
    weights: FloatArray,
    start: int,
    cost: FloatArray,
    heap: Int32Array,
    pos: Int32Array,
    count: IntArray,
    state: FloatArray,
) -> None:
    """Queue all vertices, ``start`` first. ``count``: [queued, selected], ``state``: [cut, selected mass]."""
    n = len(cost)
    for u in range(n):
        cost[u] = weights[indptr[u] : indptr[u + 1]].sum()
        heap[u] = u
        pos[u] = u
    state[0], state[1] = cost[start], 0.0
    count[0], count[1] = n, 0
    cost[start] = -np.inf
    for i in range(n // 2 - 1, -1, -1):
        _sift_down(heap, pos, cost, i, n)


@plain
def _grow(
    indptr: IntArray,
    indices: Int32Array,
    weights: FloatArray,
    mass: FloatArray,
    target: float,
    cost: FloatArray,
    heap: Int32Array,
    pos: Int32Array,
    count: IntArray,
    state: FloatArray,
    budget: int,
) -> bool:
    """Move vertices in until the target (True) or the budget of connections (False) is reached."""
    while budget > 0:
        u = heap[0]
        late = (
            state[1] + mass[u] - target > target - state[1]
        )  # one more vertex would end farther from the target
        if count[0] == 1 or (count[1] > 0 and (late or state[1] >= target)):
            return True
        if count[1] > 0:
            state[0] += cost[u]
        state[1] += mass[u]
        count[1] += 1
        count[0] -= 1
        last = heap[count[0]]
        heap[0] = last
        pos[last] = 0
        pos[u] = -1
        _sift_down(heap, pos, cost, 0, count[0])
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if pos[v] >= 0:
                cost[v] -= 2.0 * weights[e]
                _sift_up(heap, pos, cost, pos[v])
        budget -= indptr[u + 1] - indptr[u] + 1
    return False


@plain_callee
def _sift_up(heap: Int32Array, pos: Int32Array, cost: FloatArray, i: int) -> None:
    u = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if cost[heap[parent]] <= cost[u]:
            break
        heap[i] = heap[parent]
        pos[heap[i]] = i
        i = parent
    heap[i] = u
    pos[u] = i


@plain_callee
def _sift_down(heap: Int32Array, pos: Int32Array, cost: FloatArray, i: int, size: int) -> None:
    u = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and cost[heap[child + 1]] < cost[heap[child]]:
            child += 1
        if cost[heap[child]] >= cost[u]:
            break
        heap[i] = heap[child]
        pos[heap[i]] = i
        i = child
    heap[i] = u
    pos[u] = i


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
        chosen, _ = bisection(sub, np.ones(sub.n), sub.n // 2, tries, rng, poll)
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
