"""Where every node of a batch would go: heat-bath draws from frozen positions, gains computed on the fly.

A node's cost on every core follows from the histogram of its neighbours' cores, which is made by one pass over its
connections and kept nowhere. Its new core is drawn from the exact Boltzmann distribution at temperature T over

* all cores, for distances that are a sum over column and row, plus a step for leaving the core (hops, energy), and for
  a distance matrix (one row of P columns);
* the cores of its neighbours, where only being on the same core counts (cut).

Full cores have a *price* per volume (:mod:`.accept`), which stands for what a place there is worth to others. Random
numbers are a hash of the pass and the node, so that no answer depends on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Cores that cost this many T more than the best one are never drawn (their probability is below 1e-5).
WINDOW = 12.0
#: Batches consist of runs of so many nodes, whose connections lie together in memory.
RUN = 16


class Cores(NamedTuple):
    """The board as the kernels need it.

    col, row (P,) int32; lines_x (W, W), lines_y (H, H) float32: distance between columns and between rows; step:
    price of two nodes not sharing a core; capacity (P, R) int64; allowed (D, P) bool. ``W * H == P`` and core
    ``r * W + c`` is in row r and column c.
    """

    col: Int32Array
    row: Int32Array
    lines_x: AnyArray
    lines_y: AnyArray
    step: float
    capacity: IntArray
    allowed: BoolArray


@nb.njit(cache=True, nogil=True, inline="always")
def hashed(key: int, u: int) -> Any:
    """64 random bits of node ``u`` in the pass ``key`` (splitmix64's output function)."""
    z = np.uint64(key) + np.uint64(u) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@nb.njit(cache=True, nogil=True, inline="always")
def fraction(bits: int) -> Any:
    """Random bits as float32 in [0, 1)."""
    return np.float32(np.int32(np.uint64(bits) >> np.uint64(40))) * np.float32(1.0 / 16777216.0)


@nb.njit(cache=True, nogil=True, fastmath=True, inline="always")
def boltzmann(saving: float, scale: float) -> Any:
    """The bits of ``exp(saving / T)`` as a float32, for ``saving <= 0`` and ``scale = 2**23 / (T ln 2)``.

    Schraudolph 1999: the exponential is built from its bits, with an error below 6 %.
    """
    power: Any = saving * scale
    return np.int32(max(power, np.float32(-1.06e9)) + np.float32(1064866805.0))


@nb.njit(cache=True, nogil=True, fastmath=True, inline="always")
def _near(cost: AnyArray, end: int, window: float, out: Int32Array) -> int:
    """Indices below ``end`` whose cost is within ``window`` of the least; how many."""
    least = cost[0]
    for j in range(1, end):
        least = min(least, cost[j])
    k = 0
    for j in range(end):
        if cost[j] <= least + window:
            out[k] = j
            k += 1
    return k


@nb.njit(cache=True, nogil=True, fastmath=True)
def propose_lines(
    first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray, begin: int, end: int, stride: int,
    pos: Int32Array, cores: Cores, volume: AnyArray, domain: Int32Array, price: AnyArray, temperature: float, key: int,
    to: Int32Array,
) -> tuple[float, float]:  # fmt: skip
    """Draw a core for the runs of nodes at ``begin, begin + stride, ...`` below ``end`` of a block; distances are lines
    plus step.

    ``to[i]`` is the core of node ``first + i``. Returns the sum of what the nodes pay where they are, and of what they
    would pay more where they go, prices included.
    """
    w, h = len(cores.lines_x), len(cores.lines_y)
    in_col, in_row = np.zeros(w, np.float32), np.zeros(h, np.float32)
    along_x, along_y = np.empty(w, np.float32), np.empty(h, np.float32)
    near_x, near_y = np.empty(w, np.int32), np.empty(h, np.int32)
    prob = np.empty(w * h, np.float32)
    bits = prob.view(np.int32)
    value = np.empty(w * h, np.float32)
    stepped = cores.step > 0.0
    here = np.zeros(w * h if stepped else 1, np.float32)
    dearest, scale = price.max(), np.float32(min(12102203.16 / temperature, 1e30))
    total, rise = 0.0, 0.0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            own = pos[u]
            in_col[:] = 0.0
            in_row[:] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                p = pos[neighbour[e]]
                in_col[cores.col[p]] += weight[e]
                in_row[cores.row[p]] += weight[e]
            if stepped:
                for e in range(indptr[i], indptr[i + 1]):
                    here[pos[neighbour[e]]] += weight[e]
            along_x[:] = 0.0
            along_y[:] = 0.0
            for c in range(w):
                f = in_col[c]
                if f > 0.0:
                    for j in range(w):
                        along_x[j] += f * cores.lines_x[c, j]
            for r in range(h):
                f = in_row[r]
                if f > 0.0:
                    for j in range(h):
                        along_y[j] += f * cores.lines_y[r, j]
            total += along_x[cores.col[own]] + along_y[cores.row[own]]
            if stepped:
                total -= cores.step * here[own]
                for j in range(w):
                    total += cores.step * in_col[j]
                in_col[:] *= np.float32(cores.step)
            share = volume[u]
            window = np.float32(WINDOW * temperature + dearest * share)
            if stepped:  # a lower bound along x: all of the column's traffic might be on the same core
                for j in range(w):
                    along_x[j] -= in_col[j]
            kx, ky = _near(along_x, w, window, near_x), _near(along_y, h, window, near_y)
            if stepped:
                for j in range(w):
                    along_x[j] += in_col[j]
            base = along_x[cores.col[own]] + along_y[cores.row[own]] + price[own] * share
            if stepped:
                base -= cores.step * here[own]
            least = base
            d = domain[u]
            k = 0
            for a in range(ky):
                y = along_y[near_y[a]]
                at = near_y[a] * w
                for b in range(kx):
                    p = at + near_x[b]
                    z = y + along_x[near_x[b]] + price[p] * share
                    if stepped:
                        z -= cores.step * here[p]
                    if not cores.allowed[d, p]:
                        z = np.float32(np.inf)
                    value[k] = z
                    least = min(least, z)
                    k += 1
            for j in range(k):
                bits[j] = boltzmann(least - value[j], scale)
            mass = np.float32(0.0)
            for j in range(k):
                mass += prob[j]
            rest = fraction(hashed(key, u)) * mass
            to[i] = own
            if mass > 0.0:
                for j in range(k):
                    rest -= prob[j]
                    if rest < np.float32(0.0):
                        to[i] = near_y[j // kx] * w + near_x[j % kx]
                        rise += value[j] - base
                        break
            if stepped:
                for e in range(indptr[i], indptr[i + 1]):
                    here[pos[neighbour[e]]] = 0.0
    return total, rise


@nb.njit(cache=True, nogil=True, fastmath=True)
def propose_cut(
    first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray, begin: int, end: int, stride: int,
    pos: Int32Array, cores: Cores, volume: AnyArray, domain: Int32Array, price: AnyArray, temperature: float, key: int,
    to: Int32Array,
) -> tuple[float, float]:  # fmt: skip
    """As :func:`propose_lines`, where all that counts is to share a core: cores of neighbours, and the cheapest one."""
    here = np.zeros(len(price), np.float32)
    touched = np.empty(len(price) + 2, np.int32)
    prob = np.empty(len(price) + 2, np.float32)
    bits = prob.view(np.int32)
    value = np.empty(len(price) + 2, np.float32)
    cheapest = np.argmin(price)
    scale, total, rise = np.float32(min(12102203.16 / temperature, 1e30)), 0.0, 0.0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            own, share, d = pos[u], volume[u], domain[u]
            k, whole = 1, np.float32(0.0)
            touched[0] = own
            here[own] = np.float32(1e-30)
            for e in range(indptr[i], indptr[i + 1]):
                p = pos[neighbour[e]]
                f = weight[e]
                touched[k] = p
                k += here[p] == np.float32(0.0)
                here[p] += f
                whole += f
            total += whole - here[own]
            touched[k] = cheapest
            k += here[cheapest] == np.float32(0.0)
            best = np.float32(-np.inf)
            for j in range(k):
                p = touched[j]
                value[j] = here[p] - price[p] * share
                here[p] = 0.0
                if j > 0 and not cores.allowed[d, p]:
                    value[j] = np.float32(-np.inf)
                best = max(best, value[j])
            for j in range(k):
                bits[j] = boltzmann(value[j] - best, scale)
            mass = np.float32(0.0)
            for j in range(k):
                mass += prob[j]
            rest = fraction(hashed(key, u)) * mass
            to[i] = own
            for j in range(k):
                rest -= prob[j]
                if rest < np.float32(0.0):
                    to[i] = touched[j]
                    rise += value[0] - value[j]
                    break
    return total * cores.step, rise * cores.step
