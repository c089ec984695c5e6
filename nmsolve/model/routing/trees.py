"""Multicast messages by source core and set of target cores: equal ones are found by hashing and compared exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray


class Trees(NamedTuple):
    """Messages from ``source`` (k,) to ``size`` (k,) cores each, together ``targets``, with ``rate`` (k,) per step."""

    source: IntArray
    size: IntArray
    targets: IntArray
    rate: FloatArray

    @classmethod
    def none(cls) -> Trees:
        """No messages."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, np.zeros(0))

    def merged(self, more: Trees) -> Trees:
        """These messages and ``more``; those with equal source and targets (in equal order) become one, at the first's place."""
        source, size, targets, rate = (np.concatenate(pair) for pair in zip(self, more, strict=True))
        indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        group, first = _groups(source, indptr, targets)
        length = size[first]
        at = np.repeat(indptr[first] - np.cumsum(length) + length, length) + np.arange(length.sum())
        total = np.bincount(group, rate, len(first)).astype(np.float64, copy=False)
        return Trees(source[first], length, targets[at], total)


@kernel
def _groups(source: IntArray, indptr: IntArray, targets: IntArray) -> tuple[IntArray, IntArray]:
    """Group of every message, in order of first appearance, and the first message of every group."""
    count = source.shape[0]
    group, first, found = np.empty(count, np.int64), np.empty(count, np.int64), 0
    slots = 4
    while slots < 2 * count:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    for i in range(count):
        h = source[i]
        for k in range(indptr[i], indptr[i + 1]):
            h = (h ^ (h >> 29)) * 0x1E3779B97F4A7C15 + targets[k]  # wraps around
        slot = (h ^ (h >> 31)) & (slots - 1)
        while table[slot] >= 0 and not _equal(table[slot], i, source, indptr, targets):
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot], first[found], group[i] = i, i, found
            found += 1
        else:
            group[i] = group[table[slot]]
    return group, first[:found].copy()


@plain
def _equal(i: int, j: int, source: IntArray, indptr: IntArray, targets: IntArray) -> bool:
    size = indptr[i + 1] - indptr[i]
    if source[i] != source[j] or size != indptr[j + 1] - indptr[j]:
        return False
    for k in range(size):  # noqa: SIM110 - a compiled loop
        if targets[indptr[i] + k] != targets[indptr[j] + k]:
            return False
    return True
