"""Whether the two directions of a file agree: a checksum that does not depend on the order of connections."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import inlined, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray

_U = np.uint64


@plain
def imbalance(
    first: int, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, size: Int32Array, code: AnyArray
) -> np.uint64:
    """Sum of a hash of every outgoing connection minus that of every incoming one, modulo 2^64.

    Over a whole file with both directions it is 0 exactly if (but for accidents of 2^-64) every connection is there
    twice: at its source with an even tag, at its target with the odd tag that follows. The hash mixes source, target,
    message, size and weight code with the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
    generators, OOPSLA 2014).
    """
    total = _U(0)
    for i in range(len(indptr) - 1):
        here = _U(first + i)
        for c in range(indptr[i], indptr[i + 1]):
            there = _U(neighbour[c])
            kind = _U(tag[c]) if len(tag) else _U(0)
            many = _U(size[c]) if len(size) else _U(1)
            out = kind & _U(1) == _U(0)
            pair = (here << _U(32)) | there if out else (there << _U(32)) | here
            h = _mix(pair)
            h = _mix(h ^ (((kind >> _U(1)) << _U(32)) | many))
            h = _mix(h ^ code[c])
            total = total + h if out else total - h
    return total


@inlined
def _mix(x: np.uint64) -> np.uint64:
    x += _U(0x9E3779B97F4A7C15)
    x = (x ^ (x >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U(27))) * _U(0x94D049BB133111EB)
    return x ^ (x >> _U(31))
