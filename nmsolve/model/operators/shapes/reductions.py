"""Reductions, normalisations and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nmsolve.model.operators.shapes.facts import (
    Call,
    Fact,
    Lengths,
    UnknownShape,
    axis_of,
    listed,
    replaced,
    rule,
    shape_rules,
)
from nmsolve.model.operators.shapes.views import as_value
from nmsolve.model.operators.symbols import maximum, minimum, product
from nmsolve.model.types import AnyArray

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


@rule(*(f"Reduce{name}" for name in REDUCTIONS))
def reduction(call: Call) -> Sequence[Fact]:
    """Axes given become 1 or vanish; none given: all of them, or none with ``noop_with_empty_axes``."""
    shape = call.shape(0)
    rank = len(shape)
    axes = call.setting("axes", 1)
    keep = call.attributes.get("keepdims", 1)
    if not axes and call.attributes.get("noop_with_empty_axes", 0):
        return [Fact(shape)]
    gone = {axis_of(a, rank) for a in axes} if axes else set(range(rank))
    result = tuple(1 if k in gone else d for k, d in enumerate(shape) if keep or k not in gone)
    if rank != 1 or not gone or call.value(0) is None:
        return [Fact(result)]
    return [Fact(result, _folded(call, (1,) if keep else ()))]


def _folded(call: Call, shape: tuple[int, ...]) -> AnyArray | None:
    """Return the value of the product, sum, largest or smallest of a list, as exporters write lengths."""
    value = call.value(0)
    fold: dict[str, Callable[[list[Any]], Any]] = {
        "ReduceProd": product,
        "ReduceSum": sum,
        "ReduceMax": lambda x: maximum(*x),
        "ReduceMin": lambda x: minimum(*x),
    }
    if value is None or call.kind not in fold or not call.integer or not value.size:
        return None
    result = as_value([fold[call.kind](listed(value))])
    return None if result is None else result.reshape(shape)


def _arg(call: Call) -> Lengths:
    """Position of the largest or smallest along one axis."""
    shape = call.shape(0)
    axis = axis_of(call.attributes.get("axis", 0), len(shape))
    return replaced(shape, axis, *((1,) if call.attributes.get("keepdims", 1) else ()))


def _layer_norm(call: Call) -> list[Lengths]:
    """The input's shape; mean and deviation have 1 for the axes from ``axis`` on."""
    shape = call.shape(0)
    axis = axis_of(call.attributes.get("axis", -1), len(shape))
    inner = shape[:axis] + (1,) * (len(shape) - axis)
    return [shape, inner, inner]


def _norm(call: Call) -> Lengths:
    if len(call.outputs) > 1:
        raise UnknownShape
    return call.shape(0)


def _skip_norm(call: Call) -> list[Lengths]:
    """Sum and normalisation; output 3 is the sum."""
    shape = call.shape(0)
    return [shape, (*shape[:-1], 1), (*shape[:-1], 1), shape]


def _loss(call: Call) -> list[Lengths]:
    """One number, or one per target; the second output is the logarithm of the probabilities."""
    return [call.shape(1) if call.attributes.get("reduction", "mean") == "none" else (), call.shape(0)]


shape_rules({
    "ArgMax ArgMin": _arg,
    "LayerNormalization": _layer_norm,
    "RMSNormalization InstanceNormalization GroupNormalization SimplifiedLayerNormalization": _norm,
    "SkipLayerNormalization SkipSimplifiedLayerNormalization": _skip_norm,
    "BatchNormalization": lambda c: [c.shape(0), *[c.shape(3)] * 4],  # statistics per channel
    "DynamicQuantizeLinear": lambda c: [c.shape(0), (), ()],  # integers, their scale and zero point
    "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss": _loss,
})  # fmt: skip
