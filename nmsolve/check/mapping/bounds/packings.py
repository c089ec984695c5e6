"""Own depth-first search of the re-check where cores hold several nodes: it ends only if no mapping costs as little as is said to
be impossible.

A partial mapping costs what its nodes pay one another. An open node pays at least its traffic to placed nodes from the cheapest
core that still has room for it, and two open nodes that no core can hold together pay at least their traffic times the least
distance. Each pair is counted once, so these add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nmsolve.check.mapping.bounds.symmetry import Board
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray

#: Nodes whose cores are told apart by symmetries of the board; the others go wherever there is room.
SYMMETRIC = 3


class Packing(NamedTuple):
    """The problem and the stack of a search.

    Attributes
    ----------
    there : (n, n) int64 traffic of u to v; far : (k, k) int64 distances, 0 on the diagonal
    size : (n, R) int64 what nodes need; apart : (n, n) bool nodes that no core holds together
    least : int64, in an array of one: the least distance between two cores
    left : (n + 1, n, k) bool cores that a node may use, per depth; linear : (n + 1, n, k) int64 what it pays to placed nodes
    free : (n + 1, k, R) int64 room of the cores; spent : (n + 1,) int64 cost among placed nodes
    place : (n,) int64 core or -1
    node : (n + 1,) int64 which is placed next; core : (n + 1, k) int64 where to; children, turn : (n + 1,) how many cores these
        are, and how many were entered
    """

    there: IntArray
    far: IntArray
    size: IntArray
    apart: BoolArray
    least: IntArray
    left: BoolArray
    linear: IntArray
    free: IntArray
    spent: IntArray
    place: IntArray
    node: IntArray
    core: IntArray
    children: IntArray
    turn: IntArray


def new_packing(
    there: IntArray, far: IntArray, allowed: BoolArray, size: IntArray, room: IntArray, apart: BoolArray
) -> Packing:
    """A search for traffic (n, n), distances (k, k), the cores that nodes may use (n, k), what nodes need (n, R) and cores hold
    (k, R), and nodes that must not share a core (n, n)."""
    n, k = allowed.shape
    fits = (size[:, None, None] + size[None, :, None] <= room).all(axis=3)
    together = (fits & allowed[:, None] & allowed[None]).any(axis=2)
    left = np.zeros((n + 1, n, k), bool)
    left[0] = allowed & (size[:, None] <= room).all(axis=2)
    free = np.zeros((n + 1, k, room.shape[1]), np.int64)
    free[0] = room
    whole = np.int64
    return Packing(
        there=there,
        far=far,
        size=np.ascontiguousarray(size, whole),
        apart=apart | ~together,
        least=np.array([far[~np.eye(k, dtype=bool)].min(initial=0) if k > 1 else 0], whole),
        left=left,
        linear=np.zeros((n + 1, n, k), whole),
        free=free,
        spent=np.zeros(n + 1, whole),
        place=np.full(n, -1, whole),
        node=np.zeros(n + 1, whole),
        core=np.zeros((n + 1, k), whole),
        children=np.zeros(n + 1, whole),
        turn=np.zeros(n + 1, whole),
    )


def nothing_below(s: Packing, most: int, budget: int) -> bool | None:
    """Return True if no mapping costs ``most`` or less, False if one does, None if more than ``budget`` partial mappings would
    have to be looked at."""
    pairs = s.there + s.there.T
    order = np.argsort(-pairs.sum(axis=1), kind="stable")
    # cores that differ in what they hold or in who may use them are unlike
    kinds = np.concatenate([s.left[0].astype(np.int64), s.free[0].T])
    for onto in _beginnings(order[:SYMMETRIC], Board(s.far, kinds), s.left[0], ()):
        done = pack(s, order[: len(onto)], np.array(onto, np.int64), most, budget)
        if done < 0:
            return False if done == -1 else None
        budget -= done
    return True


def _beginnings(
    nodes: IntArray, board: Board, allowed: BoolArray, onto: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """All cores of the first nodes, but for those that symmetries of the board make of others."""
    if len(onto) == len(nodes):
        yield onto
        return
    used = tuple(sorted(set(onto)))
    fresh = allowed[nodes[len(onto)]].copy()
    again = [p for p in used if fresh[p]]
    fresh[list(used)] = False
    for p in [*again, *board.unlike(used, fresh)]:
        yield from _beginnings(nodes, board, allowed, (*onto, p))


@kernel
def pack(s: Packing, first: IntArray, onto: IntArray, most: int, budget: int) -> int:
    """Search below the mapping of the nodes ``first`` onto the cores ``onto`` for one of cost ``most`` or less.

    Returns
    -------
    partial mappings looked at, if there is none; -1 if there is one; -2 if these are more than ``budget``
    """
    n, base, done = len(s.place), len(first), 0
    s.place[:] = -1
    for d in range(base):
        if not s.left[d, first[d], onto[d]]:
            return 0
        seat(s, d, first[d], onto[d])
    d, fresh = base, True
    while True:
        if fresh:
            if d == n:
                if s.spent[n] <= most:
                    return -1
                s.children[d] = 0
            else:
                done += 1
                if done > budget:
                    return -2
                list_children(s, d, most)
            s.turn[d] = 0
        if s.turn[d] < s.children[d]:
            seat(s, d, s.node[d], s.core[d, s.turn[d]])
            s.turn[d] += 1
            d += 1
            fresh = True
        elif d == base:
            return done
        else:
            d -= 1
            s.place[s.node[d]] = -1
            fresh = False


@plain
def seat(s: Packing, d: int, u: int, p: int) -> None:
    """Put node ``u`` on core ``p`` at depth ``d``."""
    n, k = len(s.place), len(s.far)
    s.place[u] = p
    s.spent[d + 1] = s.spent[d] + s.linear[d, u, p]
    for q in range(k):
        for r in range(s.size.shape[1]):
            s.free[d + 1, q, r] = s.free[d, q, r] - (s.size[u, r] if q == p else 0)
    for v in range(n):
        if s.place[v] < 0:
            for q in range(k):
                s.left[d + 1, v, q] = s.left[d, v, q]
                s.linear[d + 1, v, q] = (
                    s.linear[d, v, q] + s.there[v, u] * s.far[q, p] + s.there[u, v] * s.far[p, q]
                )
            if s.apart[u, v]:
                s.left[d + 1, v, p] = False
            for r in range(s.size.shape[1]):
                if s.size[v, r] > s.free[d + 1, p, r]:
                    s.left[d + 1, v, p] = False


@plain
def list_children(s: Packing, d: int, most: int) -> None:
    """Bound the partial mapping of depth ``d``; list the cores of the node with the fewest, unless it costs more than ``most``
    anyway."""
    n, k = len(s.place), len(s.far)
    s.children[d] = 0
    low = s.spent[d]
    for u in range(n):
        if s.place[u] < 0:
            cheapest = cheapest_core(s, d, u)
            if cheapest < 0:
                return
            low += s.linear[d, u, cheapest]
            for v in range(u):
                if s.place[v] < 0 and s.apart[u, v]:
                    low += (s.there[u, v] + s.there[v, u]) * s.least[0]
    if low > most:
        return
    fewest = k + 1
    for u in range(n):
        if s.place[u] < 0:
            rest, number = low - s.linear[d, u, cheapest_core(s, d, u)], 0
            for p in range(k):
                # a core that costs a node too much here does so further down, too
                s.left[d, u, p] = s.left[d, u, p] and rest + s.linear[d, u, p] <= most
                number += s.left[d, u, p]
            if number < fewest:
                s.node[d], fewest = u, number
    for p in range(k):
        if s.left[d, s.node[d], p]:
            s.core[d, s.children[d]] = p
            s.children[d] += 1


@plain
def cheapest_core(s: Packing, d: int, u: int) -> int:
    """The core on which the open node ``u`` pays placed nodes least; -1 if none is left to it."""
    best = -1
    for p in range(len(s.far)):
        if s.left[d, u, p] and (best < 0 or s.linear[d, u, p] < s.linear[d, u, best]):
            best = p
    return best
