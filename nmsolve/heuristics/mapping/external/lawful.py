"""Placements that keep capacities and rules: from the order of the nodes, or near a placement that nearly does.

Overfull cores are brought within their capacities reading the connections only of nodes that must move.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import unlimited
from nmsolve.heuristics.mapping.external.accept import Placement, fits, placement, welcome
from nmsolve.heuristics.mapping.external.anneal import Run
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.propose import Cores
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.lines import Lines
from nmsolve.heuristics.mapping.multilevel.pack import make_feasible
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: While annealing, a core may hold this part of its capacity too much, and at least one node.
MARGIN = 50


def relaxed(level: Level, capacity: IntArray) -> IntArray:
    """Capacities (cores, resources) for annealing, a bit larger so that nodes of different sizes can pass each other."""
    limit = capacity.copy()
    if level.sizes.shape[1]:
        limit += np.where(limit > 0, np.maximum(level.sizes.max(axis=0), limit // MARGIN), 0)
    return limit


def placed(level: Level, pos: Int32Array, run: Run, price: AnyArray | None = None) -> Placement:
    """Return the placement ``pos`` (n,) in the form that annealing uses."""
    capacity = run.cores.capacity
    return placement(level.sizes, pos, relaxed(level, capacity), capacity, price)


def scattered(level: Level, allowed: BoolArray) -> Int32Array:
    """Return (n,) an allowed core for every node, cores filled evenly: the unordered start of annealing.

    Nodes that must be apart are, unless all allowed cores are taken by others of their set.
    """
    pos = np.zeros(level.n, np.int32)
    for d in range(len(allowed)):
        nodes = np.flatnonzero(level.domain == d)
        pos[nodes] = np.flatnonzero(allowed[d])[np.arange(len(nodes)) % int(allowed[d].sum())]
    for u in np.flatnonzero(np.diff(level.apart_ptr)).tolist():
        others = pos[level.apart[level.apart_ptr[u] : level.apart_ptr[u + 1]]]
        free = allowed[level.domain[u]].copy()
        free[others] = False
        if not free[pos[u]] and free.any():
            pos[u] = np.roll(np.arange(len(free)), -int(pos[u]))[np.argmax(np.roll(free, -int(pos[u])))]
    return pos


def in_order(level: Level, allowed: BoolArray) -> Int32Array:
    """Return (n,) cores filled evenly in the order of the file, so that neighbours in the file stay together."""
    pos = np.zeros(level.n, np.int32)
    for d in range(len(allowed)):
        nodes, cores = np.flatnonzero(level.domain == d), np.flatnonzero(allowed[d])
        filled = np.cumsum(level.volume[nodes], dtype=np.float64)
        if len(nodes):
            before = (filled - level.volume[nodes]) / max(1e-30, float(filled[-1]))
            pos[nodes] = cores[np.minimum((before * len(cores)).astype(np.int64), len(cores) - 1)]
    return pos


def legal(level: Level, run: Run) -> AnyArray | None:
    """Return (n,) a mapping that keeps all rules, made from the order of the nodes; None if none was found."""
    return fitted(level, placed(level, in_order(level, run.cores.allowed), run), run)


def fitted(level: Level, s: Placement, run: Run) -> AnyArray | None:
    """The cores of all nodes once overfull ones have shed what they must (in place), or, where that does not do, repaired
    whatever it costs; None if no placement was found that keeps all rules.
    """
    if within(level, s, run) is None:
        shed(level, s, run.cores)
    pos = within(level, s, run)
    return repaired(level, s.pos, run) if pos is None else pos


def within(level: Level, s: Placement, run: Run) -> AnyArray | None:
    """Return (n,) the cores of all nodes if they keep every capacity and rule, else None."""
    lawful = _lawful(s.pos, level.domain, run.cores.allowed, level.apart_ptr, level.apart)
    return s.pos if lawful and (s.load <= s.goal).all() else None


def repaired(level: Level, pos: AnyArray, run: Run) -> Int32Array | None:
    """Return (n,) a placement near ``pos`` that keeps capacities and rules at any cost; None if none was found.

    The feasibility search looks at sizes and rules only, so it gets the level without its connections.
    """
    none = np.zeros(level.n + 1, np.int64)
    g = Graph(
        none, np.zeros(0, np.int32), np.zeros(0, np.float32), level.sizes, level.volume.astype(np.float64), level.domain,
        level.apart_ptr, level.apart, np.zeros(0, np.int32),
    )  # fmt: skip
    c = run.cores
    board = Lines(c.col, c.row, c.lines_x, c.lines_y, c.capacity, c.allowed, unlimited())
    return make_feasible(g, board, pos.astype(np.int32), run.random, run.budget.stop)


@plain
def _lawful(
    pos: AnyArray, domain: Int32Array, allowed: BoolArray, apart_ptr: IntArray, apart: Int32Array
) -> bool:
    """True if all nodes are on cores that they may be on, and apart where they must be."""
    for u in range(len(pos)):
        if not allowed[domain[u], pos[u]]:
            return False
        for e in range(apart_ptr[u], apart_ptr[u + 1]):
            if pos[apart[e]] == pos[u]:
                return False
    return True


@kernel
def _shed(
    first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray, s: Placement, sizes: IntArray,
    apart_ptr: IntArray, apart: Int32Array, domain: Int32Array, allowed: BoolArray, near: AnyArray,
) -> None:  # fmt: skip
    """Nodes of a block leave overfull cores, until these are not: each goes where it talks most among the cores with room,
    else to the nearest core with room by ``near`` (P, P).
    """
    here = np.zeros(len(s.load), np.float32)
    for i in range(len(indptr) - 1):
        u = first + i
        q = s.pos[u]
        over = False
        for r in range(sizes.shape[1]):
            over = over or (sizes[u, r] > 0 and s.load[q, r] > s.goal[q, r])
        if not over:
            continue
        here[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            here[s.pos[neighbour[e]]] += weight[e]
        best = -1
        for p in range(len(here)):
            free = p != q and allowed[domain[u], p] and fits(s, s.goal, sizes, u, p)
            if not free or not welcome(s, apart_ptr, apart, u, p):
                continue
            if best < 0 or here[p] > here[best] or (here[p] == here[best] and near[q, p] < near[q, best]):
                best = p
        if best < 0:
            continue
        for r in range(sizes.shape[1]):
            s.load[q, r] -= sizes[u, r]
            s.load[best, r] += sizes[u, r]
        s.pos[u] = best


def shed(level: Level, s: Placement, cores: Cores) -> None:
    """Move nodes away from cores above their goal, once through the connections; afterwards most or all are within it.

    Only ``pos`` and ``load`` change.
    """
    x, y = np.asarray(cores.lines_x), np.asarray(cores.lines_y)
    near = x[np.ix_(cores.col, cores.col)] + y[np.ix_(cores.row, cores.row)]
    for arcs in level.source.blocks():
        _shed(
            arcs.first, arcs.indptr, arcs.neighbour, arcs.weight, s, level.sizes, level.apart_ptr, level.apart,
            level.domain, cores.allowed, near,
        )  # fmt: skip
