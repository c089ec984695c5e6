"""Convolution, pooling and resizing: lengths of what a window makes of an image."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

from nmsolve.model.operators.shapes.facts import (
    Call,
    Fact,
    Lengths,
    UnknownShape,
    listed,
    rule,
    shape_rules,
)
from nmsolve.model.operators.symbols import ceil_div, exact, floor_div, minimum, plain, product


def window(call: Call, image: Lengths, kernel: Sequence[Any], ceil_mode: bool = False) -> Lengths:
    """Return lengths after a window of ``kernel`` went over ``image``, by strides, dilations and pads."""
    rank = len(image)
    strides = call.attributes.get("strides", (1,) * rank)
    dilations = call.attributes.get("dilations", (1,) * rank)
    pads = call.attributes.get("pads", (0,) * (2 * rank))
    auto = call.attributes.get("auto_pad", "NOTSET")
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise ValueError(f"a window of {len(kernel)} axes for {rank}")
    out = []
    for k, d in enumerate(image):
        reach = dilations[k] * (kernel[k] - 1) + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(ceil_div(d, strides[k]))
            continue
        padded = d if auto == "VALID" else d + pads[k] + pads[rank + k]
        out.append(_steps(plain(padded - reach), strides[k], d, pads[k] if auto != "VALID" else 0, ceil_mode))
    return tuple(out)


def _steps(room: Any, stride: int, length: Any, before: int, ceil_mode: bool) -> Any:
    """Positions of a window with ``room`` to move; with ``ceil_mode`` the last may hang out, but not start in the padding."""
    if not ceil_mode:
        return floor_div(plain(room + stride), stride)
    return minimum(ceil_div(room, stride) + 1, ceil_div(plain(length + before), stride))


def _convolved(call: Call, x: Lengths, w: Lengths) -> Lengths:
    if len(x) < 3 or len(w) != len(x):
        raise ValueError(f"an image of {len(x)} axes, weights of {len(w)}")
    channels = w[1] * call.attributes.get("group", 1)
    if type(channels) is int and type(x[1]) is int and channels != x[1]:
        raise ValueError(f"{x[1]} channels, weights for {channels}")
    return (x[0], w[0], *window(call, x[2:], call.attributes.get("kernel_shape", w[2:])))


@rule("ConvTranspose")
def transposed_convolution(call: Call) -> Sequence[Fact]:
    """stride (length - 1) + output padding + reach - pads, or ``output_shape`` itself."""
    x, w = call.shape(0), call.shape(1)
    rank = len(x) - 2
    head = (x[0], plain(w[1] * call.attributes.get("group", 1)))
    if "output_shape" in call.attributes:
        return [Fact((*head, *call.attributes["output_shape"][-rank:]))]
    strides = call.attributes.get("strides", (1,) * rank)
    dilations = call.attributes.get("dilations", (1,) * rank)
    pads = call.attributes.get("pads", (0,) * (2 * rank))
    extra = call.attributes.get("output_padding", (0,) * rank)
    kernel = call.attributes.get("kernel_shape", w[2:])
    if call.attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return [Fact((*head, *(plain(x[2 + k] * strides[k]) for k in range(rank))))]
    lengths = (
        strides[k] * (x[2 + k] - 1) + extra[k] + dilations[k] * (kernel[k] - 1) + 1 - pads[k] - pads[rank + k]
        for k in range(rank)
    )
    return [Fact((*head, *map(plain, lengths)))]


@rule("MaxPool", "AveragePool", "LpPool")
def pool(call: Call) -> Sequence[Fact]:
    """Return a window over every channel; MaxPool's second output says where the largest was."""
    x = call.shape(0)
    shape = x[:2] + window(
        call, x[2:], call.attributes["kernel_shape"], bool(call.attributes.get("ceil_mode", 0))
    )
    return [Fact(shape)] * len(call.outputs)


