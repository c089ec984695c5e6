"""Operators that make tensors out of numbers, and those whose lengths only the data decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.facts import (
    LARGEST_VALUE,
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
from nmsolve.model.operators.symbols import ceil_div, exact, floor_div, maximum, plain, product


@rule("ConstantOfShape")
def constant_of_shape(call: Call) -> Sequence[Fact]:
    """Return a shape filled with one number."""
    shape = tuple(call.lengths(0))
    if any(type(d) is not int for d in shape) or product(shape) > LARGEST_VALUE:
        return [Fact(shape)]
    fill = call.attributes.get("value")
    value = np.zeros(1, np.float32) if not isinstance(fill, np.ndarray) else fill
    return [Fact(shape, np.full(shape, value.ravel()[0], value.dtype))]


@rule("Range")
def arange(call: Call) -> Sequence[Fact]:
    """max(0, ceil((limit - start) / delta)) numbers."""
    ends = [call.value(k) for k in range(3)]
    if any(v is None for v in ends):
        return [Fact((call.length(0, 0),))]
    start, limit, delta = (listed(v)[0] for v in ends)
    if not call.integer:
        start, limit, delta = exact(start), exact(limit), exact(delta)
    if all(type(x) is int for x in (start, limit, delta)):
        if delta == 0:
            raise ValueError("steps of 0")
        count = max(0, -((start - limit) // delta))
        value = np.arange(start, limit, delta) if call.integer and count <= LARGEST_VALUE else None
        return [Fact((count,), value)]
    span = plain(limit - start)
    if type(delta) is not int and not delta.is_number:
        return [Fact((call.length(0, 0),))]
    if delta < 0:
        span, delta = plain(-span), plain(-delta)
    return [Fact((maximum(span if delta == 1 else ceil_div(span, delta), 0),))]


@rule("Unique")
def unique(call: Call) -> Sequence[Fact]:
    """Distinct entries of one axis or of all elements; where they are, their numbers, their counts."""
    if "axis" in call.attributes:
        shape = call.shape(0)
        axis = axis_of(call.attributes["axis"], len(shape))
        total = shape[axis]
        count = call.length(0, axis)
        first = Fact((*shape[:axis], count, *shape[axis + 1 :]))
    else:
        total, count = product(call.shape(0)), call.length(0, 0)
        first = Fact((count,))
    return [first, Fact((count,)), Fact((total,)), Fact((count,))][: len(call.outputs)]


@rule("DFT")
def fourier(call: Call) -> Sequence[Fact]:
    """One axis transformed: ``dft_length`` long, half of it if one-sided."""
    shape = list(call.shape(0))
    given = call.value(2)
    axis = axis_of(call.attributes.get("axis", 1 if given is None else listed(given)[0]), len(shape))
    if given is None and "axis" not in call.attributes:
        axis = len(shape) - 2 if call.has(2) or len(call.inputs) == 1 else axis
    if call.has(1):
        shape[axis] = call.lengths(1)[0]
    half, back = call.attributes.get("onesided", 0), call.attributes.get("inverse", 0)
    if half and back:
        shape[axis] = shape[axis] if call.has(1) else plain(2 * (shape[axis] - 1))
    elif half:
        shape[axis] = plain(floor_div(shape[axis], 2) + 1)
    shape[-1] = 1 if half and back else 2
    return [Fact(tuple(shape))]


def _length_or_new(call: Call, k: int, axis: int) -> Any:
    """Return the number that input ``k`` holds; where it is not known, a new symbol for this axis of the result."""
    value = call.value(k)
    return call.length(0, axis) if value is None else listed(value)[0]


def _one_hot(call: Call) -> Lengths:
    """A new axis of ``depth``."""
    shape = call.shape(0)
    axis = axis_of(call.attributes.get("axis", -1), len(shape) + 1)
    return (*shape[:axis], _length_or_new(call, 1, axis), *shape[axis:])


def _top_k(call: Call) -> list[Lengths]:
    """The k largest along an axis, and where they are."""
    shape = call.shape(0)
    axis = axis_of(call.attributes.get("axis", -1), len(shape))
    k = call.attributes["k"] if "k" in call.attributes else _length_or_new(call, 1, axis)
    return [replaced(shape, axis, k)] * 2


def _compressed(call: Call) -> Lengths:
    """Those that a mask chooses, of one axis or of all elements."""
    if "axis" not in call.attributes:
        return (call.length(0, 0),)
    shape = call.shape(0)
    axis = axis_of(call.attributes["axis"], len(shape))
    return replaced(shape, axis, call.length(0, axis))


def _short_fourier(call: Call) -> Lengths:
    """(batch, frames, bins, 2)."""
    x = call.shape(0)
    step, window = call.lengths(1)[0], call.shape(2)[0] if call.has(2) else None
    length = call.lengths(3)[0] if call.has(3) else window
    if length is None:
        raise UnknownShape
    frames = plain(floor_div(plain(x[1] - length), step) + 1)
    bins = plain(floor_div(length, 2) + 1) if call.attributes.get("onesided", 1) else length
    return (x[0], frames, bins, 2)


def _lists(call: Call) -> Lengths:
    """Lists of tensors and texts: what they hold is left to the hints."""
    raise UnknownShape


shape_rules({
    "EyeLike": lambda c: c.shape(0),
    "RandomNormal RandomUniform": lambda c: tuple(c.attributes["shape"]),
    "Multinomial": lambda c: (c.shape(0)[0], c.attributes.get("sample_size", 1)),
    "OneHot": _one_hot,
    "TopK": _top_k,
    "Compress": _compressed,
    "NonZero": lambda c: (len(c.shape(0)), c.length(0, 1)),
    "NonMaxSuppression": lambda c: (c.length(0, 0), 3),  # batch, class, box
    "HannWindow HammingWindow BlackmanWindow": lambda c: (c.lengths(0)[0],),
    "MelWeightMatrix": lambda c: (plain(floor_div(c.lengths(1)[0], 2) + 1), c.lengths(0)[0]),
    "STFT": _short_fourier,
    "AffineGrid": lambda c: (c.lengths(1)[0], *c.lengths(1)[2:], len(c.lengths(1)) - 2),
    "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence "
    "ConcatFromSequence Optional OptionalGetElement OptionalHasElement StringNormalizer StringSplit TfIdfVectorizer "
    "ImageDecoder": _lists,
})  # fmt: skip
