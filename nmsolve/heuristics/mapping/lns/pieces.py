"""Rounds of piece moves: pick a piece of the placement, solve it, put its nodes where they belong.

A *window* is a small rectangle of the board, empty cores included; a *graph* piece is a node with others reached from it
over heavy links; an *assignment* is a set of nodes without traffic among them and some empty cores, which leaves only
unary costs. The first two are solved by :mod:`branch`, the last by :mod:`assignment`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.lns.assignment import assign
from nmsolve.heuristics.mapping.lns.branch import LARGEST, Scratch, best_seats, new_scratch
from nmsolve.heuristics.mapping.lns.piece import distance, fill_pairs, fill_unary, value
from nmsolve.heuristics.mapping.placement.anneal_direct import Links
from nmsolve.heuristics.mapping.placement.blocks import exchange
from nmsolve.heuristics.mapping.placement.proposals import STEP, mix, put
from nmsolve.heuristics.mapping.placement.tables import Grid, Net, Seats, Tables
from nmsolve.model.types import FloatArray, IntArray

#: Kinds of piece.
WINDOW, GRAPH, ASSIGNMENT = 0, 1, 2
#: Cores of a window or a graph piece, most search nodes for one, most nodes of an assignment.
SIZE, MOST, WIDE = 9, 2000, 40


class Piece(NamedTuple):
    """Memory of a round: cores and their nodes, costs, ``local`` (n,) numbers (-1 outside), seats, branch and bound."""

    cores: IntArray
    nodes: IntArray
    local: IntArray
    unary: FloatArray
    pair: FloatArray
    reverse: FloatArray
    dist: FloatArray
    seat: IntArray
    branch: Scratch


def new_piece(n: int) -> Piece:
    """Memory for ``n`` nodes."""
    small = LARGEST
    return Piece(
        np.zeros(WIDE, np.int64),
        np.zeros(WIDE, np.int64),
        np.full(n, -1, np.int64),
        np.zeros((WIDE, WIDE)),
        np.zeros((small, small)),
        np.zeros((small, small)),
        np.zeros((small, small)),
        np.zeros(WIDE, np.int64),
        new_scratch(),
    )


@nb.njit(cache=True, nogil=True)
def _draw(rng: IntArray, end: int) -> Any:
    """Random whole number in [0, end), end < 2**31."""
    rng[0] += STEP
    return np.int64(((mix(rng[0]) >> np.uint64(32)) * np.uint64(end)) >> np.uint64(32))


@nb.njit(cache=True, nogil=True)
def _window(rng: IntArray, grid: Grid, seats: Seats, cores: IntArray) -> Any:
    """Usable cores of a random rectangle of about SIZE cores; how many."""
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    wide: Any = 2 + _draw(rng, 4)
    high: Any = min(rows, (SIZE + 1) // wide)
    wide = min(cols, wide if high > 1 else SIZE)
    high = min(rows, (SIZE + 1) // wide)
    x, y = _draw(rng, cols - wide + 1), _draw(rng, rows - high + 1)
    count = 0
    for i in range(high):
        for j in range(wide):
            p = (y + i) * cols + x + j
            if seats.node[p] != -2:
                cores[count] = p
                count += 1
    return count


@nb.njit(cache=True, nogil=True)
def _cluster(rng: IntArray, links: Links, grid: Grid, seats: Seats, nodes: IntArray, cores: IntArray) -> Any:
    """Cores of a random node and of SIZE - 1 others, each the heavier of two random neighbours of one of them."""
    n, cols, count = len(seats.cx), grid.dx.shape[0], 1
    nodes[0] = _draw(rng, n)
    for _ in range(4 * SIZE):
        u = nodes[_draw(rng, count)]
        first, degree = links.indptr[u], links.indptr[u + 1] - links.indptr[u]
        if degree == 0:
            continue
        one, other = first + _draw(rng, degree), first + _draw(rng, degree)
        v: Any = np.int64(links.indices[one if links.weights[one] >= links.weights[other] else other])
        known = False
        for i in range(count):
            known = known or nodes[i] == v
        if not known:
            nodes[count] = v
            count += 1
            if count == SIZE:
                break
    for i in range(count):
        cores[i] = np.int64(seats.cy[nodes[i]]) * cols + np.int64(seats.cx[nodes[i]])
    return count


@nb.njit(cache=True, nogil=True)
def _strangers(
    rng: IntArray, links: Links, grid: Grid, seats: Seats, local: IntArray, cores: IntArray
) -> Any:
    """Up to WIDE cores near a random one, or anywhere, no two with nodes that exchange traffic; how many.

    ``local`` counts the chosen neighbours of every node meanwhile and is -1 again in the end.
    """
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    reach = max(cols, rows) if _draw(rng, 2) == 0 else 3 + _draw(rng, 5)
    x, y = _draw(rng, cols), _draw(rng, rows)
    left, right = max(0, x - reach), min(cols, x + reach + 1)
    low, high = max(0, y - reach), min(rows, y + reach + 1)
    count = 0
    for _ in range(3 * WIDE):
        p: Any = (low + _draw(rng, high - low)) * cols + left + _draw(rng, right - left)
        u = np.int64(seats.node[p])
        known = u == -2 or (u >= 0 and local[u] >= 0)
        for i in range(count):
            known = known or cores[i] == p
        if known:
            continue
        cores[count] = p
        count += 1
        if u >= 0:
            for e in range(links.indptr[u], links.indptr[u + 1]):
                local[links.indices[e]] = 0
        if count == WIDE:
            break
    for i in range(count):
        u = np.int64(seats.node[cores[i]])
        if u >= 0:
            for e in range(links.indptr[u], links.indptr[u + 1]):
                local[links.indices[e]] = -1
    return count


@nb.njit(cache=True, nogil=True)
def solve_piece(
    kind: int, size: int, least: float, links: Links, grid: Grid, seats: Seats, piece: Piece
) -> Any:
    """Best seats for the nodes on ``piece.cores[:size]``: ``(nodes, gain, neighbour entries, search nodes)``.

    ``piece.seat[i]`` is the number of the core for ``piece.nodes[i]``; it is only of use if the gain is above 0.
    """
    cores = piece.cores[:size]
    m = 0
    for k in range(size):
        u = np.int64(seats.node[cores[k]])
        if u >= 0:
            piece.nodes[m], piece.seat[m] = u, k
            piece.local[u] = m
            m += 1
    nodes, seat, unary = piece.nodes[:m], piece.seat[:m], piece.unary[:m, :size]
    entries = fill_unary(nodes, cores, piece.local, links, grid, seats, unary)
    gain, visited = 0.0, 0
    if kind == ASSIGNMENT:
        before = 0.0
        for i in range(m):
            before += unary[i, seat[i]]
        gain = before - assign(unary, seat) if m > 1 else 0.0
        visited = m * size // 6  # a cell of the table costs a sixth of a search node
    elif m > 0:
        pair, reverse = piece.pair[:m, :m], piece.reverse[:m, :m]
        dist = piece.dist[:size, :size]
        fill_pairs(nodes, piece.local, links, pair, reverse)
        for k in range(size):
            for j in range(size):
                dist[k, j] = distance(cores[k], cores[j], links, grid)
        before = value(seat, unary, pair, reverse, dist)
        limit = before - least
        after, visited = best_seats(unary, pair, reverse, dist, limit, MOST, seat, piece.branch)
        gain = before - after if after < limit else 0.0
    for i in range(m):
        piece.local[nodes[i]] = -1
    return m, gain, entries, visited


@nb.njit(cache=True, nogil=True)
def apply_seats(
    m: int, links: Links, grid: Grid, seats: Seats, net: Net, tables: Tables, piece: Piece
) -> Any:
    """Exchange nodes until ``piece.nodes[i]`` sits on ``piece.cores[piece.seat[i]]``; how many exchanges.

    A chain of exchanges may pass through seats that a side constraint forbids, but it ends in permitted ones.
    """
    cols, made = grid.dx.shape[0], 0
    for i in range(m):
        u, to = piece.nodes[i], piece.cores[piece.seat[i]]
        here = np.int64(seats.cy[u]) * cols + np.int64(seats.cx[u])
        if here == to:
            continue
        made += 1
        if tables.lines.shape[0] > 0:
            exchange(here, to, False, net, grid, seats, tables)
        else:
            put(u, np.int64(seats.node[to]), here, to, cols, seats)
    return made


@nb.njit(cache=True, nogil=True)
def search_pieces(
    kind: int,
    rounds: int,
    least: float,
    rng: IntArray,
    links: Links,
    grid: Grid,
    seats: Seats,
    net: Net,
    tables: Tables,
    piece: Piece,
    stats: FloatArray,
) -> None:
    """Solve ``rounds`` random pieces and make every reassignment that gains more than ``least``.

    ``tables`` without lines means that there are none to keep. Adds to ``stats``: rounds, kept ones, exchanges, change of
    cost, neighbour entries, search nodes.
    """
    for _ in range(rounds):
        if kind == WINDOW:
            size = _window(rng, grid, seats, piece.cores)
        elif kind == GRAPH:
            size = _cluster(rng, links, grid, seats, piece.nodes, piece.cores)
        else:
            size = _strangers(rng, links, grid, seats, piece.local, piece.cores)
        m, gain, entries, visited = solve_piece(kind, size, least, links, grid, seats, piece)
        stats[0] += 1
        stats[4] += entries
        stats[5] += visited
        if gain > least:
            stats[1] += 1
            stats[2] += apply_seats(m, links, grid, seats, net, tables, piece)
            stats[3] -= gain
