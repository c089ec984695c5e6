"""Compiled parts of the generators: sorting synapses by their node, and adding up those between two nodes."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.network import Connections
from nmsolve.model.types import FloatArray, Int32Array, IntArray


@plain
def place(sender: IntArray, receiver: IntArray, at: IntArray, out: Int32Array) -> None:
    """Write every receiver behind the earlier ones of its sender; ``at`` (per sender) is where the next one goes."""
    for i in range(len(sender)):
        s = sender[i]
        out[at[s]] = receiver[i]
        at[s] += 1


@plain
def count(index: IntArray, out: IntArray) -> None:
    """Add 1 to ``out`` at every index."""
    for i in index:
        out[i] += 1


@kernel
def _distinct(
    key: IntArray, first: int, rows: int, n: int
) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
    """Rows of distinct targets from the sorted ``((row * n) + target) * 2 + back``, without those of a row to itself.

    Returns indptr, targets, and how often each stood there in all and with ``back``.
    """
    indptr = np.zeros(rows + 1, np.int64)
    target = np.empty(len(key), np.int32)
    times = np.empty(len(key), np.int32)
    back = np.empty(len(key), np.int32)
    used, last = 0, np.int64(-1)
    row, base = 0, np.int64(0)  # base is row * n
    for k in key:
        pair = k >> 1
        if pair == last:
            times[used - 1] += 1
            back[used - 1] += k & 1
            continue
        while pair - base >= n:
            row += 1
            base += n
            indptr[row] = used
        if pair - base == first + row:
            continue
        last = pair
        target[used] = pair - base
        times[used] = 1
        back[used] = k & 1
        used += 1
    while row < rows:
        row += 1
        indptr[row] = used
    return indptr, target[:used].copy(), times[:used].copy(), back[:used].copy()


def merged(
    first: int, degree: IntArray, target: IntArray | Int32Array, rate: FloatArray, each_synapse: bool = False
) -> Connections:
    """Directed connections of the nodes from ``first`` on: one per target, weighing the sender's rate.

    Parameters
    ----------
    degree : (k,) synapses of each node, stored node by node in ``target``
    target : (sum(degree),) the receiver of every synapse; a node's own synapses are left out
    rate : (n,) of all nodes
    each_synapse : several synapses to one target weigh the rate times their number
    """
    n, k = len(rate), len(degree)
    key = np.repeat(np.arange(k) * n, degree)
    key += target
    key <<= 1
    key.sort()
    indptr, neighbour, times, _ = _distinct(key, first, k, n)
    weight = np.repeat(rate[first : first + k], np.diff(indptr))
    if each_synapse:
        weight *= times
    return Connections(indptr, neighbour, weight, times)


def merged_both_ways(first: int, degree: IntArray, partner: Int32Array, rate: FloatArray) -> Connections:
    """Undirected connections of the nodes from ``first`` on with higher nodes: what both send each other.

    Parameters
    ----------
    degree, rate : as in :func:`merged`
    partner : (sum(degree),) twice the other node of every synapse, plus 1 if that one is the sender
    """
    n, k = len(rate), len(degree)
    key = np.repeat(np.arange(k) * (2 * n), degree)
    key += partner
    key.sort()
    indptr, neighbour, times, back = _distinct(key, first, k, n)
    weight = (times - back) * np.repeat(rate[first : first + k], np.diff(indptr)) + back * rate[neighbour]
    return Connections(indptr, neighbour, weight, times)


@kernel
def degrees_both_ways(target: Int32Array, fan: int, new: IntArray) -> IntArray:
    """(n,) synapses that each renumbered node shares with a higher one; ``fan`` synapses per old node in ``target``."""
    out = np.zeros(len(new), np.int64)
    for s in range(len(new)):
        u = new[s]
        for i in range(s * fan, (s + 1) * fan):
            v = new[target[i]]
            if u != v:
                out[min(u, v)] += 1
    return out


@plain
def place_both_ways(target: Int32Array, fan: int, new: IntArray, at: IntArray, out: Int32Array) -> None:
    """Write every synapse to its lower node as :func:`merged_both_ways` wants it; ``at`` as in :func:`place`."""
    for s in range(len(new)):
        u = new[s]
        for i in range(s * fan, (s + 1) * fan):
            v = new[target[i]]
            if u != v:
                low = min(u, v)
                out[at[low]] = 2 * v if u == low else 2 * u + 1
                at[low] += 1
