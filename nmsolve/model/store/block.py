"""Decoded connections of consecutive vertices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmsolve.model.types import FloatArray, Int32Array, IntArray

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


def cut(block: Block, first: int, last: int) -> Block:
    """The part of a block that lies in vertices ``first`` to ``last - 1``."""
    begin = max(first - block.first, 0)
    end = min(last - block.first, len(block.indptr) - 1)
    a, b = int(block.indptr[begin]), int(block.indptr[end])
    return Block(
        block.first + begin,
        block.indptr[begin : end + 1] - a,
        block.tag[a:b],
        block.neighbour[a:b],
        block.size[a:b],
        block.weight[a:b],
    )


def join(parts: Sequence[Block]) -> Block:
    """Blocks that follow each other as one."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(p.indptr) for p in parts])
    return Block(
        parts[0].first,
        np.concatenate([[0], np.cumsum(counts)]),
        _joined([p.tag for p in parts], parts, 0),
        np.concatenate([p.neighbour for p in parts]),
        _joined([p.size for p in parts], parts, 1),
        np.concatenate([p.weight for p in parts]),
    )


def _joined(columns: Sequence[Int32Array], parts: Sequence[Block], default: int) -> Int32Array:
    if not any(len(c) for c in columns):
        return NONE
    return np.concatenate(
        [
            c if len(c) else np.full(len(p.neighbour), default, np.int32)
            for c, p in zip(columns, parts, strict=True)
        ]
    )
