"""Whether the two directions of a file agree: a checksum that does not depend on the order of connections."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.splitmix import STEP, mix
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
            h = mix(pair + STEP)
            h = mix((h ^ (((kind >> _U(1)) << _U(32)) | many)) + STEP)
            h = mix((h ^ code[c]) + STEP)
            total = total + h if out else total - h
    return total
