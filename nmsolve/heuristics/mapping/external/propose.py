"""Where every node of a batch would go: heat-bath draws from frozen positions, gains computed on the fly.

A node's cost on every core follows from the histogram of its neighbours' cores, which is made by one pass over its
connections and kept nowhere. Its new core is drawn from the exact Boltzmann distribution at temperature T over

* all cores, for distances that are a sum over column and row, plus a step for leaving the core (hops, energy), and for
  a distance matrix (one row of P columns);
* the cores of its neighbours, where only being on the same core counts (cut).

Full cores have a *price* per volume (:mod:`.accept`), which represents what a place there is worth to others. Random
numbers are a hash of the pass and the node, so that no answer depends on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement
from nmsolve.heuristics.mapping.external.arcs import RUN, Arcs
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import compiled, inlined
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Cores that cost this many T more than the best one are never drawn (their probability is below 1e-5).
WINDOW = 12.0
#: What a forbidden core costs: no infinity, which fast arithmetic does not know.
NEVER = np.float32(1e30)
#: The bits of 1 as a float32, less what makes the mean error of :func:`boltzmann` 0.
ZERO = np.float32(1064866805.0)


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


class Drawing(NamedTuple):
    """How the nodes of a pass draw: where all are, the board, volume and domain of every node, temperature and what decides the
    random numbers; every ``stride``-th node begins a run that draws at the same time."""

    s: Placement
    cores: Cores
    volume: AnyArray
    domain: Int32Array
    temperature: float
    key: int
    stride: int


@inlined
def hashed(key: int, u: int) -> Any:
    """64 random bits of node ``u`` in the pass ``key`` (splitmix64)."""
    return mix(np.uint64(key) + np.uint64(u) * STEP)


@inlined
def fraction(bits: int) -> Any:
    """Random bits as float32 in [0, 1)."""
    return np.float32(np.int32(np.uint64(bits) >> np.uint64(40))) * np.float32(1.0 / 16777216.0)


@compiled(fastmath=True, inline="always")
def boltzmann(saving: float, scale: float) -> Any:
    """The bits of ``exp(saving / T)`` as a float32, for ``saving <= 0`` and ``scale = 2**23 / (T ln 2)``.

    Schraudolph 1999: the exponential is built from its bits, with an error below 6 %. Exactly 0 below about -88 T.
    """
    power: Any = saving * scale
    return np.int32(max(power, -ZERO) + ZERO)


@compiled(fastmath=True, inline="always")
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


class Scratch(NamedTuple):
    """Buffers of one thread: costs of columns (and the least they can be) and rows, candidates, and traffic by core."""

    x: AnyArray
    low: AnyArray
    y: AnyArray
    near_x: Int32Array
    near_y: Int32Array
    value: AnyArray
    prob: AnyArray
    bits: Int32Array
    here: AnyArray


@compiled(fastmath=True)
def _costs(
    arcs: Arcs, i: int, pos: AnyArray, cores: Cores, b: Scratch, in_col: AnyArray, in_row: AnyArray
) -> None:
    """What node ``i`` of a block pays along x in every column and along y in every row; traffic by core if there is a step."""
    indptr, neighbour, weight = arcs.indptr, arcs.neighbour, arcs.weight
    in_col[:] = 0.0
    in_row[:] = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        p = pos[neighbour[e]]
        in_col[cores.col[p]] += weight[e]
        in_row[cores.row[p]] += weight[e]
    b.x[:] = 0.0
    b.y[:] = 0.0
    for c in range(len(in_col)):
        f = in_col[c]
        if f > 0.0:
            for j in range(len(b.x)):
                b.x[j] += f * cores.lines_x[c, j]
    for r in range(len(in_row)):
        f = in_row[r]
        if f > 0.0:
            for j in range(len(b.y)):
                b.y[j] += f * cores.lines_y[r, j]
    copy_to(b.low, b.x)
    if cores.step > 0.0:
        step, whole = np.float32(cores.step), np.float32(0.0)
        for e in range(indptr[i], indptr[i + 1]):
            b.here[pos[neighbour[e]]] += step * weight[e]
            whole += step * weight[e]
        b.x[:] += whole
        for j in range(len(b.x)):  # all of the column's traffic might be on the same core
            b.low[j] = b.x[j] - step * in_col[j]


@compiled(fastmath=True)
def _candidates(
    b: Scratch, cores: Cores, domain: int, price: AnyArray, share: float, window: float, base: float
) -> tuple[int, int, float]:  # fmt: skip
    """Fill ``b.value`` with the costs of all cores that could be within ``window`` of the best allowed one.

    They are in the first columns and rows of ``near_x`` and ``near_y``, whose numbers and least cost are returned. The
    window grows until it holds an allowed core that no core outside can beat.
    """
    w, floor = len(b.x), b.low.min() + b.y.min()
    while True:
        kx, ky = _near(b.low, w, window, b.near_x), _near(b.y, len(b.y), window, b.near_y)
        least, k = NEVER, 0
        for a in range(ky):
            for c in range(kx):
                p = b.near_y[a] * w + b.near_x[c]
                z = b.y[b.near_y[a]] + b.x[b.near_x[c]] + price[p] * share
                if cores.step > 0.0:
                    z -= b.here[p]
                b.value[k] = z if cores.allowed[domain, p] else NEVER
                least = min(least, b.value[k])
                k += 1
        if least <= floor + window or k == len(b.value):
            return kx, ky, float(least)
        window = max(np.float32(8.0) * window, np.float32(0.02) * (base - floor))


@compiled(fastmath=True)
def propose_lines(arcs: Arcs, begin: int, end: int, draw: Drawing, to: Int32Array) -> tuple[float, float]:
    """Draw a core for the runs of nodes at ``begin, begin + draw.stride, ...`` below ``end`` of a block; distances are lines
    plus step.

    ``to[i]`` is the core of node ``first + i``. Returns the sum of what the nodes pay where they are, and of what they
    would pay more where they go, prices included.
    """
    s, cores, volume, domain, temperature, key, stride = draw
    first, indptr, neighbour = arcs.first, arcs.indptr, arcs.neighbour
    pos, price = s.pos, s.price
    w, h = len(cores.lines_x), len(cores.lines_y)
    in_col, in_row = np.zeros(w, np.float32), np.zeros(h, np.float32)
    prob = np.empty(w * h, np.float32)
    b = Scratch(
        np.empty(w, np.float32), np.empty(w, np.float32), np.empty(h, np.float32), np.empty(w, np.int32),
        np.empty(h, np.int32), np.empty(w * h, np.float32), prob, prob.view(np.int32),
        np.zeros(w * h if cores.step > 0.0 else 1, np.float32),
    )  # fmt: skip
    dearest, scale = price.max(), np.float32(min(12102203.16 / temperature, 1e30))
    total, rise = 0.0, 0.0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            own, share = pos[u], volume[u]
            _costs(arcs, i, pos, cores, b, in_col, in_row)
            paid = b.x[cores.col[own]] + b.y[cores.row[own]]
            if cores.step > 0.0:
                paid -= b.here[own]
            total += paid
            base = paid + price[own] * share
            window = np.float32(WINDOW * temperature + dearest * share)
            kx, ky, least = _candidates(b, cores, domain[u], price, share, window, base)
            least = np.float32(min(least, base))
            mass = np.float32(0.0)
            for j in range(kx * ky):
                b.bits[j] = boltzmann(least - b.value[j], scale)
            for j in range(kx * ky):
                mass += b.prob[j]
            rest = fraction(hashed(key, u)) * mass
            to[i] = own
            for j in range(kx * ky):
                rest -= b.prob[j]
                if rest < np.float32(0.0):
                    to[i] = b.near_y[j // kx] * w + b.near_x[j % kx]
                    rise += b.value[j] - base
                    break
            if cores.step > 0.0:
                for e in range(indptr[i], indptr[i + 1]):
                    b.here[pos[neighbour[e]]] = 0.0
    return total, rise


@compiled(fastmath=True)
def propose_cut(arcs: Arcs, begin: int, end: int, draw: Drawing, to: Int32Array) -> tuple[float, float]:
    """As :func:`propose_lines`, where all that counts is to share a core: cores of neighbours, and the cheapest one."""
    s, cores, volume, domain, temperature, key, stride = draw
    first, indptr, neighbour = arcs.first, arcs.indptr, arcs.neighbour
    weight, pos, price = arcs.weight, s.pos, s.price
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
                here[p] += max(f, np.float32(1e-30))  # also of an edge without weight: it was listed
                whole += f
            total += whole - here[own]
            touched[k] = cheapest
            k += here[cheapest] == np.float32(0.0)
            best = -NEVER
            for j in range(k):
                p = touched[j]
                value[j] = here[p] - price[p] * share
                here[p] = 0.0
                if j > 0 and not cores.allowed[d, p]:
                    value[j] = -NEVER
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
