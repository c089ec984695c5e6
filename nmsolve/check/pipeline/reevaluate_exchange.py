"""What layers take on groups of cores, recomputed for verification: in NumPy over all layers, split by split.

Shares no code with :mod:`nmsolve.hw.pipeline.exchange`; formulas from docs/pipeline.md, *Inside a group*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.model.types import AnyArray, FloatArray

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers
    from nmsolve.model.pipeline.figures import CoreFigures

CONVOLVES = (
    "Conv",
    "ConvTranspose",
    "ConvInteger",
    "QLinearConv",
    "DeformConv",
    "FusedConv",
)
#: Operators that take elements to other places.
CARRIES = (
    "QLinearConcat", "Concat", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "Resize",
    "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose",
    "Upsample",
)  # fmt: skip
#: Operators that add up rows.
SUMS_ROWS = (
    "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "QLinearGlobalAveragePool", "ReduceMean", "ReduceSum",
)  # fmt: skip


#: Splits whose times differ by no more than this part are equally fast.
ALIKE = 1e-9


def reevaluated_times(layers: Layers, figures: CoreFigures, largest: int) -> FloatArray:
    """Return (L, C) us of every layer on groups of 1 to ``largest`` cores, with what they exchange."""
    return _walked(layers, figures, largest)[0]


def reevaluated_bytes(layers: Layers, figures: CoreFigures, largest: int) -> tuple[FloatArray, FloatArray]:
    """Return the fewest and the most bytes (L, C) that all cores of a group receive for a layer, of its fastest splits."""
    return _walked(layers, figures, largest)[1:]


def _walked(layers: Layers, figures: CoreFigures, largest: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    tall, broad = (
        np.minimum(layers.rows, figures.tile_rows),
        np.minimum(layers.channels, figures.tile_channels),
    )
    us = 1e6 * (layers.macs / figures.mac_rate + layers.elements / figures.element_rate)
    one = us * (tall * broad) / (layers.rows.astype(float) * layers.channels)
    down, across = np.ceil(layers.rows / tall), np.ceil(layers.channels / broad)
    inputs, result = _tensors(layers)
    bytes_of = _Bytes(layers, inputs, result)
    product = layers.macs > 0
    alone = down * across * one
    length = np.maximum(1, layers.macs // (layers.channels * layers.rows))
    exact = np.full((layers.count, largest), np.inf)
    exact[:, 0] = alone
    low, high = np.zeros(exact.shape), np.zeros(exact.shape)
    for c in range(2, largest + 1):
        ways = [(np.ceil(down * across / c) * one, bytes_of.in_pieces(c), ~product)]
        ways.append((alone * np.ceil(length / c) / length, bytes_of.by_terms(c), product))
        for a in range(1, c + 1):
            if c % a == 0:
                grid = np.ceil(down / a) * np.ceil(across / (c // a)) * one
                ways.append((grid, bytes_of.in_grid(a, c // a), product))
        computed, received, possible = (np.array(table) for table in zip(*ways, strict=True))
        took = computed + 1e6 * received / figures.bandwidth + (figures.sync or 0.0) / 1000
        took = np.where(possible, took, np.inf)
        exact[:, c - 1], low[:, c - 1], high[:, c - 1] = _fastest(took, c * received, c * received)
    whole = bytes_of.others + bytes_of.factor + result
    every = whole[:, None] / np.arange(1, largest + 1)
    there = exact + 1e6 * every / figures.bandwidth + (figures.sync or 0.0) / 1000
    reached, fewest, most = exact.copy(), low.copy(), high.copy()
    fewer = np.full(
        (3, layers.count), np.inf
    )  # the fastest number of fewer cores: its time, and its least and most bytes
    for c in range(2, largest + 1):
        one_less = np.array([there[:, c - 2], low[:, c - 2] + whole, high[:, c - 2] + whole])
        fewer = np.array(_fastest(*np.stack([fewer, one_less], axis=1)))
        own = np.array([exact[:, c - 1], low[:, c - 1], high[:, c - 1]])
        reached[:, c - 1], fewest[:, c - 1], most[:, c - 1] = _fastest(*np.stack([fewer, own], axis=1))
    out: FloatArray = np.maximum.accumulate(reached[:, ::-1], axis=1)[:, ::-1]
    runs = np.ones((layers.count, 1)) if layers.nesting is None else layers.nesting.runs[:, None]
    return out * runs, fewest * runs, most * runs


def _fastest(
    took: FloatArray, fewest: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(L,) least times of the ways (W, L), and the least and the most bytes of those that are as fast."""
    least = took.min(axis=0)
    near = took <= least * (1 + ALIKE)
    return least, np.where(near, fewest, np.inf).min(axis=0), np.where(near, most, -np.inf).max(axis=0)


def _tensors(layers: Layers) -> tuple[list[list[float]], FloatArray]:
    """Return the bytes of every input of every layer, and (L,) of its results."""
    tensors = layers.tensors
    inputs: list[list[float]] = [[] for _ in layers.kinds]
    result = np.zeros(layers.count)
    for t in range(tensors.count):
        result[tensors.source[t]] += tensors.volume[t]
        for layer in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist():
            inputs[layer].append(float(tensors.volume[t]))
    return inputs, result


class _Bytes:
    """(L,) bytes that a core receives, by the way in which a layer is shared."""

    def __init__(self, layers: Layers, inputs: list[list[float]], result: FloatArray) -> None:
        def among(names: tuple[str, ...]) -> AnyArray:
            return np.array([kind in names for kind in layers.kinds])

        self.result, self.weights = result, layers.weight_bytes.astype(float)
        products = (layers.macs > 0) & ~among(CONVOLVES) & (layers.weight_bytes == 0)
        self.factor = np.array([sum(x) - max(x, default=0.0) for x in inputs]) * products
        self.others = np.array([sum(x) for x in inputs]) - self.factor
        window = np.ones(layers.count) if layers.window is None else layers.window
        self.both_sides = self.others * (window - 1) / np.maximum(1.0, np.sqrt(layers.rows))
        self.batches = np.ones(layers.count) if layers.batches is None else layers.batches
        self.carried, self.summed = among(CARRIES) * result, among(SUMS_ROWS) * result

    def in_pieces(self, c: int) -> FloatArray:
        rest = 1 - 1 / c
        beside: FloatArray = np.minimum(self.both_sides, self.others * rest)
        return beside + self.carried / c * rest + self.summed * rest

    def by_terms(self, c: int) -> FloatArray:
        got: FloatArray = (self.others / c + self.result) * (1 - 1 / c)
        return got

    def in_grid(self, a: int, b: int) -> FloatArray:
        c = a * b
        got: FloatArray = (self.others / a + self.result / c) * (1 - 1 / b) + self.weights / b * (1 - 1 / a)
        share = np.ceil(self.batches / a) / self.batches
        got = got + np.maximum(0.0, self.factor * share / b - self.factor / c)
        return got if a == 1 else got + np.minimum(self.both_sides, self.others * (1 - 1 / a))
