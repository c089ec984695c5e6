"""The cores as columns and rows, and a placement with what every node would pay in each: what the annealing works on.

All are named tuples, which numba passes as structures of arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import Presence, company, enter, kinds_of, leave, recount
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.hw.cost import CoreDistance, machine_distance
from nmsolve.model.compiled import embedded, inlined, kernel, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Largest table of nodes times cores (float32 entries) that the dense form may take.
DENSE_ENTRIES = 250_000_000


class Lines(NamedTuple):
    """The cores. col, row (P,) int32; lines_x (W, W), lines_y (H, H) float32: distance between columns and rows;
    capacity (P, R) int64; allowed (D, P) bool; kinds: empty cores, with the sets of kinds and how many each may have."""

    col: Int32Array
    row: Int32Array
    lines_x: AnyArray
    lines_y: AnyArray
    capacity: IntArray
    allowed: BoolArray
    kinds: Presence


def line_distances(at: FloatArray, wrap: float) -> AnyArray:
    """Return (L, L) float32 distances between lines at the positions ``at``, the shorter way round if ``wrap`` > 0."""
    d = np.abs(at[:, None] - at[None, :])
    if wrap > 0:
        d = np.minimum(d, wrap - d)
    out: AnyArray = np.ascontiguousarray(d, np.float32)
    return out


def lines_of(problem: MappingProblem, distance: CoreDistance) -> Lines:
    """Return the cores of a problem.

    Distances that are not a sum over column and row (a matrix, or a price for leaving the core at all) are held as
    one row of P columns: ``lines_x`` is then the whole (P, P) matrix. Above :data:`DENSE_ENTRIES` table entries the
    column and row parts alone stand in for them (offers are rescored by the evaluator).
    """
    cores = np.arange(problem.cores)
    allowed, capacity, kinds = np.array(problem.domains), np.array(problem.capacity), kinds_of(problem)[1]
    additive = distance.separable and distance.step == 0
    if not additive and problem.n * problem.cores <= DENSE_ENTRIES:
        matrix = distance.dense()
        both = np.ascontiguousarray((matrix + matrix.T) / 2, np.float32)
        none = np.zeros((1, 1), np.float32)
        return Lines(
            cores.astype(np.int32), np.zeros(len(cores), np.int32), both, none, capacity, allowed, kinds
        )
    if not distance.separable or (distance.x.max() == 0 and distance.y.max() == 0):
        plain = replace(
            problem.machine, distance_matrix=None, faulty_links=()
        )  # in hops, as if no link were dead
        distance = machine_distance(plain, "hops")
    row, col = np.divmod(cores, distance.cols)
    return Lines(
        col.astype(np.int32),
        row.astype(np.int32),
        line_distances(distance.x, distance.wrap_x),
        line_distances(distance.y, distance.wrap_y),
        capacity,
        allowed,
        kinds,
    )


class State(NamedTuple):
    """A placement with everything that makes a move cheap.

    pos (n,) int32 core of every node; load, limit (P, R) int64: what cores hold and may hold at this level.
    Members of core p are ``slots[first[p] : first[p] + held[p]]``, of at most ``first[p + 1] - first[p]``;
    ``slot`` (n,) is where each node is in ``slots``.
    lines (n, W + H) float32: what the node's traffic would cost along x if it sat in each column, then along y
    in each row; (0, 0) where unused.
    kind_ptr, kind_items, kind_most, kind_nodes and kinds are those of
    :class:`~nmsolve.heuristics.mapping.common.kinds.Presence`, kept up to date.
    """

    pos: Int32Array
    load: IntArray
    limit: IntArray
    slots: Int32Array
    slot: Int32Array
    first: IntArray
    held: IntArray
    lines: AnyArray
    kind_ptr: IntArray
    kind_items: Int32Array
    kind_most: IntArray
    kind_nodes: Int32Array
    kinds: IntArray


@inlined
def presence(s: State) -> Presence:
    """Which kinds are where."""
    return Presence(s.kind_ptr, s.kind_items, s.kind_most, s.kind_nodes, s.kinds)


def new_state(g: Graph, board: Lines, pos: Int32Array, limit: IntArray, with_lines: bool) -> State:
    """State of the placement ``pos`` (copied)."""
    n, cores = len(pos), len(board.col)
    load = np.zeros_like(limit)
    np.add.at(load, pos, g.sizes)
    width, kinds = len(board.lines_x) + len(board.lines_y), board.kinds
    state = State(
        pos.astype(np.int32), load, limit.copy(), np.zeros(n + n // 2 + 8 * cores + 8, np.int32), np.zeros(n, np.int32),
        np.zeros(cores + 1, np.int64), np.zeros(cores, np.int64),
        np.zeros((n, width) if with_lines else (0, 0), np.float32),
        kinds.ptr, kinds.items, kinds.most.copy(), kinds.nodes.copy(), kinds.kinds.copy(),
    )  # fmt: skip
    recount(Presence(*state[8:]), g.kind, state.pos)
    lay_out(state)
    if with_lines:
        fill_lines(g, board, state, 0, n)
    return state


@plain
def lay_out(s: State) -> None:
    """Lay the member lists out again, each with half as much spare room as it has members, and 8."""
    cores = len(s.held)
    s.held[:] = 0
    for u in range(len(s.pos)):
        s.held[s.pos[u]] += 1
    for p in range(cores):
        s.first[p + 1] = s.first[p] + s.held[p] + s.held[p] // 2 + 8
    s.held[:] = 0
    for u in range(len(s.pos)):
        p = s.pos[u]
        s.slot[u] = s.first[p] + s.held[p]
        s.slots[s.slot[u]] = u
        s.held[p] += 1


@kernel
def fill_lines(g: Graph, board: Lines, s: State, begin: int, end: int) -> None:
    """Recompute ``lines`` of nodes ``begin`` to ``end`` from row and column histograms of their neighbours.

    O(deg + W**2 + H**2) per node.
    """
    w, h = len(board.lines_x), len(board.lines_y)
    in_col, in_row = np.zeros(w, np.float32), np.zeros(h, np.float32)
    for u in range(begin, end):
        in_col[:] = 0.0
        in_row[:] = 0.0
        for e in range(g.ptr[u], g.ptr[u + 1]):
            p = s.pos[g.neighbour[e]]
            in_col[board.col[p]] += g.weight[e]
            in_row[board.row[p]] += g.weight[e]
        s.lines[u, :] = 0.0
        for c in range(w):
            if in_col[c] > 0.0:
                for j in range(w):
                    s.lines[u, j] += in_col[c] * board.lines_x[c, j]
        for r in range(h):
            if in_row[r] > 0.0:
                for j in range(h):
                    s.lines[u, w + j] += in_row[r] * board.lines_y[r, j]


@embedded
def swap_fits(g: Graph, s: State, u: int, v: int) -> bool:
    """True if ``u`` and ``v`` (on different cores) can change places under all capacities."""
    p, q = s.pos[u], s.pos[v]
    for r in range(s.load.shape[1]):
        d = g.sizes[u, r] - g.sizes[v, r]
        if s.load[q, r] + d > s.limit[q, r] and d > 0:
            return False
        if s.load[p, r] - d > s.limit[p, r] and d < 0:
            return False
    return True


@plain
def welcome(g: Graph, board: Lines, s: State, u: int, p: int, leaving: int) -> bool:
    """True if domain, kinds and apart let ``u`` go to core ``p`` once node ``leaving`` (or -1) has left it."""
    if not board.allowed[g.domain[u], p]:
        return False
    if len(g.kind) > 0:
        goes = np.int64(g.kind[leaving]) if leaving >= 0 else np.int64(-1)
        if company(presence(s), p, g.kind[u], goes) > s.kind_most[p]:
            return False
    for e in range(g.apart_ptr[u], g.apart_ptr[u + 1]):
        v = g.apart[e]
        if s.pos[v] == p and v != leaving:
            return False
    return True


@plain
def relocate(g: Graph, s: State, u: int, p: int) -> None:
    """Put ``u`` on core ``p``: position, loads, kinds and member lists (not ``lines``)."""
    q = s.pos[u]
    if len(g.kind) > 0:
        leave(presence(s), q, g.kind[u])
        enter(presence(s), p, g.kind[u])
    for r in range(s.load.shape[1]):
        s.load[q, r] -= g.sizes[u, r]
        s.load[p, r] += g.sizes[u, r]
    s.held[q] -= 1
    last = s.slots[s.first[q] + s.held[q]]
    s.slots[s.slot[u]] = last
    s.slot[last] = s.slot[u]
    s.pos[u] = p
    if s.first[p] + s.held[p] == s.first[p + 1]:
        lay_out(s)
    else:
        s.slot[u] = s.first[p] + s.held[p]
        s.slots[s.slot[u]] = u
        s.held[p] += 1


@plain
def weight_between(g: Graph, u: int, v: int) -> float:
    """Traffic of two nodes, by binary search in the shorter row."""
    if g.ptr[u + 1] - g.ptr[u] > g.ptr[v + 1] - g.ptr[v]:
        u, v = v, u
    low, high = g.ptr[u], g.ptr[u + 1]
    while low < high:
        mid = (low + high) // 2
        if g.neighbour[mid] < v:
            low = mid + 1
        else:
            high = mid
    if low < g.ptr[u + 1] and g.neighbour[low] == v:
        found: float = g.weight[low]
        return found
    return 0.0


@plain
def line_cost(board: Lines, s: State) -> float:
    """Half the sum over nodes of what they pay: the objective, in the board's distances."""
    w = len(board.lines_x)
    total = 0.0
    for u in range(len(s.pos)):
        p = s.pos[u]
        total += float(s.lines[u, board.col[p]]) + float(s.lines[u, w + board.row[p]])
    return total / 2.0
