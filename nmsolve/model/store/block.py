"""Decoded connections of consecutive vertices."""

from __future__ import annotations

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
