"""What sort of work an operator is (M3.1): tensor work for an accelerator, or scalar work that controls it; and of which kind."""

from __future__ import annotations

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.macs import RULES
from nmsolve.model.operators.sizes import elements_of

#: Most elements of a whole-number tensor that counts as scalar: the begin and end paddings of a tensor of eight axes.
SCALAR_ELEMENTS = 16

#: Operators that hold bodies and decide how often, or which, they run.
CONTROL = frozenset({"If", "Loop", "Scan"})

#: Operators that look at the shape of their input, not at its elements.
SHAPE_ONLY = frozenset({"Shape", "Size"})

#: Convolutions; other operators with multiply-accumulate operations are matrix products.
CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "FusedConv"})

#: Operators whose elements of a result come from many of the input.
REDUCTIONS = frozenset({
    "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "CumSum", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
    "GroupNormalization", "Hardmax", "InstanceNormalization", "LRN", "LayerNormalization", "LogSoftmax", "LpNormalization",
    "EmbedLayerNormalization", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSoftmax",
    "LpPool", "MaxPool", "MeanVarianceNormalization", "RMSNormalization", "SkipLayerNormalization", "Softmax", "TopK",
})  # fmt: skip

#: Operators that bring elements to another place, or only call them by another shape.
MOVEMENTS = frozenset({
    "QLinearConcat",
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad", "Reshape",
    "Resize", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze", "Upsample",
})  # fmt: skip


def tensor_class(tensor: Tensor) -> str:
    """Return ``"scalar"`` or ``"tensor"``.

    Scalar are single numbers of any type, and whole or truth numbers of at most ``SCALAR_ELEMENTS`` elements whatever the
    symbols mean: shapes, axes, indices, conditions, loop counts. Everything else is data.
    """
    count = elements_of(tensor)
    if not isinstance(count, int):
        return "tensor"
    whole = tensor.dtype == "bool" or tensor.dtype.startswith(("int", "uint"))
    return "scalar" if count == 1 or (whole and count <= SCALAR_ELEMENTS) else "tensor"


def operator_class(graph: OperatorGraph, operator: Operator) -> str:
    """Return ``"scalar"`` or ``"tensor"``.

    Scalar are control flow (its bodies are classed operator by operator), and operators that read and make scalar tensors only;
    ``Shape`` and ``Size`` read no element of their input.
    """
    if operator.kind in CONTROL or operator.bodies:
        return "scalar"
    if operator.opaque:
        return "tensor"
    used = [] if operator.kind in SHAPE_ONLY else [k for k in operator.inputs if k >= 0]
    used += [k for k in operator.outputs if k >= 0]
    return "scalar" if all(tensor_class(graph.tensors[k]) == "scalar" for k in used) else "tensor"


def holds_tensor_work(graph: OperatorGraph, operator: Operator) -> bool:
    """Return whether an operator is of class tensor, or one inside its bodies is."""
    if operator_class(graph, operator) == "tensor":
        return True
    return any(holds_tensor_work(body, inner) for body in operator.bodies for inner in body.operators)


def work_of(graph: OperatorGraph, operator: Operator) -> str:
    """Return what an operator does.

    Of class tensor: ``convolution``, ``matrix`` (products), ``reduction`` (also norms and pooling), ``movement`` or ``vector``
    (every element on its own). Of class scalar: ``control``, ``shape`` (looks at lengths), ``count`` (of a loop's turns),
    ``condition`` (makes a truth value) or ``index`` (other numbers that steer: lengths, places, paddings).
    """
    if operator.kind in CONTROL or operator.bodies:
        return "control"
    if operator_class(graph, operator) == "tensor":
        return _tensor_work(operator.kind)
    if operator.kind in SHAPE_ONLY:
        return "shape"
    made = [k for k in operator.outputs if k >= 0]
    loops = [
        graph.operators[n]
        for k in made
        for n in graph.tensors[k].consumers
        if graph.operators[n].kind == "Loop"
    ]
    if any(loop.inputs and loop.inputs[0] in made for loop in loops):
        return "count"
    return "condition" if made and graph.tensors[made[0]].dtype == "bool" else "index"


def _tensor_work(kind: str) -> str:
    if kind in CONVOLUTIONS:
        return "convolution"
    if kind in RULES:
        return "matrix"
    if kind in REDUCTIONS or kind.startswith("Reduce"):
        return "reduction"
    return "movement" if kind in MOVEMENTS else "vector"
