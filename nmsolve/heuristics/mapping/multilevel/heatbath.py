"""Heat-bath annealing for separable distances.

Every node keeps what its traffic would cost in each column and in each row (``State.lines``). At temperature T a
visited node draws its new column and row from the exact Boltzmann distribution over *all* cores, which is a product
of one distribution over columns and one over rows: O(W + H), no rejected proposals at low temperature and no window
to tune. If the drawn core is full, the best of a few random members is offered the node's place in exchange and
accepted by its own cost (Metropolis–Hastings, the node's part of the ratio cancels). An accepted move updates the
lines of the neighbours: O(deg * (W + H)), contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.multilevel.graph import Graph, room_for
from nmsolve.heuristics.mapping.multilevel.lines import (
    Lines,
    State,
    relocate,
    swap_fits,
    weight_between,
    welcome,
)
from nmsolve.heuristics.rng import below, next_bits, uniform
from nmsolve.model.compiled import compiled, inlined, plain
from nmsolve.model.types import AnyArray, Int32Array

#: Members of a full core that are considered for an exchange.
CANDIDATES = 4


@inlined
def _fraction(bits: int) -> Any:
    """The lower 24 of the lower 32 bits as a number in [0, 1)."""
    return np.float32(np.int32(bits & np.uint64(0xFFFFFF))) * np.float32(1.0 / 16777216.0)


@compiled(fastmath=True, inline="always")
def _draw(
    lines: AnyArray, u: int, begin: int, end: int, own: int, scale: float, luck: float, bits: Int32Array, prob: AnyArray
) -> int:  # fmt: skip
    """Draw an index of ``lines[u, begin:end]`` with probability proportional to ``exp(-cost / T)``.

    ``scale`` is 2**23 / (T ln 2): the exponential is built from its bits (Schraudolph 1999, error below 6 %), in
    ``bits`` and ``prob``, one buffer seen as int32 and float32. ``luck`` is uniform in [0, 1). Costs more than 74 T
    below that of index ``own`` count alike.
    """
    base = lines[u, own]
    for j in range(begin, end):
        z = min(max((base - lines[u, j]) * scale, np.float32(-1.05e9)), np.float32(9e8))
        bits[j - begin] = np.int32(z + np.float32(1064866805.0))
    total = np.float32(0.0)
    for j in range(end - begin):
        total += prob[j]
    rest = luck * total
    for j in range(end - begin):
        rest -= prob[j]
        if rest < np.float32(0.0):
            return j
    return own - begin


@compiled(fastmath=True)
def shift_lines(g: Graph, board: Lines, s: State, u: int, q: int, p: int, step: AnyArray) -> None:
    """Update the lines of the neighbours of ``u``, which moved from core ``q`` to ``p``."""
    w, h = len(board.lines_x), len(board.lines_y)
    for j in range(w):
        step[j] = board.lines_x[board.col[p], j] - board.lines_x[board.col[q], j]
    for j in range(h):
        step[w + j] = board.lines_y[board.row[p], j] - board.lines_y[board.row[q], j]
    for e in range(g.ptr[u], g.ptr[u + 1]):
        v = g.neighbour[e]
        f = g.weight[e]
        for j in range(w + h):
            s.lines[v, j] += f * step[j]


@inlined
def place_cost(board: Lines, s: State, u: int, p: int) -> float:
    """What the traffic of ``u`` would cost if it sat on core ``p``."""
    cost: float = s.lines[u, board.col[p]] + s.lines[u, len(board.lines_x) + board.row[p]]
    return cost


@plain
def _partner(g: Graph, board: Lines, s: State, u: int, p: int, rng: AnyArray) -> int:
    """The one of a few random members of the full core ``p`` that gains most by going where ``u`` is; -1 if none can."""
    q = s.pos[u]
    best, least = -1, np.float32(np.inf)
    for _ in range(CANDIDATES):
        v = s.slots[s.first[p] + below(rng, s.held[p])]
        d = place_cost(board, s, v, q) - place_cost(board, s, v, p)
        if d < least and swap_fits(g, s, u, v):
            best, least = v, d
    return best


@inlined
def pair_error(board: Lines, p: int, q: int) -> float:
    """By how much two nodes that exchange cores ``p`` and ``q`` overrate the gain of their own edge, per weight."""
    a, b, c, d = board.col[p], board.col[q], board.row[p], board.row[q]
    x = 2.0 * board.lines_x[a, b] - board.lines_x[a, a] - board.lines_x[b, b]
    out: float = x + 2.0 * board.lines_y[c, d] - board.lines_y[c, c] - board.lines_y[d, d]
    return out


@compiled(fastmath=True)
def heat_sweep(
    g: Graph, board: Lines, s: State, begin: int, visits: int, temperature: float, bits: Int32Array, prob: AnyArray,
    step: AnyArray, rng: AnyArray,
) -> tuple[int, int, int]:  # fmt: skip
    """Visit ``visits`` nodes in cyclic order from ``begin``. Returns draws of another core, moves and edges touched.

    ``bits``/``prob``: (max(W, H),) scratch, one buffer seen as int32 and float32; ``step``: (W + H,) float32 scratch.
    """
    w, h = len(board.lines_x), len(board.lines_y)
    beta = 1.0 / temperature
    scale = np.float32(min(beta * 12102203.16, 1e30))
    draws, moves, touched = 0, 0, 0
    u = begin - 1
    for _ in range(visits):
        u = u + 1 if u + 1 < len(s.pos) else 0
        q = s.pos[u]
        luck = next_bits(rng)
        c = _draw(s.lines, u, 0, w, board.col[q], scale, _fraction(luck), bits, prob)
        r = _draw(s.lines, u, w, w + h, w + board.row[q], scale, _fraction(luck >> np.uint64(32)), bits, prob)
        p = r * w + c
        if p == q or not board.allowed[g.domain[u], p]:
            continue
        draws += 1
        v = -1
        if not room_for(g, s.load, s.limit, u, p):
            if s.held[p] == 0:
                continue
            v = _partner(g, board, s, u, p, rng)
            if v < 0 or not welcome(g, board, s, v, q, u):
                continue
            d = place_cost(board, s, v, q) - place_cost(board, s, v, p)
            between = weight_between(g, u, v)
            if between > 0.0:  # neither node's own cost knows that the other moves too
                d += between * pair_error(board, p, q)
            if d > 0.0 and uniform(rng) >= np.exp(-beta * d):
                continue
        if not welcome(g, board, s, u, p, v):
            continue
        relocate(g, s, u, p)
        shift_lines(g, board, s, u, q, p, step)
        touched += g.ptr[u + 1] - g.ptr[u]
        moves += 1
        if v >= 0:
            relocate(g, s, v, q)
            shift_lines(g, board, s, v, p, q, step)
            touched += g.ptr[v + 1] - g.ptr[v]
            moves += 1
    return draws, moves, touched
