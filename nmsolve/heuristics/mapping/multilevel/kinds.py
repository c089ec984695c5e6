"""Kinds of nodes that may not share a core: which core is for which kinds, and who has to move for that."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import owners
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.heatbath import place_cost
from nmsolve.heuristics.mapping.multilevel.lines import Lines, State, new_state
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: On the coarsest level cores may have this many kinds more: one kind can take the place of another only where
#: both are for a while.
LOOSE_KINDS = 1


def kinds_kept(s: State) -> bool:
    """Return whether no core has more kinds than it may have."""
    return bool((s.kinds[: len(s.kind_most)] <= s.kind_most).all())


def sorted_state(g: Graph, board: Lines, pos: Int32Array, limit: IntArray, more: int = 0) -> State:
    """Return the state of the placement ``pos`` (n,), or of one near it whose cores have only as many kinds as they may.

    Cores that may have any may have ``more`` kinds than the board says.
    """
    s = new_state(g, board, pos, limit, True)
    s.kind_most[s.kind_most > 0] += more
    if kinds_kept(s):
        return s
    s = new_state(g, board, sorted_by_kind(g, board, s), limit, True)
    s.kind_most[s.kind_most > 0] += more
    return s


def sorted_by_kind(g: Graph, board: Lines, s: State) -> Int32Array:
    """Return (n,) a placement near that of ``s`` whose cores have as few kinds as they may; some may be too full.

    Cores are given to the kinds that have most on them, each kind as many as it needs at least. Nodes that then sit on a
    core of other kinds go to the cheapest one of theirs, with room if there is one, the largest nodes first.
    """
    cores, kinds = s.kind_nodes.shape
    node = np.repeat(np.arange(len(g.kind)), np.diff(s.kind_ptr)[g.kind])
    kind = s.kind_items[_places(s.kind_ptr, g.kind)]
    held = np.zeros((cores, kinds))
    np.add.at(held, (s.pos[node], kind), g.volume[node])
    need = np.maximum(1, np.ceil(_most_filled(g, s, node, kind, kinds) - 1e-6)).astype(np.int64)
    owns = owners(held, need, np.where(board.allowed.any(axis=0), s.kind_most, 0))
    pos = s.pos.copy()
    by_size = np.argsort(-g.volume, kind="stable")
    _move_in(g, board, s, by_size, owns, pos, s.load.copy())
    return pos


def _places(ptr: IntArray, of: Int32Array) -> IntArray:
    """Return where in the lists of kinds those of every node are, node by node."""
    length = np.diff(ptr)[of]
    ends = np.cumsum(length)
    out: IntArray = np.arange(int(ends[-1])) + np.repeat(ptr[of] - (ends - length), length)
    return out


def _most_filled(g: Graph, s: State, node: IntArray, kind: Int32Array, kinds: int) -> FloatArray:
    """Return (kinds,) how many of the largest cores the nodes of every kind would fill."""
    out = np.zeros(kinds)
    for r in range(s.limit.shape[1]):
        size = np.bincount(kind, g.sizes[node, r], kinds)
        out = np.maximum(out, size / max(1, int(s.limit[:, r].max())))
    return out


@plain
def _belongs(g: Graph, s: State, u: int, p: int, owns: BoolArray) -> bool:
    for e in range(s.kind_ptr[g.kind[u]], s.kind_ptr[g.kind[u] + 1]):  # noqa: SIM110 (numba)
        if not owns[p, s.kind_items[e]]:
            return False
    return True


@plain
def _move_in(
    g: Graph, board: Lines, s: State, order: IntArray, owns: BoolArray, pos: Int32Array, load: AnyArray
) -> None:
    """Move every node on a core of other kinds to one of its own."""
    resources = load.shape[1]
    for u in order:
        if _belongs(g, s, u, pos[u], owns):
            continue
        best, least, roomy = -1, np.inf, False
        for p in range(len(owns)):
            if not board.allowed[g.domain[u], p] or not _belongs(g, s, u, p, owns):
                continue
            fits = True
            for r in range(resources):
                fits = fits and load[p, r] + g.sizes[u, r] <= s.limit[p, r]
            cost = place_cost(board, s, u, p)
            if (fits and not roomy) or (fits == roomy and cost < least):
                best, least, roomy = p, cost, fits
        if best >= 0:
            for r in range(resources):
                load[pos[u], r] -= g.sizes[u, r]
                load[best, r] += g.sizes[u, r]
            pos[u] = best
