"""How often the body of a loop runs: a number where the model says so, else a symbol; which branch of an ``If`` runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nmsolve.model.operators.graph import Operator, OperatorGraph

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

#: A trip count from here on is the format's way of saying "until the condition ends it".
ENDLESS = 2**31 - 1


def trips_of(graph: OperatorGraph, operator: Operator) -> Count:
    """Return the most runs of the body of a ``Loop`` or ``Scan``; of anything else 1.

    A scan runs once for every slice of what it scans. A loop runs as often as its first input says, if that follows from the
    model; a condition may end it earlier. If that input is an input of the model, the symbol has its name; otherwise it is
    called ``trips_`` and the operator's name.
    """
    if operator.kind == "Scan":
        return _slices(graph, operator)
    if operator.kind != "Loop":
        return 1
    limit = operator.inputs[0] if operator.inputs else -1
    if limit < 0:
        return _own_symbol(operator)
    tensor = graph.tensors[limit]
    if tensor.value is not None and tensor.value.size == 1:
        value = tensor.value.reshape(()).item()
        if getattr(value, "free_symbols", None):
            return value  # type: ignore[no-any-return]  # an expression
        if int(value) < ENDLESS:
            return max(0, int(value))
    if limit in graph.inputs and tensor.name not in graph.symbols:
        return _symbol(tensor.name)
    return _own_symbol(operator)


def branch_of(graph: OperatorGraph, operator: Operator) -> int | None:
    """Return the body of an ``If`` that every run takes, if its condition follows from shapes; else None."""
    if operator.kind != "If" or not operator.inputs or operator.inputs[0] < 0:
        return None
    value = graph.tensors[operator.inputs[0]].value
    if value is None or value.size != 1:
        return None
    condition = value.reshape(()).item()
    return None if getattr(condition, "free_symbols", None) else int(not condition)


def _slices(graph: OperatorGraph, operator: Operator) -> Count:
    """Length of the first scanned input along its axis."""
    scanned = int(operator.attributes.get("num_scan_inputs", 0))
    axes = operator.attributes.get("scan_input_axes") or (0,)
    if 0 < scanned <= len(operator.inputs):
        shape = graph.tensors[operator.inputs[-scanned]].shape
        axis = int(axes[0])
        if shape is not None and -len(shape) <= axis < len(shape):
            return shape[axis]
    return _own_symbol(operator)


def _own_symbol(operator: Operator) -> Count:
    return _symbol("trips_" + re.sub(r"\W+", "_", operator.name).strip("_"))


def _symbol(name: str) -> Count:
    import sympy

    return sympy.Symbol(name, integer=True, positive=True)
