"""The tables of a net state: pins per core, rows and columns reached, rings of nodes; tree lengths."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.axons.state import recount
from nmsolve.heuristics.mapping.common.counts import add_pin, slot
from nmsolve.heuristics.mapping.common.room import refill
from nmsolve.heuristics.mapping.nets.model import NetState
from nmsolve.model.bits import highest, lowest
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


@plain
def span(bits: AnyArray, line: FloatArray, own: int, drop: int, put: int) -> tuple[float, bool]:
    """Length from ``own`` over all set lines of one bit set, and whether any is set.

    ``drop`` and ``put`` (-1: none) are lines to treat as cleared and as set.
    """
    low, high = own, own
    some = False
    for w in range(len(bits)):
        word = bits[w]
        if drop >> 6 == w:
            word &= ~(np.uint64(1) << np.uint64(drop & 63))
        if put >> 6 == w:
            word |= np.uint64(1) << np.uint64(put & 63)
        if word != np.uint64(0):
            some = True
            low = min(low, 64 * w + lowest(word))
            high = max(high, 64 * w + highest(word))
    return line[high] - line[low], some


@plain
def tree_length(s: NetState, e: int, p: int) -> float:
    """Length of the XY-route union of net ``e`` if its source were on core ``p``."""
    cols = len(s.x)
    total: float = span(s.col_bits[e], s.x, p % cols, -1, -1)[0]
    for w in range(s.col_bits.shape[1]):
        word = s.col_bits[e, w]
        while word != np.uint64(0):
            c = 64 * w + lowest(word)
            word &= word - np.uint64(1)
            length, _ = span(s.row_bits[e, c], s.y, p // cols, -1, -1)
            total += length
    return total


@plain
def set_bit(bits: AnyArray, line: int, on: bool) -> None:
    """Set or clear one line of a bit set."""
    bit = np.uint64(1) << np.uint64(line & 63)
    if on:
        bits[line >> 6] |= bit
    else:
        bits[line >> 6] &= ~bit


@kernel
def nets_of_pins(pin_ptr: IntArray, pins: Int32Array, in_ptr: IntArray) -> Int32Array:
    """Transpose of the nets' destinations: for every node the nets that end on it, in order, by ``in_ptr``."""
    out = np.empty(len(pins), np.int32)
    free = in_ptr.copy()
    for e in range(len(pin_ptr) - 1):
        for i in range(pin_ptr[e], pin_ptr[e + 1]):
            out[free[pins[i]]] = e
            free[pins[i]] += 1
    return out


def reset(s: NetState, core: IntArray) -> None:
    """Put a state at mapping ``core`` (n,)."""
    s.room.core[:] = core
    for zero in (s.hits, s.row_bits, s.col_bits):
        zero[...] = 0
    s.keys[:] = -1
    fill(s)
    recount(s.axons)


@plain
def fill(s: NetState) -> None:
    """Fill the empty tables of a new state from ``s.room.core``."""
    cols, cores, core = len(s.x), len(s.room.head), s.room.core
    refill(s.room)
    for e in range(len(s.source)):
        s.origin[e] = core[s.source[e]]
        for i in range(s.pin_ptr[e], s.pin_ptr[e + 1]):
            p = core[s.pins[i]]
            if add_pin(s.keys, s.base, s.hits, e, p, cores):
                set_bit(s.row_bits[e, p % cols], p // cols, True)
                set_bit(s.col_bits[e], p % cols, True)


@plain
def total_cost(s: NetState) -> float:
    """The objective, from the tables."""
    cores = len(s.room.head)
    total = 0.0
    for e in range(len(s.source)):
        remote = 0
        for i in range(s.base[e], s.base[e + 1]):
            if s.hits[i] > 0:
                remote += 1
        here = slot(s.keys, s.base, e, s.origin[e], cores)
        if s.hits[here] > 0:
            remote -= 1
        length = tree_length(s, e, s.origin[e]) if s.tall else 0.0
        total += s.rate[e] * (s.step * remote + length)
    return total
