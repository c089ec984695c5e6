"""Mutable state of a placement that the refinement kernels work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import Presence, company, enter, leave, recount
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.model.compiled import embedded, inlined, kernel, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray


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


def new_state(net: Net, board: Board, pos: Int32Array, limit: IntArray, with_lines: bool) -> State:
    """State of the placement ``pos`` (copied)."""
    n, cores = len(pos), len(board.col)
    load = np.zeros_like(limit)
    np.add.at(load, pos, net.sizes)
    width, kinds = len(board.lines_x) + len(board.lines_y), board.kinds
    state = State(
        pos.astype(np.int32), load, limit.copy(), np.zeros(n + n // 2 + 8 * cores + 8, np.int32), np.zeros(n, np.int32),
        np.zeros(cores + 1, np.int64), np.zeros(cores, np.int64),
        np.zeros((n, width) if with_lines else (0, 0), np.float32),
        kinds.ptr, kinds.items, kinds.most.copy(), kinds.nodes.copy(), kinds.kinds.copy(),
    )  # fmt: skip
    recount(Presence(*state[8:]), net.kind, state.pos)
    lay_out(state)
    if with_lines:
        fill_lines(net, board, state, 0, n)
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
def fill_lines(net: Net, board: Board, s: State, begin: int, end: int) -> None:
    """Recompute ``lines`` of nodes ``begin`` to ``end`` from row and column histograms of their neighbours.

    O(deg + W**2 + H**2) per node.
    """
    w, h = len(board.lines_x), len(board.lines_y)
    in_col, in_row = np.zeros(w, np.float32), np.zeros(h, np.float32)
    for u in range(begin, end):
        in_col[:] = 0.0
        in_row[:] = 0.0
        for e in range(net.indptr[u], net.indptr[u + 1]):
            p = s.pos[net.indices[e]]
            in_col[board.col[p]] += net.weights[e]
            in_row[board.row[p]] += net.weights[e]
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
def fits(net: Net, s: State, u: int, p: int) -> bool:
    """True if core ``p`` has room for node ``u``."""
    for r in range(s.load.shape[1]):  # noqa: SIM110 (numba)
        if s.load[p, r] + net.sizes[u, r] > s.limit[p, r]:
            return False
    return True


@embedded
def swap_fits(net: Net, s: State, u: int, v: int) -> bool:
    """True if ``u`` and ``v`` (on different cores) can change places under all capacities."""
    p, q = s.pos[u], s.pos[v]
    for r in range(s.load.shape[1]):
        d = net.sizes[u, r] - net.sizes[v, r]
        if s.load[q, r] + d > s.limit[q, r] and d > 0:
            return False
        if s.load[p, r] - d > s.limit[p, r] and d < 0:
            return False
    return True


@plain
def welcome(net: Net, board: Board, s: State, u: int, p: int, leaving: int) -> bool:
    """True if domain, kinds and apart let ``u`` go to core ``p`` once node ``leaving`` (or -1) has left it."""
    if not board.allowed[net.domain[u], p]:
        return False
    if len(net.kind) > 0:
        goes = np.int64(net.kind[leaving]) if leaving >= 0 else np.int64(-1)
        if company(presence(s), p, net.kind[u], goes) > s.kind_most[p]:
            return False
    for e in range(net.apart_ptr[u], net.apart_ptr[u + 1]):
        v = net.apart[e]
        if s.pos[v] == p and v != leaving:
            return False
    return True


@plain
def relocate(net: Net, s: State, u: int, p: int) -> None:
    """Put ``u`` on core ``p``: position, loads, kinds and member lists (not ``lines``)."""
    q = s.pos[u]
    if len(net.kind) > 0:
        leave(presence(s), q, net.kind[u])
        enter(presence(s), p, net.kind[u])
    for r in range(s.load.shape[1]):
        s.load[q, r] -= net.sizes[u, r]
        s.load[p, r] += net.sizes[u, r]
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
def weight_between(net: Net, u: int, v: int) -> float:
    """Traffic of two nodes, by binary search in the shorter row."""
    if net.indptr[u + 1] - net.indptr[u] > net.indptr[v + 1] - net.indptr[v]:
        u, v = v, u
    low, high = net.indptr[u], net.indptr[u + 1]
    while low < high:
        mid = (low + high) // 2
        if net.indices[mid] < v:
            low = mid + 1
        else:
            high = mid
    if low < net.indptr[u + 1] and net.indices[low] == v:
        found: float = net.weights[low]
        return found
    return 0.0


@plain
def line_cost(board: Board, s: State) -> float:
    """Half the sum over nodes of what they pay: the objective, in the board's distances."""
    w = len(board.lines_x)
    total = 0.0
    for u in range(len(s.pos)):
        p = s.pos[u]
        total += float(s.lines[u, board.col[p]]) + float(s.lines[u, w + board.row[p]])
    return total / 2.0
