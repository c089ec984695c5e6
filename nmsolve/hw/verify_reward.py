"""The reward of method M1 recomputed for verification: in plain Python and NumPy, routes walked link by link.

Shares no code with :mod:`nmsolve.hw.reward`; formulas from docs/objectives.md.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from nmsolve.hw.between import BetweenCores
from nmsolve.hw.walker import board, distinct, walk
from nmsolve.model.machine import Machine


def walked_reward(cores: BetweenCores, machine: Machine) -> float:
    """The objective ``reward`` of the messages of a mapping, on the machine's own routes."""
    flows = _flows(cores)
    right, left, down, up = np.zeros((4, machine.size))
    for (p, goals), rate in flows.items():
        for q in goals:
            across = _way(p % machine.cols, q % machine.cols, machine.cols, machine.torus)
            along = _way(p // machine.cols, q // machine.cols, machine.rows, machine.torus)
            for ahead, back, way in ((right, left, across), (down, up, along)):
                (ahead if way > 0 else back)[p] += rate * abs(way)
                (back if way > 0 else ahead)[q] += rate * abs(way)
    loss = math.fsum(np.maximum(left, right)) + math.fsum(np.maximum(up, down))
    channels = _walked_channels([(p, goals) for p, goals in flows if len(goals) > 1], machine)
    if not channels or machine.faulty_links:
        return loss
    return loss * math.exp(min(500.0, _vertical_to_horizontal(machine) / channels))


def _flows(cores: BetweenCores) -> dict[tuple[int, tuple[int, ...]], float]:
    """Traffic by source core and set of remote target cores."""
    out: dict[tuple[int, tuple[int, ...]], float] = {}
    for rows in cores.blocks():
        for i, (first, last) in enumerate(pairwise(rows.indptr.tolist())):
            p = int(cores.at[rows.source[i]])
            goals = sorted({int(q) for q in cores.at[rows.targets[first:last]]} - {p})
            if rows.multicast[i]:
                if goals and rows.rate[i] > 0:
                    out[p, tuple(goals)] = out.get((p, tuple(goals)), 0.0) + float(rows.rate[i])
                continue
            for q, weight in zip(
                cores.at[rows.targets[first:last]].tolist(), rows.weights[first:last].tolist(), strict=True
            ):
                if q != p and weight > 0:
                    out[p, (q,)] = out.get((p, (q,)), 0.0) + weight
    return out


def _walked_channels(trees: list[tuple[int, tuple[int, ...]]], machine: Machine) -> int:
    """Links of all trees, each tree's links once: so many trees are walked at once as memory allows."""
    if not trees:
        return 0
    b, links, count = board(machine, "hops"), 4 * machine.size, 0
    sizes = np.array([len(goals) for _, goals in trees], np.int64)
    piece = np.cumsum(sizes) // b.edges_at_once
    for first, last in pairwise([0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(trees)]):
        part = trees[first:last]
        p = np.repeat([s for s, _ in part], sizes[first:last])
        q = np.array([g for _, goals in part for g in goals], np.int64)
        tree = np.repeat(np.arange(len(part)), sizes[first:last])
        crossed = [tree[which] * links + link for which, link in walk(b, p, q)]
        count += len(distinct(crossed, len(part) * links)) if crossed else 0
    return count


def _way(a: int, b: int, length: int, torus: bool) -> int:
    """Lines from ``a`` to ``b``; on a ring the shorter way, of two equal ones the growing one."""
    ahead = (b - a) % length
    if torus and length > 2:
        return ahead if 2 * ahead <= length else ahead - length
    return b - a


def _vertical_to_horizontal(machine: Machine) -> int:
    """Turns that XY prohibits: what came along a column may not go on along a row."""
    leads = board(machine, "hops").leads
    leaves = (leads >= 0).astype(int)
    enters = np.zeros_like(leaves)
    for p, d in zip(*np.nonzero(leads >= 0), strict=True):
        enters[leads[p, d], d] += 1
    return int(((enters[:, 2] + enters[:, 3]) * (leaves[:, 0] + leaves[:, 1])).sum())
