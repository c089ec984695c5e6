"""Operators that take tensors apart and put them together: slices, look-ups, joins, splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.facts import (
    MOST_AXES,
    Call,
    Fact,
    UnknownShape,
    axis_of,
    listed,
    rule,
    shape_rules,
    tidy,
)
from nmsolve.model.operators.symbols import ENDLESS, ceil_div, clip_index, maximum, plain
from nmsolve.model.types import AnyArray


@rule("Slice")
def cut(call: Call) -> Sequence[Fact]:
    """``starts``, ``ends``, ``axes`` and ``steps``, as attributes or inputs 1 to 4."""
    shape, value = list(call.shape(0)), call.value(0)
    starts: Any = call.attributes.get("starts")
    axes = _axes(call, starts)
    ends: Any = _ends(call, 2, len(axes)) if starts is None else call.attributes["ends"]
    starts = _ends(call, 1, len(axes)) if starts is None else starts
    steps = _ends(call, 4, len(axes)) if call.has(4) else [1] * len(axes)
    index = [slice(None)] * len(shape)
    whole = value is not None
    for at, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = axis_of(at, len(shape))
        if any(x is None for x in (start, end, step)) or type(step) is not int or step == 0:
            shape[axis], whole = call.length(0, axis), False
            continue
        whole = whole and type(start) is int and type(end) is int
        if whole:
            index[axis] = slice(start, None if step < 0 and end < -shape[axis] else end, step)
        shape[axis] = slice_length(shape[axis], start, end, step)
    return [Fact(tuple(shape), value[tuple(index)] if whole and value is not None else None)]


def _axes(call: Call, starts: Any) -> list[Any]:
    axes = call.setting("axes", 3)
    if axes is not None:
        return list(axes)
    if starts is not None:
        return list(range(len(starts)))
    (count,) = call.shape(1)
    if type(count) is not int or count > MOST_AXES:
        raise UnknownShape
    return list(range(count))


def _ends(call: Call, k: int, count: int) -> list[Any]:
    value = call.value(k)
    return [None] * count if value is None else listed(value)


def slice_length(length: Any, start: Any, end: Any, step: int) -> Any:
    """Return how many elements ``[start:end:step]`` leaves of ``length``."""
    if step > 0:
        first, last = clip_index(start, length), clip_index(end, length)
        span = last if type(first) is int and first == 0 else maximum(plain(last - first), 0)
    else:
        # Backwards: positions run from start down to just above end; -1 stands before the first element.
        first, last = _clip_back(start, length), _clip_back(end, length)
        span, step = maximum(plain(first - last), 0), -step
    return span if step == 1 else ceil_div(span, step)


def _clip_back(index: Any, length: Any) -> Any:
    """As :func:`clip_index`, for a negative step: positions ``-1..length - 1``."""
    if type(index) is int and index >= ENDLESS:
        return plain(length - 1)
    if type(index) is int and index >= 0:
        return plain(clip_index(index + 1, length) - 1)
    if type(index) is int:
        return -1 if index <= -ENDLESS else maximum(length + index, -1)
    raise UnknownShape


@rule("Gather")
def gather(call: Call) -> Sequence[Fact]:
    """Return the entries ``indices`` of one axis."""
    data, indices = call.shape(0), call.shape(1)
    axis = axis_of(call.attributes.get("axis", 0), len(data))
    values, chosen = call.value(0), call.value(1)
    value = None
    if values is not None and chosen is not None and chosen.dtype != object:
        value = tidy(np.asarray(np.take(values, chosen.astype(np.int64), axis)))
    return [Fact(data[:axis] + indices + data[axis + 1 :], value)]


@rule("GatherND")
def gather_nd(call: Call) -> Sequence[Fact]:
    """Tuples of indices into the axes after ``batch_dims``."""
    data, indices = call.shape(0), call.shape(1)
    batch = call.attributes.get("batch_dims", 0)
    if not indices or type(indices[-1]) is not int:
        raise UnknownShape
    return [Fact(indices[:-1] + data[batch + indices[-1] :])]


@rule("ScatterND")
def scatter_nd(call: Call) -> Sequence[Fact]:
    """Entries written into a copy: the shape of the data; the value follows."""
    data, indices, updates = (call.value(k) for k in range(3))
    if data is None or indices is None or updates is None or indices.dtype == object:
        return [Fact(call.shape(0))]
    if call.attributes.get("reduction", "none") != "none":
        return [Fact(call.shape(0))]
    value = data.astype(np.result_type(data, updates))
    value[tuple(np.moveaxis(indices, -1, 0))] = updates
    return [Fact(call.shape(0), value)]


@rule("Concat")
def concat(call: Call) -> Sequence[Fact]:
    """One after the other along ``axis``. Small parts whose value is not known take part as symbols of their own."""
    shapes = [call.shape(k) for k in range(len(call.inputs))]
    rank = len(shapes[0])
    axis = axis_of(call.attributes.get("axis", 1), rank)
    total = plain(sum(s[axis] for s in shapes))
    shape = tuple(total if k == axis else _agreed([s[k] for s in shapes]) for k in range(rank))
    values = [call.value(k) for k in range(len(shapes))]
    if rank == 1 and call.integer and any(v is not None for v in values):
        values = [_elements(call, k) if v is None else v for k, v in enumerate(values)]
    parts = [v for v in values if v is not None]
    return [Fact(shape, tidy(np.concatenate(parts, axis)) if len(parts) == len(values) else None)]


def _agreed(lengths: list[Any]) -> Any:
    """Return the length that all parts must have: a number if one of them is."""
    return next((d for d in lengths if type(d) is int), lengths[0])


def _elements(call: Call, k: int) -> AnyArray | None:
    """Return elements of a small integer input as symbols named after it."""
    (count,) = call.shape(k)
    if type(count) is not int or count > 8:
        return None
    out = np.empty(count, object)
    for j in range(count):
        out[j] = call.fresh(f"{call.input_names[k]}_value_{j}", any_sign=True)
    return out


@rule("Split")
def split(call: Call) -> Sequence[Fact]:
    """Parts of the given lengths along ``axis``, or equal ones (the last may be shorter)."""
    shape, value = call.shape(0), call.value(0)
    axis = axis_of(call.attributes.get("axis", 0), len(shape))
    count = len(call.outputs)
    parts = call.setting("split", 1)
    if parts is None:
        part = ceil_div(shape[axis], count)
        parts = [part] * (count - 1) + [plain(shape[axis] - (count - 1) * part)]
    if len(parts) != count:
        raise ValueError(f"{len(parts)} parts for {count} outputs")
    shapes = [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]
    if value is None or any(type(p) is not int for p in parts):
        return [Fact(s) for s in shapes]
    pieces = np.split(value, np.cumsum(parts)[:-1], axis)
    return [Fact(s, piece) for s, piece in zip(shapes, pieces, strict=True)]


@rule("Pad")
def pad(call: Call) -> Sequence[Fact]:
    """Elements before and after every axis (or those given); negative numbers cut."""
    shape = list(call.shape(0))
    name = "pads" if "pads" in call.attributes else "paddings"
    amounts = call.setting(name, 1)
    axes = call.setting("axes", 3)
    axes = list(range(len(shape))) if axes is None else [axis_of(a, len(shape)) for a in axes]
    if len(amounts) != 2 * len(axes):
        raise ValueError(f"{len(amounts)} pads for {len(axes)} axes")
    for k, axis in enumerate(axes):
        shape[axis] = plain(shape[axis] + amounts[k] + amounts[len(axes) + k])
    return [Fact(tuple(shape))]


@rule("CenterCropPad")
def centre(call: Call) -> Sequence[Fact]:
    """Cut or fill the given axes to these lengths."""
    shape = list(call.shape(0))
    axes = call.attributes.get("axes", range(len(shape)))
    for axis, length in zip(axes, call.lengths(1), strict=True):
        shape[axis_of(axis, len(shape))] = length
    return [Fact(tuple(shape))]


shape_rules({"GatherElements": lambda c: c.shape(1), "Scatter ScatterElements": lambda c: c.shape(0)})
