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
from nmsolve.model.compiled import compiled, inlined
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Cores that cost this many T more than the best one are never drawn (their probability is below 1e-5).
WINDOW = 12.0
#: With at most this many cores for every connection of a node, its traffic is added up by core first.
FEW_CORES = 4
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


class Heard(NamedTuple):
    """Traffic of one node by column (W,), row (H,) and core (H, W), of which ``flat`` (H W,) is another view; of one thread."""

    in_col: AnyArray
    in_row: AnyArray
    here: AnyArray
    flat: AnyArray


@compiled(fastmath=True, _nrt=False)
def _hear(arcs: Arcs, i: int, pos: AnyArray, cores: Cores, b: Heard, by_core: bool) -> None:
    """Add up the traffic of node ``i`` of a block by column and row, and by core if there is a step (``here`` is 0 before).

    ``by_core`` : first by core in any case, which takes one addition for a connection instead of two, but two for every core
    """
    indptr, neighbour, weight = arcs.indptr, arcs.neighbour, arcs.weight
    in_col, in_row, here, flat = b.in_col, b.in_row, b.here, b.flat
    in_col[:] = 0.0
    if by_core:
        for e in range(indptr[i], indptr[i + 1]):
            flat[pos[neighbour[e]]] += weight[e]
        for r in range(len(in_row)):
            f = np.float32(0.0)
            for c in range(len(in_col)):
                in_col[c] += here[r, c]
                f += here[r, c]
            in_row[r] = f
        return
    in_row[:] = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        p = pos[neighbour[e]]
        in_col[cores.col[p]] += weight[e]
        in_row[cores.row[p]] += weight[e]
        if cores.step > 0.0:
            here[cores.row[p], cores.col[p]] += weight[e]


@compiled(fastmath=True, _nrt=False)
def _along(traffic: AnyArray, lines: AnyArray, cost: AnyArray) -> None:
    """Add to ``cost`` what ``traffic`` pays to each column, or row, by the distances ``lines`` between these."""
    for c in range(len(traffic)):
        f = traffic[c]
        if f > 0.0:
            for j in range(len(cost)):
                cost[j] += f * lines[c, j]


@compiled(fastmath=True)
def propose_lines(arcs: Arcs, begin: int, end: int, draw: Drawing, to: Int32Array) -> tuple[float, float]:
    """Draw a core for the runs of nodes at ``begin, begin + draw.stride, ...`` below ``end`` of a block; distances are lines
    plus step.

    ``to[i]`` is the core of node ``first + i``. Returns the sum of what the nodes pay where they are, and of what they
    would pay more where they go, prices included. Rows of cores that all cost too much (:data:`WINDOW`) are passed over.
    """
    s, cores, volume, domain, temperature, key, stride = draw
    first, indptr, neighbour = arcs.first, arcs.indptr, arcs.neighbour
    pos, w, h = s.pos, len(cores.lines_x), len(cores.lines_y)
    # indexed by row and column: numba turns loops into vector code only where it sees that no index is negative
    price, allowed = s.price.reshape(h, w), cores.allowed.reshape(len(cores.allowed), h, w)
    value, prob, chance = np.empty((h, w), np.float32), np.empty((h, w), np.float32), np.empty(h, np.float32)
    bits, none = prob.view(np.int32), np.float32(0.0)
    here, x, y = np.zeros((h, w), np.float32), np.empty(w, np.float32), np.empty(h, np.float32)
    b = Heard(np.empty(w, np.float32), np.empty(h, np.float32), here, here.reshape(w * h))
    scale, step = np.float32(min(12102203.16 / temperature, 1e30)), np.float32(cores.step)
    window, total, rise = np.float32(WINDOW * temperature), 0.0, 0.0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            own, share, d = pos[u], volume[u], domain[u]
            by_core = w * h <= FEW_CORES * (indptr[i + 1] - indptr[i])
            _hear(arcs, i, pos, cores, b, by_core)
            all_steps = none
            for c in range(w):
                all_steps += step * b.in_col[c]
            x[:] = all_steps
            y[:] = none
            _along(b.in_col, cores.lines_x, x)
            _along(b.in_row, cores.lines_y, y)
            low = x[0] - step * b.in_col[0]  # all of the column's traffic might be on the same core
            for c in range(w):
                low = min(low, x[c] - step * b.in_col[c])
            a = cores.row[own]
            paid = x[cores.col[own]] + y[a] - step * here[a, cores.col[own]]
            total += paid
            base = paid + price[a, cores.col[own]] * share
            least, mass = base, none
            for r in range(h):
                if y[r] + low <= least + window:
                    for c in range(w):
                        z = x[c] + y[r] + price[r, c] * share - step * here[r, c]
                        z = z if allowed[d, r, c] else NEVER
                        value[r, c] = z
                        least = min(least, z)
            for r in range(h):
                f = none
                if y[r] + low <= least + window:
                    for c in range(w):
                        bits[r, c] = boltzmann(least - value[r, c], scale)
                    for c in range(w):
                        f += prob[r, c]
                chance[r] = f
                mass += f
            to[i] = own
            rest = fraction(hashed(key, u)) * mass
            for r in range(h):
                if rest >= chance[r]:
                    rest -= chance[r]
                    continue
                for c in range(w):
                    rest -= prob[r, c]
                    if rest < none:
                        to[i] = r * w + c
                        rise += value[r, c] - base
                        break
                break
            if by_core:
                here[:] = none
            elif step > none:
                for e in range(indptr[i], indptr[i + 1]):
                    p = pos[neighbour[e]]
                    here[cores.row[p], cores.col[p]] = none
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
