"""All downsets of a poset of parts, with the sums that the load of a stage between two of them needs.

A *downset* holds with a part all parts before it. They are found by adding one part after the other; a hash table knows
those seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba as nb
import numpy as np

from nmsolve.heuristics.pipeline.poset import Poset
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Downsets between two looks at the clock.
SLICE = 20_000


class Lattice(NamedTuple):
    """R downsets of P parts with M nets, by growing ``area``; W and V words of bits hold parts and nets.

    ``bits``: (W, R) their parts; ``live``: (V, R) nets with parts inside and outside, ``cross``: (R,) the ticks of these; sums
    over the parts: ``area``: (R,) least cores times ticks, ``time``: (C, R) ticks on groups, ``host``: (R,) ticks on a host,
    ``stuck``: (R,) parts that no host can run, ``storage``: (R,) in whole units; ``sequence``: (R,) smaller downsets first;
    ``by_host``: (R,) by growing ``host``, in ``sorted_host``; ``nets``: (M, W) parts of every net, ``weight``: (M,);
    ``part_host``: (P,) host ticks of every part, ``part_stuck``: (P,) cannot run there.
    """

    bits: AnyArray
    live: AnyArray
    cross: IntArray
    area: IntArray
    time: IntArray
    host: IntArray
    stuck: IntArray
    storage: IntArray
    sequence: IntArray
    by_host: IntArray
    sorted_host: IntArray
    nets: AnyArray
    weight: IntArray
    part_host: IntArray
    part_stuck: BoolArray


class _Rows(NamedTuple):
    """Downsets as they are found: (R, ...) columns, and a table of rows by hash."""

    filled: IntArray
    bits: AnyArray
    live: AnyArray
    cross: IntArray
    table: Int32Array
    last: Int32Array
    parent: Int32Array


def bytes_per_downset(poset: Poset) -> int:
    """Memory that one downset takes while the lattice is built and used, without states."""
    words = (poset.count + 63) // 64 + (len(poset.net_weight) + 63) // 64
    return 16 * words + 16 * int(poset.time.shape[1]) + 120


def least_area(poset: Poset) -> IntArray:
    """(P,) least product of cores and ticks of a part; a stage of c cores has room for c times the limit of it."""
    area: IntArray = (poset.time * np.arange(1, poset.time.shape[1] + 1)).min(axis=1)
    return area


def lattice_of(
    problem: PipelineProblem, poset: Poset, rows: int, time_left: Callable[[], float]
) -> tuple[Lattice | None, int]:
    """The lattice, or None if it has more than ``rows`` downsets or time is up; and how many were seen."""
    before, nets = _masks(poset.after, poset.before, poset.count, poset.count), _net_masks(poset)
    of_ptr = np.concatenate([[0], np.cumsum(np.bincount(poset.net_parts, minlength=poset.count))])
    number = np.repeat(np.arange(len(poset.net_weight)), np.diff(poset.net_ptr))
    of_nets = number[np.argsort(poset.net_parts, kind="mergesort")]
    found = _new_rows(min(rows, 1024), before.shape[1], -(-len(nets) // 64))
    at = 0
    while at < found.filled[0]:
        if time_left() <= 0:
            return None, int(found.filled[0])
        at, full = _extend(found, at, SLICE, before, nets, of_ptr, of_nets, poset.net_weight)
        if full:
            if len(found.cross) == rows:
                return None, int(found.filled[0])
            found = _grown(found, min(rows, 2 * len(found.cross)))
    return _sorted(problem, poset, found, nets), int(found.filled[0])


def _masks(row: IntArray, member: IntArray, rows: int, members: int) -> AnyArray:
    """(rows, words) bits of the members of every row."""
    out = np.zeros((rows, max(1, -(-members // 64))), np.uint64)
    np.bitwise_or.at(out, (row, member >> 6), np.uint64(1) << (member & 63).astype(np.uint64))
    return out


def _net_masks(poset: Poset) -> AnyArray:
    number = np.repeat(np.arange(len(poset.net_weight)), np.diff(poset.net_ptr))
    return _masks(number, poset.net_parts, len(poset.net_weight), poset.count)


def _new_rows(room: int, words: int, net_words: int) -> _Rows:
    """Room for this many downsets, with the empty one in it."""
    rows = _Rows(
        filled=np.ones(1, np.int64),
        bits=np.zeros((room, words), np.uint64),
        live=np.zeros((room, net_words), np.uint64),
        cross=np.zeros(room, np.int64),
        table=np.full(1 << max(4, (2 * room).bit_length()), -1, np.int32),
        last=np.full(room, -1, np.int32),
        parent=np.full(room, -1, np.int32),
    )
    rows.table[_place(rows, rows.bits[0])] = 0
    return rows


def _grown(old: _Rows, room: int) -> _Rows:
    """The same downsets with more room."""
    new = _new_rows(room, old.bits.shape[1], old.live.shape[1])
    count = int(old.filled[0])
    new.filled[:] = count
    for name in ("bits", "live", "cross", "last", "parent"):
        getattr(new, name)[:count] = getattr(old, name)[:count]
    new.table[:] = -1
    _enter(new)
    return new


@plain
def _enter(rows: _Rows) -> None:
    for row in range(rows.filled[0]):
        rows.table[_place(rows, rows.bits[row])] = row


@kernel
def _place(rows: _Rows, bits: AnyArray) -> int:
    """Where in the table these bits are, or would be."""
    code = nb.uint64(0)
    for word in bits:
        code = (code ^ word) * nb.uint64(0x9E3779B97F4A7C15)
        code ^= code >> nb.uint64(29)
    mask = len(rows.table) - 1
    at = nb.int64(code & nb.uint64(mask))
    while rows.table[at] >= 0:
        same = True
        for w in range(len(bits)):
            same &= rows.bits[rows.table[at], w] == bits[w]
        if same:
            break
        at = (at + 1) & mask
    return int(at)


@kernel
def _extend(
    rows: _Rows,
    start: int,
    many: int,
    before: AnyArray,
    nets: AnyArray,
    of_ptr: IntArray,
    of_nets: IntArray,
    weight: IntArray,
) -> tuple[int, bool]:
    """Add all downsets with one part more than those of ``many`` rows from ``start``.

    Returns where to continue, and whether room ran out.
    """
    words = before.shape[1]
    bits = np.empty(words, np.uint64)
    end = min(start + many, rows.filled[0])
    for row in range(start, end):
        for part in range(len(before)):
            bit = nb.uint64(1) << nb.uint64(part & 63)
            allowed = not rows.bits[row, part >> 6] & bit
            for w in range(words):
                allowed &= before[part, w] & ~rows.bits[row, w] == 0
            if not allowed:
                continue
            copy_to(bits, rows.bits[row])
            bits[part >> 6] |= bit
            at = _place(rows, bits)
            if rows.table[at] >= 0:
                continue
            new = rows.filled[0]
            if new == len(rows.cross):
                return row, True
            rows.filled[0] = new + 1
            rows.table[at] = new
            rows.bits[new] = bits
            rows.last[new], rows.parent[new] = part, row
            rows.live[new] = rows.live[row]
            rows.cross[new] = rows.cross[row]
            for k in range(of_ptr[part], of_ptr[part + 1]):
                _update_net(rows, new, of_nets[k], nets, weight)
    return end, False


@kernel
def _update_net(rows: _Rows, row: int, net: int, nets: AnyArray, weight: IntArray) -> None:
    """Set whether a net that the last part is in is live."""
    whole = True
    for w in range(nets.shape[1]):
        whole &= nets[net, w] & ~rows.bits[row, w] == 0
    bit = nb.uint64(1) << nb.uint64(net & 63)
    was = rows.live[row, net >> 6] & bit != 0
    if was and whole:
        rows.live[row, net >> 6] ^= bit
        rows.cross[row] -= weight[net]
    elif not was and not whole:
        rows.live[row, net >> 6] ^= bit
        rows.cross[row] += weight[net]


@plain
def _accumulate(sums: AnyArray, values: AnyArray, last: Int32Array, parent: Int32Array) -> None:
    """(R, C) sums over the parts of every downset, from those of the downset it was made of."""
    for row in range(1, len(sums)):
        for c in range(sums.shape[1]):
            sums[row, c] = sums[parent[row], c] + values[last[row], c]


def _sorted(problem: PipelineProblem, poset: Poset, rows: _Rows, nets: AnyArray) -> Lattice:
    """The columns that the search reads, by growing area."""
    count = int(rows.filled[0])
    extra = np.stack(
        [least_area(poset), poset.host, poset.impossible.astype(np.int64), poset.storage], axis=1
    )
    values = np.concatenate([extra, poset.time], axis=1)
    sums = np.zeros((count, values.shape[1]), np.int64)
    _accumulate(sums, values, rows.last, rows.parent)
    order = np.argsort(sums[:, 0], kind="mergesort")
    sums = sums[order]
    sequence = np.empty(count, np.int64)
    sequence[order] = np.arange(count)
    by_host = np.argsort(sums[:, 1], kind="mergesort")
    return Lattice(
        bits=np.ascontiguousarray(rows.bits[order].T),
        live=np.ascontiguousarray(rows.live[order].T),
        cross=rows.cross[order],
        area=np.ascontiguousarray(sums[:, 0]),
        time=np.ascontiguousarray(sums[:, 4:].T),
        host=np.ascontiguousarray(sums[:, 1]),
        stuck=np.ascontiguousarray(sums[:, 2]),
        storage=np.ascontiguousarray(sums[:, 3]),
        sequence=sequence,
        by_host=by_host,
        sorted_host=sums[by_host, 1],
        nets=nets,
        weight=poset.net_weight,
        part_host=poset.host,
        part_stuck=poset.impossible,
    )
