"""Which element reaches which through a layer of a NIR graph: weights, convolutions, pooling.

Shapes are (channels, rows, columns), or (channels, columns) where there is one dimension; elements are numbered in
row-major order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nmsolve.model.formats.nir_file import PARAMETERS, Node
from nmsolve.model.types import AnyArray, BoolArray, IntArray

DENSE = ("Affine", "Linear")
MATRICES = (*DENSE, "Conv1d", "Conv2d", "SumPool2d", "AvgPool2d")

Shape = tuple[int, ...]

#: A convolution describes in a few bytes what takes 20 bytes per connection in memory.
MOST_CONNECTIONS = 2**28


class _Window(NamedTuple):
    """A sliding window over (channels, rows, columns): ``weight`` (out, in of the group, rows, columns)."""

    weight: BoolArray
    groups: int
    stride: IntArray
    low: IntArray
    high: IntArray
    dilation: IntArray

    def out(self, rows_columns: Shape) -> Shape:
        """Return rows and columns behind it: floor((n + padding - dilation (k - 1) - 1) / stride) + 1."""
        reach = self.dilation * (np.array(self.weight.shape[2:]) - 1) + 1
        sides = (np.array(rows_columns) + self.low + self.high - reach) // self.stride + 1
        return tuple(int(v) for v in sides)


def shape_behind(node: Node, shape: Shape) -> Shape:
    """Return the shape of what a node gives out when ``shape`` comes in.

    Raises
    ------
    ValueError : it does not take that shape
    """
    if node.kind in DENSE:
        return (_weights(node).shape[0],)
    if node.kind == "Flatten":
        return _flattened(node, shape)
    if node.kind not in MATRICES:
        return shape
    window = _window(node, shape)
    behind = window.out(_plane(shape)[1:])
    return (window.weight.shape[0], *(behind[1:] if len(shape) == 2 else behind))


def takes(node: Node, shape: Shape) -> bool:
    """Return whether ``shape`` is that of one step for a node: its parameters have it, or are for each of its channels.

    Raises
    ------
    ValueError : parameters that fit nothing
    """
    if node.kind in DENSE:
        return int(_weights(node).shape[1]) == size_of(shape)
    if node.kind not in MATRICES:
        own = own_shape(node)
        return size_of(own) == size_of(shape) or spreads(own, shape)
    fits = len(shape) == (2 if node.kind == "Conv1d" else 3)
    if not fits or "weight" not in node.parameters:
        return fits
    return bool((*np.shape(node["weight"]), 0, 0)[1] * int(node["groups"]) == shape[0])


def own_shape(node: Node) -> Shape:
    """Return the shape that a node's parameters have in common; () if they say none, or are no values of elements.

    Raises
    ------
    ValueError : they have none in common
    """
    if node.kind in ("Input", "Output"):
        return tuple(int(v) for v in np.atleast_1d(node["shape"]))
    if node.kind in (*MATRICES, "Flatten"):
        return ()
    return np.broadcast_shapes(*(np.shape(value) for value in node.parameters.values()))


def spreads(own: Shape, shape: Shape) -> bool:
    """Return whether parameters of shape ``own`` are for all of ``shape``, or for all along its axes of length 1."""
    along = len(own) == len(shape) and all(a in (1, b) for a, b in zip(own, shape, strict=True))
    return along or size_of(own) == 1


def size_of(shape: Shape) -> int:
    """Return the number of elements."""
    return int(np.prod(shape, dtype=object))


def _flattened(node: Node, shape: Shape) -> Shape:
    """Return the shape with the axes ``start_dim`` to ``end_dim`` in one.

    They count on the node's ``input_type``, which may have axes of time or batch in front that ``shape`` has not.
    """
    axes = len(shape)
    if axes == 1:
        return shape
    gone = max(0, np.size(node.parameters.get("input_type", shape)) - axes)
    start, end = (int(node.parameters.get(key, value)) for key, value in (("start_dim", 1), ("end_dim", -1)))
    first, last = (v + axes if v < 0 else max(0, v - gone) for v in (start, end))
    if not 0 <= first <= last < axes:
        raise ValueError(f"axes {start} to {end} of {shape}")
    return (*shape[:first], size_of(shape[first : last + 1]), *shape[last + 1 :])


def matrix(node: Node, shape: Shape) -> sparse.csr_array:
    """Return (elements out, elements in) bool: True where a weight is not zero.

    Raises
    ------
    ValueError : the node does not take ``shape``
    """
    if node.kind in DENSE:
        weight = _weights(node)
        if weight.shape[1] != size_of(shape):
            raise ValueError(f"a weight of shape {weight.shape} gets {shape}")
        return sparse.csr_array(weight != 0)
    window = _window(node, shape)
    channels, rows, columns = _plane(shape)
    out_rows, out_columns = window.out((rows, columns))
    if min(out_rows, out_columns) < 1:
        raise ValueError(f"a window larger than {shape}")
    most = int(np.count_nonzero(window.weight)) * out_rows * out_columns
    if most > MOST_CONNECTIONS:
        raise ValueError(f"{most} connections, more than the {MOST_CONNECTIONS} that are read into memory")
    row, col = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    per_group = window.weight.shape[0] // window.groups
    for y, x in np.ndindex(*window.weight.shape[2:]):
        to, of = _places(window, (y, x), (rows, columns), (out_rows, out_columns))
        out, inside = np.nonzero(window.weight[:, :, y, x])
        into = out // per_group * window.weight.shape[1] + inside
        row.append((out[:, None] * (out_rows * out_columns) + to).ravel())
        col.append((into[:, None] * (rows * columns) + of).ravel())
    r, c = np.concatenate(row), np.concatenate(col)
    size = (window.weight.shape[0] * out_rows * out_columns, channels * rows * columns)
    return sparse.csr_array((np.ones(len(r), bool), (r, c)), shape=size)


def _weights(node: Node) -> AnyArray:
    """Return (out, in) weights of a dense layer."""
    weight: AnyArray = np.asarray(node["weight"])
    if weight.ndim != 2:
        raise ValueError(f"a weight of shape {weight.shape}, not (out, in)")
    return weight


def _places(window: _Window, offset: Shape, size: Shape, out: Shape) -> tuple[IntArray, IntArray]:
    """Return places in the outgoing plane, and what an ``offset`` in the window reads there, where that is inside."""
    y = np.arange(out[0]) * window.stride[0] - window.low[0] + offset[0] * window.dilation[0]
    x = np.arange(out[1]) * window.stride[1] - window.low[1] + offset[1] * window.dilation[1]
    inside = ((y >= 0) & (y < size[0]))[:, None] & ((x >= 0) & (x < size[1]))[None, :]
    return np.flatnonzero(inside), (y[:, None] * size[1] + x[None, :])[inside]


def _plane(shape: Shape) -> Shape:
    """Return (channels, rows, columns)."""
    if len(shape) not in (2, 3):
        raise ValueError(f"a window gets shape {shape}")
    return shape if len(shape) == 3 else (shape[0], 1, shape[1])


def _window(node: Node, shape: Shape) -> _Window:
    """Return the window of a convolution or of pooling (one channel per group)."""
    channels = _plane(shape)[0]
    if "weight" not in PARAMETERS[node.kind]:
        weight: AnyArray = np.ones((channels, 1, *(int(v) for v in _two(node["kernel_size"]))), bool)
        groups, dilation = channels, np.ones(2, np.int64)
    else:
        weight, groups, dilation = np.asarray(node["weight"]), int(node["groups"]), _two(node["dilation"])
        weight = weight[:, :, None, :] if weight.ndim == 3 else weight
    stride = _two(node["stride"])
    if groups < 1 or weight.ndim != 4 or weight.shape[1] * groups != channels or weight.shape[0] % groups:
        raise ValueError(f"a weight of shape {weight.shape} in {groups} groups gets {shape}")
    if stride.min() < 1 or dilation.min() < 1:
        raise ValueError(f"stride {stride}, dilation {dilation}")
    low, high = _padding(node["padding"], dilation * (np.array(weight.shape[2:]) - 1))
    if len(shape) == 2:  # one dimension: there is one row, and none around it
        low[0] = high[0] = 0
    return _Window(weight != 0, groups, stride, low, high, dilation)


def _padding(padding: Any, reach: IntArray) -> tuple[IntArray, IntArray]:
    """Return zeros before and behind; ``same`` puts the smaller half before, as PyTorch does."""
    if isinstance(padding, bytes | str):
        word = padding.decode() if isinstance(padding, bytes) else padding
        if word not in ("same", "valid"):
            raise ValueError(f"padding {word!r}")
        total = reach if word == "same" else reach * 0
        return total // 2, total - total // 2
    low, high = _two(padding), _two(padding)
    if low.min() < 0:
        raise ValueError(f"padding {low}")
    return low, high


def _two(value: Any) -> IntArray:
    """One number, or one per dimension, as two."""
    return np.broadcast_to(np.asarray(value, np.int64), 2).copy()
