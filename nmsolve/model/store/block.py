"""Connections in memory: blocks of consecutive vertices, records in any order, and the ways to make these from blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model.store.regroup_kernels import sources
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Tags that are all 0, or sizes that are all 1.
NONE: Int32Array = np.empty(0, np.int32)


class Block(NamedTuple):
    """Decoded connections of consecutive vertices.

    ``first`` is the first vertex; ``indptr`` (k + 1,) starts at 0; ``neighbour`` (e,) rises within a vertex and tag;
    ``tag`` (e,) has bit 0 for incoming connections and the number of the sender's message above, or length 0 if all
    are 0; ``size`` (e,) counts synapses, or has length 0 if all are 1; ``weight`` (e,) is traffic.
    """

    first: int
    indptr: IntArray
    tag: Int32Array
    neighbour: Int32Array
    size: Int32Array
    weight: FloatArray


class Records(NamedTuple):
    """A piece of input of :func:`~nmsolve.model.store.regroup.regrouped`.

    ``key``, ``neighbour`` (r,) int32; ``weight`` (r,) float64 >= 0; ``size`` (r,) int32, or length 0 if all are 1.
    """

    key: AnyArray
    neighbour: AnyArray
    weight: FloatArray
    size: AnyArray


def joined(parts: Sequence[Records]) -> Records:
    """Return the records of all ``parts``, in order."""
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int32)
    if not parts:
        return Records(none, none, np.empty(0), none)
    size = none
    if any(len(part.size) for part in parts):
        size = np.concatenate([p.size if len(p.size) else np.ones(len(p.key), np.int32) for p in parts])
    key, neighbour, weight = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:3])
    return Records(key, neighbour, weight, size)


def symmetric(blocks: Iterable[Block]) -> Iterator[Records]:
    """Yield every connection u -> v as (u, v) and as (v, u): the sum is the traffic between both, at both."""
    for out in _outgoing(blocks):
        yield out
        yield Records(out.neighbour, out.key, out.weight, out.size)


def _outgoing(blocks: Iterable[Block]) -> Iterator[Records]:
    """Yield the connections of blocks at their sources; copies at the targets (tag bit 0) are left out."""
    for block in blocks:
        records = Records(sources(block.first, block.indptr), block.neighbour, block.weight, block.size)
        if len(block.tag) and (incoming := block.tag & 1 == 1).any():
            records = Records(*(column[~incoming] if len(column) else column for column in records))
        yield records
