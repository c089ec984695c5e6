"""An indexed binary max-heap on float keys for numba kernels: arrays in, arrays out.

``heap`` (n,) int32 holds items, ``place`` (n,) int32 the position of every item (-1 if absent), ``key`` (n,)
float64 the keys, ``size`` (1,) int64 the number of items.
"""

from __future__ import annotations

from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, Int32Array, IntArray


@plain
def _up(heap: Int32Array, place: Int32Array, key: FloatArray, i: int) -> int:
    item = heap[i]
    while i > 0:
        j = (i - 1) // 2
        if key[heap[j]] >= key[item]:
            break
        heap[i] = heap[j]
        place[heap[i]] = i
        i = j
    heap[i] = item
    place[item] = i
    return i


@plain
def _down(heap: Int32Array, place: Int32Array, key: FloatArray, size: IntArray, i: int) -> None:
    item = heap[i]
    while True:
        j = 2 * i + 1
        if j >= size[0]:
            break
        if j + 1 < size[0] and key[heap[j + 1]] > key[heap[j]]:
            j += 1
        if key[heap[j]] <= key[item]:
            break
        heap[i] = heap[j]
        place[heap[i]] = i
        i = j
    heap[i] = item
    place[item] = i


@plain
def heapify(heap: Int32Array, place: Int32Array, key: FloatArray, size: IntArray) -> None:
    """Bring items that are in the heap in any order into that of a heap."""
    for i in range(size[0] // 2 - 1, -1, -1):
        _down(heap, place, key, size, i)


@plain
def push(heap: Int32Array, place: Int32Array, key: FloatArray, size: IntArray, item: int) -> None:
    """Add an absent item."""
    heap[size[0]] = item
    place[item] = size[0]
    size[0] += 1
    _up(heap, place, key, size[0] - 1)


@plain
def remove(heap: Int32Array, place: Int32Array, key: FloatArray, size: IntArray, item: int) -> None:
    """Take a present item out."""
    i = place[item]
    place[item] = -1
    size[0] -= 1
    if i < size[0]:
        last = heap[size[0]]
        heap[i] = last
        place[last] = i
        _down(heap, place, key, size, _up(heap, place, key, i))


@plain
def changed(heap: Int32Array, place: Int32Array, key: FloatArray, size: IntArray, item: int) -> None:
    """Restore the order after the key of a present item was changed."""
    _down(heap, place, key, size, _up(heap, place, key, place[item]))
