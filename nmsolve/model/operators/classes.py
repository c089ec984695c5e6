"""Tensor or scalar (M3.1): which operators are work for an accelerator, and which control it."""

from __future__ import annotations

from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.sizes import elements_of

#: Most elements of a whole-number tensor that counts as scalar: the begin and end paddings of a tensor of eight axes.
SCALAR_ELEMENTS = 16

#: Operators that hold bodies and decide how often, or which, they run.
CONTROL = frozenset({"If", "Loop", "Scan"})

#: Operators that look at the shape of their input, not at its elements.
SHAPE_ONLY = frozenset({"Shape", "Size"})


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
