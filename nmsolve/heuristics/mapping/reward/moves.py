"""Random moves and swaps of nodes, judged by the reward."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.goals import some_change
from nmsolve.heuristics.mapping.common.metropolis import always, metropolis, trade
from nmsolve.heuristics.mapping.common.room import refill, seat
from nmsolve.heuristics.mapping.reward.channels import add_message, rebuild
from nmsolve.heuristics.mapping.reward.state import ADDED, CHANNELS, LOSS, Prices, RewardState, exchange
from nmsolve.hw.reward import MOST_RATIO
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


@plain
def value(s: RewardState) -> float:
    """The objective, from what is kept."""
    loss, added = max(0.0, s.total[LOSS]), max(0.0, s.total[ADDED])
    if s.total[CHANNELS] <= 0.0:
        return float(loss + added)
    return float(loss * np.exp(min(MOST_RATIO, s.price.weight[2] / s.total[CHANNELS])) + added)


@plain
def reset(s: RewardState) -> None:
    """Recompute everything that changes from ``core``; rounding that has gathered is gone."""
    refill(s.room)
    s.side[:] = 0.0
    s.total[:] = 0.0
    s.key[:] = np.uint64(0)
    rebuild(s)
    for u in range(len(s.room.core)):
        _pairs(
            u, 1.0, s.pair_ptr, s.other, s.sent, s.received, s.room.core, s.side, s.total, s.lines, s.price, True
        )  # fmt: skip
    for i in range(len(s.nets.source)):
        if s.nets.multicast[i]:
            add_message(s, i, 1.0)


@plain
def move(s: RewardState, u: int, q: int) -> None:
    """Put node ``u`` on core ``q`` and bring everything up to date."""
    _count(s, u, -1.0)
    seat(s.room, u, q)
    _count(s, u, 1.0)


@plain
def _count(s: RewardState, u: int, sign: float) -> None:
    """Add or take away all messages of node ``u``."""
    _pairs(
        u, sign, s.pair_ptr, s.other, s.sent, s.received, s.room.core, s.side, s.total, s.lines, s.price, False
    )  # fmt: skip
    if s.casts:
        for j in range(s.row_ptr[u], s.row_ptr[u + 1]):
            if s.nets.multicast[s.rows[j]]:
                add_message(s, s.rows[j], sign)


@plain
def _pairs(
    u: int, sign: float, pair_ptr: IntArray, other: Int32Array, sent: FloatArray, received: FloatArray, core: IntArray,
    side: FloatArray, total: FloatArray, lines: IntArray, price: Prices, only_later: bool,
) -> None:  # fmt: skip
    """Add or take away what node ``u`` exchanges edge by edge (with later nodes only)."""
    p = core[u]
    for k in range(pair_ptr[u], pair_ptr[u + 1]):
        v = other[k]
        if core[v] != p and (v > u or not only_later):
            exchange(side, total, lines, price, p, core[v], sign * sent[k], sign * received[k])


@plain
def search(s: RewardState, heat: float, tries: int, best: IntArray, low: float, rng: AnyArray) -> float:
    """:func:`~nmsolve.heuristics.mapping.common.metropolis.metropolis` by changes in parts of the value."""
    return metropolis(s, some_change, move, value, always, True, heat, heat, tries, best, low, rng)  # type: ignore[no-any-return]


@kernel
def changes(s: RewardState, samples: int, rng: AnyArray) -> FloatArray:
    """(samples,) by how much random moves and swaps change the value, as parts of it; 0 where none was found."""
    out, now = np.zeros(samples), value(s)
    for k in range(samples):
        u, q, v = some_change(s, rng)
        if u >= 0 and now > 0.0:
            p = s.room.core[u]
            trade(s, move, u, q, v, p)
            out[k] = abs(value(s) - now) / now
            trade(s, move, u, p, v, q)
    return out
