"""Channels of multicast trees, counted as messages move: equal flows of different messages are one flow and count once."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.reward.state import CHANNELS, RewardState, exchange
from nmsolve.hw.links import link_before
from nmsolve.model.compiled import plain
from nmsolve.model.splitmix import STEP, mix


@plain
def add_message(s: RewardState, i: int, sign: float) -> None:
    """Add (1) or take away (-1) everything that the multicast row ``i`` contributes with the present mapping."""
    if s.nets.rate[i] <= 0.0:
        return
    s.stamp[0] += 1
    stamp, p = s.stamp[0], s.room.core[s.nets.source[i]]
    s.got[p] = s.entered[p] = stamp
    adds, remote, length, key = sign > 0.0, 0, 0, _mix(np.uint64(p), np.uint64(1))
    for k in range(s.nets.indptr[i], s.nets.indptr[i + 1]):
        q = s.room.core[s.nets.targets[k]]
        if s.got[q] == stamp:
            continue
        s.got[q] = stamp
        remote += 1
        exchange(s.side, s.total, s.lines, s.price, p, q, sign * s.nets.rate[i], 0.0)
        if adds:
            key += _mix(np.uint64(q), np.uint64(2))
            length += _new_links(s, p, q, stamp)
    if adds and remote > 1:
        s.key[i] = max(key, np.uint64(1))
        s.length[i] = length
        if _change(s, s.key[i], 1) == 1:
            s.total[CHANNELS] += length
        if 2 * s.filled[0] > len(s.keys):
            rebuild(s)
    elif not adds and s.key[i] != np.uint64(0):
        if _change(s, s.key[i], -1) == 0:
            s.total[CHANNELS] -= s.length[i]
        s.key[i] = np.uint64(0)


@plain
def _new_links(s: RewardState, p: int, q: int, stamp: int) -> int:
    """Links of the route from ``p`` to ``q`` that the tree marked by ``stamp`` does not have yet; they are marked."""
    v, new = np.int64(q), 0
    while s.entered[v] != stamp:  # a tree enters every core once
        s.entered[v] = stamp
        new += 1
        v = np.int64(link_before(s.links, p, q, v)[0])
    return new


@plain
def _mix(value: int, salt: int) -> int:
    """64 bits that look random (splitmix64); sums of them over sets of cores collide about once in 2^64."""
    return mix((np.uint64(2) * value + np.uint64(1)) * STEP + salt * np.uint64(0xD1B54A32D192ED03))  # type: ignore[no-any-return]


@plain
def _change(s: RewardState, key: int, by: int) -> int:
    """Count one message more or less of flow ``key``; how many there are now."""
    mask = np.uint64(len(s.keys) - 1)
    slot = key & mask
    while s.keys[slot] != key:
        if s.keys[slot] == np.uint64(0):
            s.keys[slot] = key
            s.filled[0] += 1
            break
        slot = (slot + np.uint64(1)) & mask
    s.many[slot] += by
    return s.many[slot]  # type: ignore[no-any-return]


@plain
def rebuild(s: RewardState) -> None:
    """Rebuild the table of flows without those that no message has any more."""
    s.keys[:] = np.uint64(0)
    s.many[:] = 0
    s.filled[0] = 0
    for i in range(len(s.key)):
        if s.key[i] != np.uint64(0):
            _change(s, s.key[i], 1)
