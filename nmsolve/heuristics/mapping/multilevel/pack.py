"""Feasibility: first-fit-decreasing packing and a local search on the violation of capacities, kinds and apart.

Nothing here looks at the objective; it is called only where cost-driven placement ends infeasible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import company, enter
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.lines import Lines, State, new_state, presence, relocate
from nmsolve.heuristics.rng import below, shuffle, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray


@plain
def _over(load: IntArray, limit: IntArray, scale: AnyArray, p: int) -> float:
    out = 0.0
    for r in range(load.shape[1]):
        if load[p, r] > limit[p, r]:
            out += (load[p, r] - limit[p, r]) * scale[r]
    return out


@plain
def _over_with(g: Graph, s: State, scale: AnyArray, p: int, comes: int, goes: int) -> float:
    """Overflow of core ``p`` if ``comes`` came and ``goes`` went (-1: none)."""
    out = 0.0
    for r in range(s.load.shape[1]):
        x = s.load[p, r] - s.limit[p, r]
        if comes >= 0:
            x += g.sizes[comes, r]
        if goes >= 0:
            x -= g.sizes[goes, r]
        if x > 0:
            out += x * scale[r]
    return out


@plain
def _strangers(g: Graph, s: State, p: int, comes: int, goes: int) -> float:
    """Kinds too many on core ``p`` if ``comes`` came and ``goes`` went (-1: none)."""
    if len(g.kind) == 0:
        return 0.0
    a = np.int64(g.kind[comes]) if comes >= 0 else np.int64(-1)
    b = np.int64(g.kind[goes]) if goes >= 0 else np.int64(-1)
    return float(max(0, company(presence(s), p, a, b) - s.kind_most[p]))


@plain
def _quarrels(g: Graph, s: State, u: int, p: int) -> int:
    """How many nodes that must be apart from ``u`` sit on core ``p``."""
    out = 0
    for e in range(g.apart_ptr[u], g.apart_ptr[u + 1]):
        if s.pos[g.apart[e]] == p:
            out += 1
    return out


@plain
def violation(g: Graph, s: State, scale: AnyArray) -> float:
    """Total overflow in shares of a core, plus kinds too many, plus the number of apart pairs that share a core.

    Domains always hold.
    """
    out = 0.0
    for p in range(len(s.held)):
        out += _over(s.load, s.limit, scale, p) + _strangers(g, s, p, -1, -1)
    for u in range(len(s.pos)):
        out += _quarrels(g, s, u, s.pos[u]) / 2.0
    return out


@kernel
def _first_fit(g: Graph, board: Lines, limit: IntArray, order: Int32Array, scale: AnyArray) -> Int32Array:
    """Best-fit packing in the given order; a node that fits nowhere goes where it overflows least."""
    pos = np.full(len(g.volume), -1, np.int32)
    load, here = np.zeros_like(limit), board.kinds
    here.nodes[:] = 0
    here.kinds[:] = 0
    for u in order:
        best, least = -1, np.inf
        for p in range(limit.shape[0]):
            if not board.allowed[g.domain[u], p]:
                continue
            bad, room = 0.0, 0.0
            for r in range(limit.shape[1]):
                x = limit[p, r] - load[p, r] - g.sizes[u, r]
                if x < 0:
                    bad -= x * scale[r]
                else:
                    room += x * scale[r]
            for e in range(g.apart_ptr[u], g.apart_ptr[u + 1]):
                if pos[g.apart[e]] == p:
                    bad += 1.0
            if len(g.kind) > 0:
                bad += max(0, company(here, p, g.kind[u], -1) - here.most[p])
            if 1e6 * bad + room < least:
                best, least = p, 1e6 * bad + room
        pos[u] = best
        if len(g.kind) > 0:
            enter(here, best, g.kind[u])
        for r in range(limit.shape[1]):
            load[best, r] += g.sizes[u, r]
    return pos


@plain
def _settle(
    g: Graph,
    board: Lines,
    s: State,
    scale: AnyArray,
    now: float,
    temperature: float,
    steps: int,
    rng: AnyArray,
) -> float:
    """``steps`` random moves and swaps, Metropolis on the violation. Returns it; 0 means feasible."""
    n, cores = len(s.pos), len(s.held)
    for _ in range(steps):
        if now < 1e-9:
            break
        u = below(rng, n)
        q = s.pos[u]
        for _ in range(20):  # prefer nodes in trouble
            bad = _over(s.load, s.limit, scale, q) > 0.0 or _strangers(g, s, q, -1, -1) > 0.0
            if bad or _quarrels(g, s, u, q) > 0 or uniform(rng) < 0.05:
                break
            u = below(rng, n)
            q = s.pos[u]
        p = below(rng, cores)
        if p == q or not board.allowed[g.domain[u], p]:
            continue
        v = -1
        if s.held[p] > 0 and uniform(rng) < 0.7:
            v = s.slots[s.first[p] + below(rng, s.held[p])]
            if not board.allowed[g.domain[v], q]:
                continue
        d = _over_with(g, s, scale, p, u, v) + _over_with(g, s, scale, q, v, u)
        d -= _over(s.load, s.limit, scale, p) + _over(s.load, s.limit, scale, q)
        d += _strangers(g, s, p, u, v) + _strangers(g, s, q, v, u)
        d -= _strangers(g, s, p, -1, -1) + _strangers(g, s, q, -1, -1)
        before, after = _quarrels(g, s, u, q), _quarrels(g, s, u, p)
        if v >= 0:
            before += _quarrels(g, s, v, p)
            after += _quarrels(g, s, v, q)
            for e in range(g.apart_ptr[u], g.apart_ptr[u + 1]):
                if g.apart[e] == v:  # they only change places
                    after -= 2
        d += after - before
        if d <= 0.0 or uniform(rng) < np.exp(-d / temperature):
            relocate(g, s, u, p)
            if v >= 0:
                relocate(g, s, v, q)
            now += d
    return now


def scale_of(board: Lines) -> AnyArray:
    """(R,) weight of one unit of overflow: 1 / capacity of the largest core."""
    out: AnyArray = 1.0 / np.maximum(1, board.capacity.max(axis=0))
    return out


def first_fit(g: Graph, board: Lines, rng: AnyArray, noise: float) -> Int32Array:
    """(n,) cores by best-fit decreasing: nodes with few allowed cores first, kind by kind if these are limited, large ones first.

    ``noise`` shuffles similar sizes (0: exact order).
    """
    choices = board.allowed.sum(axis=1)[g.domain]
    mix = np.arange(len(g.volume), dtype=np.int32)
    shuffle(rng, mix)
    jitter = mix / max(1, len(mix))
    share = (g.sizes * scale_of(board)).sum(axis=1)
    keys = (jitter, -share * (1 + noise * jitter), *([g.kind] if len(g.kind) else []))
    order = np.lexsort((*keys, -np.diff(g.apart_ptr), choices)).astype(np.int32)
    out: Int32Array = _first_fit(g, board, board.capacity, order, scale_of(board))
    return out


def make_feasible(
    g: Graph,
    board: Lines,
    pos: Int32Array,
    rng: AnyArray,
    stop: Callable[[], bool] = lambda: False,
    rounds: int = 16,
) -> Int32Array | None:
    """A feasible mapping near ``pos`` if local search finds one, else one packed from scratch; None if neither.

    Domains of ``pos`` may be violated too. ``stop`` is asked once the two quickest ways have failed.
    """
    scale = scale_of(board)
    wrong = ~board.allowed[g.domain, pos]
    start = np.where(wrong, board.allowed.argmax(axis=1)[g.domain], pos).astype(np.int32)
    steps = min(300_000, 10_000 + 20 * len(pos))
    for attempt in range(rounds):
        if attempt > 0:
            start = first_fit(g, board, rng, 0.0 if attempt == 1 else 0.3)
        s = new_state(g, board, start, board.capacity, with_lines=False)
        now = violation(g, s, scale)
        for temperature in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003):
            if attempt > 1 and stop():
                return None
            now = _settle(g, board, s, scale, now, temperature, steps, rng)
        if violation(g, s, scale) < 1e-9:
            found: Int32Array = s.pos
            return found
    return None
