"""How many nodes of a message are on every core: one small table per message, dense or hashed."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.types import Int32Array, IntArray


def table_sizes(length: IntArray, cores: int) -> IntArray:
    """(N,) int64 entries of the count tables of nets with ``length`` (N,) destinations.

    A power of two that stays at most half full, or ``cores`` if that is not more.
    """
    size = 2 ** np.ceil(np.log2(2 * np.minimum(length, cores) + 2)).astype(np.int64)
    return np.where(size >= cores, cores, size)


@plain
def slot(keys: Int32Array, base: IntArray, e: int, p: int, cores: int) -> int:
    """Where the count of net ``e`` on core ``p`` is, or would be put."""
    start, size = base[e], base[e + 1] - base[e]
    if size == cores:
        return start + p  # type: ignore[no-any-return]
    i = p & (size - 1)
    while keys[start + i] != p and keys[start + i] != -1:
        i = (i + 1) & (size - 1)
    return start + i  # type: ignore[no-any-return]


@plain
def add_pin(keys: Int32Array, base: IntArray, count: Int32Array, e: int, p: int, cores: int) -> bool:
    """One more destination of ``e`` on ``p``; True if it is the first."""
    i = slot(keys, base, e, p, cores)
    if base[e + 1] - base[e] != cores:
        keys[i] = p
    count[i] += 1
    return count[i] == 1  # type: ignore[no-any-return]


@plain
def drop_pin(keys: Int32Array, base: IntArray, count: Int32Array, e: int, p: int, cores: int) -> bool:
    """One destination of ``e`` fewer on ``p``; True if it was the last."""
    i = slot(keys, base, e, p, cores)
    count[i] -= 1
    if count[i] > 0:
        return False
    start, size = base[e], base[e + 1] - base[e]
    if size != cores:  # close the gap that the key leaves in its run of the hash table
        hole, i = i - start, i - start
        while True:
            i = (i + 1) & (size - 1)
            key = keys[start + i]
            if key == -1:
                break
            if ((i - (key & (size - 1))) & (size - 1)) >= ((i - hole) & (size - 1)):
                keys[start + hole], count[start + hole] = key, count[start + i]
                hole = i
        keys[start + hole] = -1
        count[start + hole] = 0
    return True
