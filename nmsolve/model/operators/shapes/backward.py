"""Operators of training graphs as onnxruntime-training writes them: a gradient has the shape of what it is the gradient of.

Source: https://github.com/microsoft/onnxruntime/blob/main/orttraining/orttraining/core/graph/training_op_defs.cc, and files
that it wrote (version 1.19). dY is the gradient of what the forward operator made, X what that read. The gradient of a pooling
does not read the shape of its input: that follows from the names (:mod:`nmsolve.model.operators.inference`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.model.operators.shapes.facts import Call, Fact, UnknownShape, axis_of, rule, tidy
from nmsolve.model.operators.symbols import plain

#: Of the shape of dY, their first input.
LIKE_RESULT = (
    "ReluGrad", "SigmoidGrad", "TanhGrad", "LeakyReluGrad", "GeluGrad", "FastGeluGrad", "QuickGeluGrad", "BiasGeluGrad_dX",
    "BiasFastGeluGrad_dX", "SoftmaxGrad", "SoftmaxGrad_13", "LogSoftmaxGrad", "LogSoftmaxGrad_13", "DropoutGrad", "Scale",
)  # fmt: skip
#: Operators that add the gradient of a micro-batch to those before it.
ACCUMULATORS = ("InPlaceAccumulator", "InPlaceAccumulatorV2")


@rule(*LIKE_RESULT)
def like_result(call: Call) -> Sequence[Fact]:
    """Return the shape of dY."""
    return [Fact(call.shape(0))]


@rule("ConvGrad", "ConvTransposeGrad")
def convolution(call: Call) -> Sequence[Fact]:
    """From dY, X and the weights: the gradients of X, the weights and the bias."""
    made = call.shape(0)
    return [Fact(call.shape(1)), Fact(call.shape(2)), Fact(made[1:2])][: len(call.outputs)]


@rule(
    "BatchNormalizationGrad",
    "LayerNormalizationGrad",
    "SimplifiedLayerNormalizationGrad",
    "InvertibleLayerNormalizationGrad",
)
def normalisation(call: Call) -> Sequence[Fact]:
    """From dY, X (or Y) and the scale: the gradients of X, scale and shift."""
    return [Fact(call.shape(0)), Fact(call.shape(2)), Fact(call.shape(2))][: len(call.outputs)]


@rule("DivGrad")
def quotient(call: Call) -> Sequence[Fact]:
    """From dY, A and B: the gradients of A and B."""
    return [Fact(call.shape(1)), Fact(call.shape(2))][: len(call.outputs)]


@rule("GatherGrad", "GatherElementsGrad", "SliceGrad")
def piece(call: Call) -> Sequence[Fact]:
    """Return the shape of X, which is an input: the first of ``GatherGrad``, else the second."""
    return [Fact(tuple(call.lengths(0 if call.kind == "GatherGrad" else 1)))]


@rule("SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad")
def loss(call: Call) -> Sequence[Fact]:
    """From dY and the logarithms of probabilities, which have the shape of X."""
    return [Fact(call.shape(1))]


@rule("MaxPoolGrad", "AveragePoolGrad")
def pooling(call: Call) -> Sequence[Fact]:
    """Leave the shape to the names: several inputs lead to the same dY."""
    raise UnknownShape


@rule("ConcatTraining")
def joined(call: Call) -> Sequence[Fact]:
    """Return the parts in one tensor, and their lengths."""
    shapes = [call.shape(k) for k in range(len(call.inputs))]
    axis = axis_of(call.attributes["axis"], len(shapes[0]))
    lengths = np.empty(len(shapes), object)
    lengths[:] = [shape[axis] for shape in shapes]
    whole = (*shapes[0][:axis], plain(sum(lengths)), *shapes[0][axis + 1 :])
    return [Fact(whole), Fact((len(shapes),), tidy(lengths))][: len(call.outputs)]


@rule("SplitTraining")
def parted(call: Call) -> Sequence[Fact]:
    """Return parts of the lengths in the second input."""
    shape = call.shape(0)
    axis = axis_of(call.attributes.get("axis", 0), len(shape))
    return [Fact((*shape[:axis], d, *shape[axis + 1 :])) for d in call.lengths(1)][: len(call.outputs)]


@rule(*ACCUMULATORS)
def accumulated(call: Call) -> Sequence[Fact]:
    """Return the sum; the second version first says whether it has changed."""
    if call.kind == "InPlaceAccumulator":
        return [Fact(call.shape(0))]
    return [Fact((1,)), Fact(call.shape(0))][: len(call.outputs)]
