"""Initial mapping by dual recursive bisection: regions of cores and their nodes are split together.

Each split sees the nodes outside its region at the middle of the region they have reached so far (terminal
propagation). Regions are split along chip boundaries first, else across their longer side; capacities of the halves
are the exact sums of their usable cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.multilevel.fm import bisect
from nmsolve.heuristics.mapping.multilevel.levels import Board, Metric, Net
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True)
class Region:
    """A set of usable cores with its middle: coordinates in units of distance, and its most central core."""

    cores: IntArray
    x: float
    y: float
    centre: int


def region_of(cores: IntArray, metric: Metric) -> Region:
    """The region of the given cores."""
    if len(metric.matrix):
        inside = (
            metric.matrix[np.ix_(cores, cores)] if len(cores) <= 2048 else metric.matrix[cores][:, cores[:64]]
        )
        return Region(cores, 0.0, 0.0, int(cores[int(np.argmin(inside.sum(axis=1)))]))
    row, col = np.divmod(cores, metric.cols)
    x, y = metric.x[col], metric.y[row]
    return Region(cores, float(x.mean()), float(y.mean()), int(cores[0]))


def region_distance(a: Region, b: Region, metric: Metric) -> float:
    """Distance between the middles of two regions."""
    if len(metric.matrix):
        return float(metric.matrix[a.centre, b.centre])
    dx, dy = abs(a.x - b.x), abs(a.y - b.y)
    if metric.wrap_x > 0:
        dx = min(dx, metric.wrap_x - dx)
    if metric.wrap_y > 0:
        dy = min(dy, metric.wrap_y - dy)
    return dx + dy + metric.step


def split_region(cores: IntArray, machine: Machine, metric: Metric) -> tuple[IntArray, IntArray]:
    """Two halves of at least two cores."""
    if len(metric.matrix):
        d = metric.matrix[:, cores]
        far = int(np.argmax(d[cores[0]]))
        other = int(np.argmax(d[cores[far]]))
        order = np.argsort(d[cores[far]] - d[cores[other]], kind="stable")
        half = len(cores) // 2
        return np.sort(cores[order[:half]]), np.sort(cores[order[half:]])
    lines = np.divmod(cores, metric.cols)
    per_chip = machine.cores
    chips = [len(np.unique(lines[a] // per_chip[a])) for a in (0, 1)]
    span = [float(np.ptp(metric.y[lines[0]])), float(np.ptp(metric.x[lines[1]]))]
    if max(span) == 0.0:  # every distance is the same (cut)
        span = [float(np.ptp(lines[0])), float(np.ptp(lines[1]))]
    axis = int(np.argmax(chips)) if max(chips) > 1 and chips[0] != chips[1] else int(np.argmax(span))
    line = lines[axis] // per_chip[axis] if chips[axis] > 1 else lines[axis]
    values, counts = np.unique(line, return_counts=True)
    filled = np.cumsum(counts)[:-1]
    at = values[int(np.argmin(np.abs(2 * filled - len(cores)))) + 1]
    return cores[line < at], cores[line >= at]


@nb.njit(cache=True, nogil=True)
def _pulls(
    net: Net, nodes: Int32Array, local: Int32Array, region: Int32Array, nearer: FloatArray
) -> FloatArray:
    """(k,) cost of side 0 minus side 1 of each node; ``nearer[r]`` is that difference per weight to region ``r``."""
    out = np.zeros(len(nodes))
    for i in range(len(nodes)):
        for e in range(net.indptr[nodes[i]], net.indptr[nodes[i] + 1]):
            v = net.indices[e]
            if local[v] < 0:
                out[i] += net.weights[e] * nearer[region[v]]
    return out


def _sides(net: Net, board: Board, nodes: Int32Array, halves: tuple[IntArray, IntArray]) -> AnyArray:
    """(k,) int8: the side to which a node's domain binds it, -1 if either will do."""
    near = board.allowed[:, halves[0]].any(axis=1)
    far = board.allowed[:, halves[1]].any(axis=1)
    bound = np.where(near & ~far, 0, np.where(far & ~near, 1, -1)).astype(np.int8)
    out: AnyArray = bound[net.domain[nodes]]
    return out


def recursive_bisection(
    net: Net, board: Board, metric: Metric, machine: Machine, rng: AnyArray, tries: int = 4
) -> Int32Array:
    """(n,) int32 core of every node. Cores may overflow where nodes do not pack; repair is the caller's task."""
    n = len(net.volume)
    regions = [region_of(np.flatnonzero(machine.usable), metric)]
    region = np.zeros(n, np.int32)
    pos = np.zeros(n, np.int32)
    local = np.full(n, -1, np.int32)
    members = {0: np.arange(n, dtype=np.int32)}
    while members:
        following: dict[int, Int32Array] = {}
        for number, nodes in members.items():
            cores = regions[number].cores
            if len(cores) == 1 or len(nodes) == 0:
                pos[nodes] = cores[0]
                continue
            halves = split_region(cores, machine, metric)
            sub = tuple(region_of(h, metric) for h in halves)
            side = _split(net, board, metric, regions, sub, nodes, local, region, rng, tries)
            for s in (0, 1):
                following[len(regions)] = nodes[side == s]
                region[nodes[side == s]] = len(regions)
                regions.append(sub[s])
        members = following
    return pos


def _split(
    net: Net, board: Board, metric: Metric, regions: list[Region], sub: tuple[Region, ...], nodes: Int32Array,
    local: Int32Array, region: Int32Array, rng: AnyArray, tries: int,
) -> AnyArray:  # fmt: skip
    """Side of every node of a region whose halves are ``sub``. ``local`` is all -1 before and after."""
    nearer = np.array(
        [region_distance(sub[0], r, metric) - region_distance(sub[1], r, metric) for r in regions]
    )
    local[nodes] = np.arange(len(nodes), dtype=np.int32)
    pull = _pulls(net, nodes, local, region, nearer)
    room = np.stack([board.capacity[s.cores].sum(axis=0) for s in sub])
    share = len(sub[0].cores) / (len(sub[0].cores) + len(sub[1].cores))
    goal = float(net.volume[nodes].sum()) * share
    fixed = _sides(net, board, nodes, (sub[0].cores, sub[1].cores))
    across = region_distance(sub[0], sub[1], metric)
    side: AnyArray = bisect(net, nodes, local, pull, across, room, goal, fixed, tries, rng)
    local[nodes] = -1
    return side
