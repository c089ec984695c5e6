"""Array type names used in signatures. Shapes and units are in the docstrings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def read_only(array: AnyArray) -> AnyArray:
    """Return a contiguous view of ``array``, same shape, that cannot be written to (a copy where it is not contiguous).

    Compiled kernels tell writable arrays from read-only ones: what always reaches them so is compiled for once.
    """
    return frozen(np.ascontiguousarray(array).view())


def frozen(array: AnyArray) -> AnyArray:
    """Return ``array`` made read-only (problems are never changed after they are built)."""
    array.setflags(write=False)
    return array


def first_true(marks: ArrayLike) -> int | None:
    """Return the place of the first of ``marks`` (k,) that is true or not 0, None if none is."""
    true = np.asarray(marks, bool)
    at = int(true.argmax()) if len(true) else 0
    return at if len(true) and true[at] else None


def repeat_of(items: Iterable[Hashable]) -> int | None:
    """Return the place of the first of ``items`` that is there before, None if all differ."""
    seen: set[Hashable] = set()
    for k, item in enumerate(items):
        if item in seen:
            return k
        seen.add(item)
    return None


def within(numbers: AnyArray, count: int) -> bool:
    """Return whether all ``numbers``, of any shape, are ``0..count - 1``."""
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < count)


def starts(lengths: AnyArray | Sequence[int]) -> IntArray:
    """Return (k + 1,) int64 where pieces of these ``lengths`` (k,) begin, one behind the other, and where the last one ends."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.asarray(lengths, np.int64), out=out[1:])
    return out


def by_key(keys: AnyArray, count: int) -> tuple[IntArray, IntArray]:
    """Return (count + 1,) starts and (n,) places of ``keys`` (n,), ``0..count - 1``, by key; equal ones in their order."""
    return starts(np.bincount(keys, minlength=count)), np.argsort(keys, kind="stable")


def picked(indptr: AnyArray, order: AnyArray) -> tuple[IntArray, IntArray]:
    """Return (k + 1,) starts of the rows ``order`` (k,) of ``indptr`` laid one behind the other, and (entries,) the numbers
    of their entries."""
    size = np.diff(indptr)[order]
    ptr = starts(size)
    return ptr, np.repeat(indptr[:-1][order] - ptr[:-1], size) + np.arange(int(ptr[-1]))
