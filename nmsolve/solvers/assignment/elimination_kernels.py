"""Bucket elimination in compiled loops: the least cost of a network of small width, and strategies that have it."""

from __future__ import annotations

from typing import NamedTuple

from nmsolve.model.compiled import plain
from nmsolve.model.types import IntArray

#: Stands for "forbidden"; two of them fit a whole number. All costs and their sums are less.
NEVER = 2**61


class Buckets(NamedTuple):
    """Nodes in the order in which they are eliminated, each with a table over its later neighbours and, last, itself.

    Attributes
    ----------
    sizes : (B,) strategies of every bucket's own node
    scope_ptr, scope : CSR of the buckets of the later neighbours (not the own one)
    scope_sizes : (len(scope),) their strategies
    choice_ptr, choice : CSR of the choices of the network that own strategies are
    base_ptr, base : costs of pairs, by tables row by row; at most :data:`NEVER`
    message_ptr : (B + 1,) where what a bucket passes on begins, a table over its scope
    child_ptr, child : CSR of the buckets that pass on to a bucket
    stride_ptr, stride : per entry of ``child``: what a step of each node of the receiver's scope, then of its own, is there
    """

    sizes: IntArray
    scope_ptr: IntArray
    scope: IntArray
    scope_sizes: IntArray
    choice_ptr: IntArray
    choice: IntArray
    base_ptr: IntArray
    base: IntArray
    message_ptr: IntArray
    child_ptr: IntArray
    child: IntArray
    stride_ptr: IntArray
    stride: IntArray


class Room(NamedTuple):
    """Where an elimination works: ``message`` and ``best`` (message_ptr[-1],), ``table`` (largest,), ``digit`` (widest,)."""

    message: IntArray
    best: IntArray
    table: IntArray
    digit: IntArray


@plain
def forward(b: Buckets, cost: IntArray, room: Room) -> int:
    """Return the least of base costs and of ``cost`` (choices,), or :data:`NEVER`; what is best is left in ``room``."""
    total = 0
    for k in range(len(b.sizes)):
        own, start = b.sizes[k], b.base_ptr[k]
        rows = (b.base_ptr[k + 1] - start) // own
        at = b.choice_ptr[k]
        for r in range(rows):
            for s in range(own):
                value = b.base[start + r * own + s] + cost[b.choice[at + s]]
                room.table[r * own + s] = value if value < NEVER else NEVER
        for c in range(b.child_ptr[k], b.child_ptr[k + 1]):
            _receive(b, k, c, rows, room)
        for r in range(rows):
            least, which = room.table[r * own], 0
            for s in range(1, own):
                if room.table[r * own + s] < least:
                    least, which = room.table[r * own + s], s
            room.message[b.message_ptr[k] + r] = least
            room.best[b.message_ptr[k] + r] = which
        if b.scope_ptr[k] == b.scope_ptr[k + 1]:
            total = min(total + room.message[b.message_ptr[k]], NEVER)
    return total


@plain
def _receive(b: Buckets, k: int, c: int, rows: int, room: Room) -> None:
    """Add the message of entry ``c`` of the children to the table of bucket ``k``."""
    first, wide, own = b.scope_ptr[k], b.scope_ptr[k + 1] - b.scope_ptr[k], b.sizes[k]
    steps, place = b.stride_ptr[c], b.message_ptr[b.child[c]]
    last = b.stride[steps + wide]
    for i in range(wide):
        room.digit[i] = 0
    for r in range(rows):
        for s in range(own):
            value = room.table[r * own + s] + room.message[place + s * last]
            room.table[r * own + s] = value if value < NEVER else NEVER
        i = wide - 1
        while i >= 0:
            room.digit[i] += 1
            place += b.stride[steps + i]
            if room.digit[i] < b.scope_sizes[first + i]:
                break
            place -= b.stride[steps + i] * room.digit[i]
            room.digit[i] = 0
            i -= 1


@plain
def backward(b: Buckets, room: Room, strategy: IntArray) -> None:
    """Write the strategies (B,) of the buckets' own nodes that have the least cost."""
    for k in range(len(b.sizes) - 1, -1, -1):
        row = 0
        for i in range(b.scope_ptr[k], b.scope_ptr[k + 1]):
            row = row * b.scope_sizes[i] + strategy[b.scope[i]]
        strategy[k] = room.best[b.message_ptr[k] + row]
