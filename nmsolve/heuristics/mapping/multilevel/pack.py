"""Feasibility: first-fit-decreasing packing and a local search on the violation of capacities, kinds and apart.

Nothing here looks at the objective; it is called only where cost-driven placement ends infeasible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import company, enter
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.heuristics.mapping.multilevel.state import State, new_state, presence, relocate
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
def _over_with(net: Net, s: State, scale: AnyArray, p: int, comes: int, goes: int) -> float:
    """Overflow of core ``p`` if ``comes`` came and ``goes`` went (-1: none)."""
    out = 0.0
    for r in range(s.load.shape[1]):
        x = s.load[p, r] - s.limit[p, r]
        if comes >= 0:
            x += net.sizes[comes, r]
        if goes >= 0:
            x -= net.sizes[goes, r]
        if x > 0:
            out += x * scale[r]
    return out


@plain
def _strangers(net: Net, s: State, p: int, comes: int, goes: int) -> float:
    """Kinds too many on core ``p`` if ``comes`` came and ``goes`` went (-1: none)."""
    if len(net.kind) == 0:
        return 0.0
    a = np.int64(net.kind[comes]) if comes >= 0 else np.int64(-1)
    b = np.int64(net.kind[goes]) if goes >= 0 else np.int64(-1)
    return float(max(0, company(presence(s), p, a, b) - s.kind_most[p]))


@plain
def _quarrels(net: Net, s: State, u: int, p: int) -> int:
    """How many nodes that must be apart from ``u`` sit on core ``p``."""
    out = 0
    for e in range(net.apart_ptr[u], net.apart_ptr[u + 1]):
        if s.pos[net.apart[e]] == p:
            out += 1
    return out


@plain
def violation(net: Net, s: State, scale: AnyArray) -> float:
    """Total overflow in shares of a core, plus kinds too many, plus the number of apart pairs that share a core.

    Domains always hold.
    """
    out = 0.0
    for p in range(len(s.held)):
        out += _over(s.load, s.limit, scale, p) + _strangers(net, s, p, -1, -1)
    for u in range(len(s.pos)):
        out += _quarrels(net, s, u, s.pos[u]) / 2.0
    return out


@kernel
def _first_fit(net: Net, board: Board, limit: IntArray, order: Int32Array, scale: AnyArray) -> Int32Array:
    """Best-fit packing in the given order; a node that fits nowhere goes where it overflows least."""
    pos = np.full(len(net.volume), -1, np.int32)
    load, here = np.zeros_like(limit), board.kinds
    here.nodes[:] = 0
    here.kinds[:] = 0
    for u in order:
        best, least = -1, np.inf
        for p in range(limit.shape[0]):
            if not board.allowed[net.domain[u], p]:
                continue
            bad, room = 0.0, 0.0
            for r in range(limit.shape[1]):
                x = limit[p, r] - load[p, r] - net.sizes[u, r]
                if x < 0:
                    bad -= x * scale[r]
                else:
                    room += x * scale[r]
            for e in range(net.apart_ptr[u], net.apart_ptr[u + 1]):
                if pos[net.apart[e]] == p:
                    bad += 1.0
            if len(net.kind) > 0:
                bad += max(0, company(here, p, net.kind[u], -1) - here.most[p])
            if 1e6 * bad + room < least:
                best, least = p, 1e6 * bad + room
        pos[u] = best
        if len(net.kind) > 0:
            enter(here, best, net.kind[u])
        for r in range(limit.shape[1]):
            load[best, r] += net.sizes[u, r]
    return pos


@plain
def _settle(
    net: Net,
    board: Board,
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
            bad = _over(s.load, s.limit, scale, q) > 0.0 or _strangers(net, s, q, -1, -1) > 0.0
            if bad or _quarrels(net, s, u, q) > 0 or uniform(rng) < 0.05:
                break
            u = below(rng, n)
            q = s.pos[u]
        p = below(rng, cores)
        if p == q or not board.allowed[net.domain[u], p]:
            continue
        v = -1
        if s.held[p] > 0 and uniform(rng) < 0.7:
            v = s.slots[s.first[p] + below(rng, s.held[p])]
            if not board.allowed[net.domain[v], q]:
                continue
        d = _over_with(net, s, scale, p, u, v) + _over_with(net, s, scale, q, v, u)
        d -= _over(s.load, s.limit, scale, p) + _over(s.load, s.limit, scale, q)
        d += _strangers(net, s, p, u, v) + _strangers(net, s, q, v, u)
        d -= _strangers(net, s, p, -1, -1) + _strangers(net, s, q, -1, -1)
        before, after = _quarrels(net, s, u, q), _quarrels(net, s, u, p)
        if v >= 0:
            before += _quarrels(net, s, v, p)
            after += _quarrels(net, s, v, q)
            for e in range(net.apart_ptr[u], net.apart_ptr[u + 1]):
                if net.apart[e] == v:  # they only change places
                    after -= 2
        d += after - before
        if d <= 0.0 or uniform(rng) < np.exp(-d / temperature):
            relocate(net, s, u, p)
            if v >= 0:
                relocate(net, s, v, q)
            now += d
    return now


def scale_of(board: Board) -> AnyArray:
    """(R,) weight of one unit of overflow: 1 / capacity of the largest core."""
    out: AnyArray = 1.0 / np.maximum(1, board.capacity.max(axis=0))
    return out


def first_fit(net: Net, board: Board, rng: AnyArray, noise: float) -> Int32Array:
    """(n,) cores by best-fit decreasing: nodes with few allowed cores first, kind by kind if these are limited, large ones first.

    ``noise`` shuffles similar sizes (0: exact order).
    """
    choices = board.allowed.sum(axis=1)[net.domain]
    mix = np.arange(len(net.volume), dtype=np.int32)
    shuffle(rng, mix)
    jitter = mix / max(1, len(mix))
    share = (net.sizes * scale_of(board)).sum(axis=1)
    keys = (jitter, -share * (1 + noise * jitter), *([net.kind] if len(net.kind) else []))
    order = np.lexsort((*keys, -np.diff(net.apart_ptr), choices)).astype(np.int32)
    out: Int32Array = _first_fit(net, board, board.capacity, order, scale_of(board))
    return out


def make_feasible(
    net: Net,
    board: Board,
    pos: Int32Array,
    rng: AnyArray,
    stop: Callable[[], bool] = lambda: False,
    rounds: int = 16,
) -> Int32Array | None:
    """A feasible mapping near ``pos`` if local search finds one, else one packed from scratch; None if neither.

    Domains of ``pos`` may be violated too. ``stop`` is asked once the two quickest ways have failed.
    """
    scale = scale_of(board)
    wrong = ~board.allowed[net.domain, pos]
    start = np.where(wrong, board.allowed.argmax(axis=1)[net.domain], pos).astype(np.int32)
    steps = min(300_000, 10_000 + 20 * len(pos))
    for attempt in range(rounds):
        if attempt > 0:
            start = first_fit(net, board, rng, 0.0 if attempt == 1 else 0.3)
        s = new_state(net, board, start, board.capacity, with_lines=False)
        now = violation(net, s, scale)
        for temperature in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003):
            if attempt > 1 and stop():
                return None
            now = _settle(net, board, s, scale, now, temperature, steps, rng)
        if violation(net, s, scale) < 1e-9:
            found: Int32Array = s.pos
            return found
    return None