@rule("MaxUnpool")
def unpool(call: Call) -> Sequence[Fact]:
    """Return the inverse of a pooling, or the shape of input 2."""
    x = call.shape(0)
    if call.has(2):
        return [Fact(tuple(call.lengths(2)))]
    rank = len(x) - 2
    kernel = call.attributes["kernel_shape"]
    strides = call.attributes.get("strides", (1,) * rank)
    pads = call.attributes.get("pads", (0,) * (2 * rank))
    lengths = (strides[k] * (x[2 + k] - 1) + kernel[k] - pads[k] - pads[rank + k] for k in range(rank))
    return [Fact((*x[:2], *map(plain, lengths)))]


@rule("Resize", "Upsample")
def resize(call: Call) -> Sequence[Fact]:
    """Lengths times ``scales`` (rounded down), or ``sizes``; ``axes`` says of which axes."""
    shape = list(call.shape(0))
    axes = list(call.attributes.get("axes", range(len(shape))))
    sizes, scales = _resizing(call)
    if sizes is not None:
        sizes = _kept_aspect(call, [shape[a] for a in axes], sizes)
        for axis, length in zip(axes, sizes, strict=True):
            shape[axis] = length
        return [Fact(tuple(shape))]
    for axis, scale in zip(axes, scales or [], strict=True):
        shape[axis] = _scaled(shape[axis], exact(scale))
    return [Fact(tuple(shape))]


def _resizing(call: Call) -> tuple[list[Any] | None, list[Any] | None]:
    """``sizes`` and ``scales``, one of them None. Upsample and the first Resize have scales as input 1, later ones as input 2."""
    if "scales" in call.attributes:
        return None, listed(call.attributes["scales"])
    if call.has(3):
        return call.lengths(3), None
    at = 2 if len(call.inputs) > 2 else 1
    value = call.value(at)
    if value is None or not value.size:
        raise UnknownShape
    return None, listed(value)


def _kept_aspect(call: Call, lengths: list[Any], sizes: list[Any]) -> list[Any]:
    """Return sizes after all axes got one scale, as ``keep_aspect_ratio_policy`` asks; halves are rounded up."""
    policy = call.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes
    if any(type(x) is not int for x in (*lengths, *sizes)):
        raise UnknownShape
    pick = min if policy == "not_larger" else max
    scale = pick(Fraction(s, d) for s, d in zip(sizes, lengths, strict=True))
    return [floor(scale * d + Fraction(1, 2)) for d in lengths]


def _scaled(length: Any, scale: Any) -> Any:
    if type(scale) is int:
        return plain(length * scale)
    import sympy

    value = sympy.sympify(length * scale)
    if value.is_Float:
        return int(float(value))
    top, bottom = sympy.fraction(sympy.together(value))
    return floor_div(plain(top), plain(bottom)) if bottom.is_Integer else plain(sympy.floor(value))


def _columns_to_image(call: Call) -> Lengths:
    """(batch, channels * block, places) back to (batch, channels, image...)."""
    x, image, block = call.shape(0), call.lengths(1), call.lengths(2)
    return (x[0], floor_div(x[1], product(block)), *image)


def _regions(call: Call, *image: Any) -> Lengths:
    """One small image per region."""
    return (call.shape(1)[0], call.shape(0)[1], *image)


shape_rules({
    # (batch, channels, image...) by (out channels, channels / group, kernel...); offsets change nothing
    "Conv ConvInteger FusedConv DeformConv": lambda c: _convolved(c, c.shape(0), c.shape(1)),
    "QLinearConv": lambda c: _convolved(c, c.shape(0), c.shape(3)),  # behind each its scale and zero point
    "GlobalAveragePool GlobalMaxPool GlobalLpPool": lambda c: c.shape(0)[:2] + (1,) * (len(c.shape(0)) - 2),
    "GridSample": lambda c: (*c.shape(0)[:2], *c.shape(1)[1:-1]),  # a grid is (batch, out image..., axes)
    "RoiAlign": lambda c: _regions(c, c.attributes.get("output_height", 1), c.attributes.get("output_width", 1)),
    "MaxRoiPool": lambda c: _regions(c, *c.attributes["pooled_shape"]),
    "Col2Im": _columns_to_image,
})  # fmt: skip
