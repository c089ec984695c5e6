"""What the backward pass of every layer takes: its work as a multiple of the forward pass, and the tensors that it needs again.

A gradient passes through an operator to those of its inputs that depend on a parameter (a weight of more than one element, in
floats). A product takes one product of the same size for each of them, other work as long as forward, work without a gradient
nothing. For the gradient of one factor a product needs the other one; other operators need what their derivative is written in
(docs/pipeline.md, *Training*). What is not known here needs all that it reads and makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.macs import RULES
from nmsolve.model.operators.sizes import elements_of
from nmsolve.model.operators.weights import Weights
from nmsolve.model.types import IntArray

#: The derivative is that of a sum, or of a copy to other places; whole numbers that say where are read again.
LINEAR = frozenset({
    "Add", "AveragePool", "Cast", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "GlobalAveragePool", "Identity", "Neg", "Pad", "ReduceMean", "ReduceSum", "Reshape", "Resize", "Slice",
    "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
#: It is written in the result.
OF_RESULT = frozenset({
    "Elu", "Exp", "LeakyRelu", "LogSoftmax", "Reciprocal", "Relu", "Selu", "Sigmoid", "Softmax", "Sqrt", "Tanh",
})  # fmt: skip
#: It is written in what is read.
OF_INPUT = frozenset({
    "Abs", "BatchNormalization", "Clip", "Cos", "Erf", "FastGelu", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish",
    "InstanceNormalization", "LRN", "LayerNormalization", "Log", "MaxPool", "Mish", "PRelu", "Pow", "RMSNormalization", "Sin",
    "Softplus", "Softsign", "Swish", "ThresholdedRelu",
})  # fmt: skip
#: Products of two factors, the first two inputs.
PRODUCTS = frozenset({"Conv", "ConvTranspose", "FusedMatMul", "Gemm", "MatMul", "Mul"})


@dataclass(frozen=True, eq=False)
class Gradients:
    """The backward pass of L layers with B buffers.

    Attributes
    ----------
    passes : (L,) its work as a multiple of the forward pass: 0, 1 or more
    indptr, layer : CSR over the buffers: the layers whose backward pass needs them, rising
    """

    passes: IntArray
    indptr: IntArray
    layer: IntArray


def gradients_of(
    graph: OperatorGraph, kept: Sequence[int], weights: Weights, homes: Mapping[int, int], buffers: int
) -> Gradients:
    """Return the backward passes of the operators ``kept`` (L,), which are layers.

    ``homes`` : the buffer of a tensor, by its number, where it has one
    """
    depends = _depending(graph, weights)
    passes, needing = np.zeros(len(kept), np.int64), [list[int]() for _ in range(buffers)]
    for layer, number in enumerate(kept):
        operator = graph.operators[number]
        if not any(k in depends for k in operator.outputs):
            continue
        factors = sum(k in depends for k in operator.inputs[:2])
        passes[layer] = factors if operator.kind in RULES else 1
        for buffer in sorted({homes[k] for k in _needed(graph, operator, depends) if k in homes}):
            needing[buffer].append(layer)
    indptr = np.cumsum([0, *map(len, needing)])
    return Gradients(passes, indptr.astype(np.int64), np.array([k for own in needing for k in own], np.int64))


def _depending(graph: OperatorGraph, weights: Weights) -> set[int]:
    """Return the tensors of floats that depend on a parameter, by number."""
    found = {
        k
        for k, own in weights.behind.items()
        if any(_parameter(t) for t in own) and _floats(graph.tensors[k])
    }
    for operator in graph.operators:
        if any(k in found for k in operator.inputs):
            found.update(k for k in operator.outputs if k >= 0 and _floats(graph.tensors[k]))
    return found


def _parameter(tensor: Tensor) -> bool:
    return _floats(tensor) and elements_of(tensor) != 1


def _floats(tensor: Tensor) -> bool:
    return tensor.dtype in ("", "float", "double", "bfloat16") or tensor.dtype.startswith("float")


def _needed(graph: OperatorGraph, operator: Operator, depends: set[int]) -> set[int]:
    """Return the tensors that the backward pass of an operator needs."""
    read = [k for k in operator.inputs if k >= 0]
    made = {k for k in operator.outputs if k >= 0}
    if operator.kind in LINEAR:
        return {k for k in read if not _floats(graph.tensors[k])}
    if operator.kind in OF_RESULT:
        return made
    if operator.kind in OF_INPUT:
        return set(read)
    if operator.kind in PRODUCTS and len(read) >= 2:
        pairs = (read[:2], read[1::-1])
        return {factor for factor, other in pairs if other in depends}
    if operator.kind == "Div" and len(read) == 2:
        return set(read) if read[1] in depends else {read[1]}
    return set(read) | made
