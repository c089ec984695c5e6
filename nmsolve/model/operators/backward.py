"""Models that hold their own backward pass, which nothing here plans: how they are told from others.

Names say what is a gradient (:func:`nmsolve.model.operators.graph.gradient_of`). Operators of training, of ONNX Runtime and of
ONNX itself, are known by their kinds and their domain.
"""

from __future__ import annotations

import re

from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import OperatorGraph, gradient_of

#: Gradients, their sums over micro-batches, and what changes weights.
BACKWARD = re.compile(r"\w+Grad(_\w+)?|InPlaceAccumulator(V2)?|(Adam|AdamW|Lamb|SGD)Optimizer(V2)?", re.ASCII)
#: Where all operators belong to training.
DOMAIN = "ai.onnx.preview.training"


def require_forward(graph: OperatorGraph, where: str) -> None:
    """Raise InputError for a model with a backward pass."""
    found = _sign_of(graph)
    if found:
        raise InputError(
            f"the model holds its backward pass: {found}", where, "the forward model, exported alone"
        )


def _sign_of(graph: OperatorGraph) -> str:
    """Return what shows that a model has a backward pass, empty if nothing does."""
    for op in graph.operators:
        if op.domain == DOMAIN or (op.domain in ("", "com.microsoft") and BACKWARD.fullmatch(op.kind)):
            return f"operator {op.name!r} is {op.kind}"
        for body in op.bodies:
            if inner := _sign_of(body):
                return inner
    names = {t.name for t in graph.tensors}
    for k in graph.outputs:
        tensor = graph.tensors[k]
        if tensor.producer >= 0 and gradient_of(tensor.name) in names:
            return f"output {tensor.name!r} is the gradient of {gradient_of(tensor.name)!r}"
    return ""
