"""Operators that look at the same elements in another shape, and those that ask for a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.facts import Call, Fact, Lengths, UnknownShape, axis_of, rule, tidy
from nmsolve.model.operators.symbols import ENDLESS, broadcast, exact_div, plain, product, same
from nmsolve.model.types import AnyArray


def as_value(items: Sequence[Any]) -> AnyArray | None:
    """Return a list of lengths as the value (len(items),) of a tensor; None if it is long and holds expressions."""
    if all(type(x) is int for x in items):
        return np.array(items, np.int64)
    out = np.empty(len(items), object)
    for k, x in enumerate(items):
        out[k] = x
    return tidy(out)


@rule("Shape")
def shape_of(call: Call) -> Sequence[Fact]:
    """Return the lengths from axis ``start`` to ``end``, as a value."""
    shape = call.shape(0)
    items = shape[call.attributes.get("start", 0) : call.attributes.get("end", ENDLESS)]
    return [Fact((len(items),), as_value(items))]


@rule("Size")
def size(call: Call) -> Sequence[Fact]:
    """Return the number of elements, as a value."""
    value = as_value([product(call.shape(0))])
    return [Fact((), None if value is None else value.reshape(()))]


def reshaped(value: AnyArray | None, shape: Lengths) -> AnyArray | None:
    """Return a value in another ``shape``; None if the value is unknown or a length is no number."""
    if value is None or any(type(d) is not int for d in shape):
        return None
    return value.reshape(shape)


@rule("Reshape")
def reshape(call: Call) -> Sequence[Fact]:
    """0 keeps a length (unless ``allowzero``), one -1 takes what is left."""
    old = call.fact(0)
    target = list(call.attributes["shape"]) if "shape" in call.attributes else call.lengths(1)
    if not call.attributes.get("allowzero", 0):
        target = [call.shape(0)[k] if type(d) is int and d == 0 else d for k, d in enumerate(target)]
    for k, d in enumerate(target):
        if type(d) is int and d == -1:
            if old is None or old.shape is None:
                target[k] = call.length(0, k)
            else:
                target[k] = _left(list(old.shape), [x for j, x in enumerate(target) if j != k])
    shape = tuple(target)
    return [Fact(shape, reshaped(call.value(0), shape))]


def _left(old: list[Any], others: list[Any]) -> Any:
    """Return the product of the old lengths over that of the other new ones. Equal lengths are crossed out first."""
    new = []
    for d in others:
        at = next((k for k, o in enumerate(old) if same(o, d)), None)
        if at is None:
            new.append(d)
        else:
            old.pop(at)
    below = product(new)
    return 0 if type(below) is int and below == 0 else exact_div(product(old), below)


@rule("Flatten")
def flatten(call: Call) -> Sequence[Fact]:
    """Two axes: everything before ``axis``, everything from it."""
    shape = call.shape(0)
    axis = call.attributes.get("axis", 1)
    axis += len(shape) if axis < 0 else 0
    result = (product(shape[:axis]), product(shape[axis:]))
    return [Fact(result, reshaped(call.value(0), result))]


@rule("Transpose")
def transpose(call: Call) -> Sequence[Fact]:
    """Axes in the order ``perm``, or reversed."""
    shape, value = call.shape(0), call.value(0)
    order = list(call.attributes.get("perm", range(len(shape))[::-1]))
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"order {order} of {len(shape)} axes")
    return [Fact(tuple(shape[k] for k in order), None if value is None else value.transpose(order))]


@rule("Squeeze")
def squeeze(call: Call) -> Sequence[Fact]:
    """Drop axes of length 1: those given, or all of them."""
    shape = call.shape(0)
    axes = call.setting("axes", 1)
    if axes is None:
        if any(type(d) is not int for d in shape):
            raise UnknownShape
        drop = {k for k, d in enumerate(shape) if d == 1}
    else:
        drop = {axis_of(a, len(shape)) for a in axes}
    if any(type(shape[k]) is int and shape[k] != 1 for k in drop):
        raise ValueError(f"no axis of length 1 to drop: {shape}")
    result = tuple(d for k, d in enumerate(shape) if k not in drop)
    return [Fact(result, reshaped(call.value(0), result))]


@rule("Unsqueeze")
def unsqueeze(call: Call) -> Sequence[Fact]:
    """New axes of length 1, at these positions of the result."""
    shape = call.shape(0)
    axes = call.setting("axes", 1)
    rank = len(shape) + len(axes)
    new = {axis_of(a, rank) for a in axes}
    if len(new) < len(axes):
        raise ValueError(f"axes {axes} repeat a position")
    rest = iter(shape)
    result = tuple(1 if k in new else next(rest) for k in range(rank))
    return [Fact(result, reshaped(call.value(0), result))]


@rule("Expand")
def expand(call: Call) -> Sequence[Fact]:
    """Broadcast to a shape, where a 1 keeps the longer length."""
    target = tuple(call.lengths(1))
    shape = broadcast(call.shape(0), target)
    value = call.value(0)
    if value is None or any(type(d) is not int for d in shape):
        return [Fact(shape)]
    return [Fact(shape, tidy(np.broadcast_to(value, shape)))]


@rule("Tile")
def tile(call: Call) -> Sequence[Fact]:
    """Return every axis repeated."""
    shape, value = call.shape(0), call.value(0)
    times = call.setting("repeats", 1)
    if len(times) != len(shape):
        raise ValueError(f"{len(times)} counts for {len(shape)} axes")
    result = tuple(plain(d * t) for d, t in zip(shape, times, strict=True))
    small = value is not None and all(type(d) is int for d in result) and product(result) <= 1024
    return [Fact(result, np.tile(value, times) if small and value is not None else None)]


@rule("DepthToSpace", "SpaceToDepth")
def blocks(call: Call) -> Sequence[Fact]:
    """Channels become pixels of a block, or the other way."""
    n, c, h, w = call.shape(0)
    b = call.attributes["blocksize"]
    if call.kind == "DepthToSpace":
        return [Fact((n, exact_div(c, b * b), plain(h * b), plain(w * b)))]
    return [Fact((n, plain(c * b * b), exact_div(h, b), exact_div(w, b)))]
