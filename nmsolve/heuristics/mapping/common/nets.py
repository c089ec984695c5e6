"""Messages as nets: what is sent once to several nodes, one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, Int32Array, IntArray, starts


class Nets(NamedTuple):
    """The messages of a graph: (N,) source and rate, CSR of destinations."""

    source: Int32Array
    rate: FloatArray
    pin_ptr: IntArray
    pins: Int32Array


def nets_of(graph: LogicGraph) -> Nets:
    """Return one net per multicast row, one per edge of every other row; those that are never sent are left out."""
    length = np.diff(graph.indptr)
    whole = graph.multicast & (length > 0) & (graph.rate > 0)
    row = np.repeat(np.arange(graph.rows), length)
    single = ~graph.multicast[row] & (graph.weights > 0)
    source = np.concatenate([graph.source[whole], graph.edge_source[single]])
    rate = np.concatenate([graph.rate[whole], graph.weights[single]])
    pins = np.concatenate([graph.targets[whole[row]], graph.targets[single]])
    pin_ptr = starts(np.concatenate([length[whole], np.ones(int(single.sum()), np.int64)]))
    return Nets(source.astype(np.int32), rate, pin_ptr, pins.astype(np.int32))
