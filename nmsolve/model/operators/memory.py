"""What a whole model needs of memory when its operators run in their order: weights, and the most bytes live at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.layers import Layers
from nmsolve.model.operators.sizes import bytes_of
from nmsolve.model.operators.weights import used_weights
from nmsolve.model.pipeline.buffers import MADE, Buffers
from nmsolve.model.types import IntArray


@dataclass(frozen=True)
class ModelMemory:
    """Bytes of a model whose shapes are all numbers.

    Attributes
    ----------
    live : most that are live at once; ``layer``: the first operator at which they are
    weights : by type, each weight once
    """

    live: int
    layer: str
    weights: Mapping[str, int]


def memory_of(graph: OperatorGraph, layers: Layers) -> ModelMemory:
    """Return the memory of a model; ``layers``: those of the ``graph``, with their buffers."""
    live = (
        np.zeros(layers.count, np.int64)
        if layers.buffers is None
        else live_along(layers.buffers, layers.count)
    )
    weights: dict[str, int] = {}
    for tensor in used_weights(graph):
        size = bytes_of(tensor)
        weights[tensor.dtype] = weights.get(tensor.dtype, 0) + (size if isinstance(size, int) else 0)
    return ModelMemory(int(live.max()), layers.names[int(live.argmax())], weights)


def live_along(buffers: Buffers, layers: int) -> IntArray:
    """Return (L,) bytes that are live at every layer when one stage has all of them."""
    first, last = buffers.layer[buffers.indptr[:-1]], buffers.layer[buffers.indptr[1:] - 1]
    begins = np.where(buffers.made[buffers.indptr[:-1]] == MADE, first, 0)
    change = np.zeros(layers + 1, np.int64)
    np.add.at(change, np.minimum(begins, layers), buffers.size)
    np.add.at(change, np.minimum(last, layers - 1) + 1, -buffers.size)
    out: IntArray = np.cumsum(change)[:-1]
    return out
