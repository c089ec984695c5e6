"""Rows, columns and inner length of the products of a model, as tiles see them (M3.3)."""

from __future__ import annotations

from typing import Any

from nmsolve.hw.assignment.tiling import Extent
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.layers import CHANNELS_FIRST
from nmsolve.model.operators.sizes import BITS
from nmsolve.model.operators.symbols import exact_div, product


def extent_of(graph: OperatorGraph, operator: Operator, macs: Any) -> Extent | None:
    """Return what tiles are cut of: the channels of a convolution's result, else its last axis, are columns, all else rows.

    Numbers, or expressions where the shape has symbols. None for operators without MACs, and where a shape is not known.

    Parameters
    ----------
    macs : multiply-accumulate operations; inner length = MACs / elements of the result
    """
    outputs = [k for k in operator.outputs if k >= 0]
    shape = graph.tensors[outputs[0]].shape if outputs else None
    if not shape or macs is None or (isinstance(macs, int) and macs == 0):
        return None
    axis = 1 if operator.kind in CHANNELS_FIRST and len(shape) > 1 else len(shape) - 1
    columns, rows = shape[axis], product(d for k, d in enumerate(shape) if k != axis)
    inner = exact_div(macs, product(shape)) if product(shape) != 0 else 0
    bits = BITS.get(graph.tensors[outputs[0]].dtype) or 32
    return Extent(rows, columns, inner, element=max(1, bits // 8)) if inner != 0 else None
