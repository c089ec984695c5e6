"""How a layer is split over the cores of its group, and what they exchange for it (M5.1; docs/pipeline.md, *Inside a group*).

Between layers every tensor lies in equal parts on the c cores of a stage, rows first: a core holds some rows with all their
channels. Weights lie evenly on the cores. A core receives what it needs and does not hold, at its bandwidth, and before a
layer the cores meet. Splits:

* *grid*: a blocks of rows by b blocks of channels, a b = c. A core takes its rows of the input with all channels, so from the b
  cores that hold them; its share of the weights; of a convolution or a pooling the rows of its window beside its own; and what it
  makes goes back to where its rows lie. a = c is a split of rows alone (also of heads: independent products come first), b = c
  one of channels.
* *inner*: of a sum of products, every core adds up its share of the terms; the sums of all cores are added where the result lies.
* *pieces*: work without products is shared by tiles. What moves elements takes in all that a core makes, a pooling the rows of
  its window beside its own, a mean over rows the sums of all cores; any other operation nothing.

Rows beside a block: images are taken as square, so one line of them is the input over the root of the result's rows.

Each layer takes the split that is best for its number of cores, or fewer of them: then what it takes and makes moves there and
back. Where a layer gets slower with more cores, its time on few of them is stated as that on more: a table must not grow with
the cores, and no layer takes longer than it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.operators.classes import CONVOLUTIONS, MOVEMENTS
from nmsolve.model.pipeline.figures import CoreFigures
from nmsolve.model.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from nmsolve.model.operators.layers import Layers

#: Splits by number, as reports name them.
SPLITS = ("one core", "rows", "channels", "rows and channels", "terms", "pieces")
#: Movements that leave the order of elements, or only their shape, alone.
STILL = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
#: Operators that make one row of many.
OVER_ROWS = frozenset(
    {
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GlobalLpPool",
        "QLinearGlobalAveragePool",
        "ReduceMean",
        "ReduceSum",
    }
)


class LayerArrays(NamedTuple):
    """What the kernel needs of L layers.

    ``high``, ``wide`` (L,) tiles of the result along rows and channels; ``piece`` (L,) us of a tile; ``weights``, ``shared``,
    ``given``, ``made`` (L,) bytes of weights, of the smaller factor of a product of two results, of all other inputs, of results;
    ``batches`` (L,) independent products; ``beside`` (L,) bytes of input rows on one side of a block; ``product``, ``moves``,
    ``adds`` (L,) what kind of work it is; ``terms`` (L,) of each sum of products; ``runs`` (L,) expected runs.
    """

    high: IntArray
    wide: IntArray
    piece: FloatArray
    weights: FloatArray
    shared: FloatArray
    given: FloatArray
    made: FloatArray
    batches: IntArray
    beside: FloatArray
    product: AnyArray
    terms: IntArray
    moves: AnyArray
    adds: AnyArray
    runs: FloatArray


class Splits(NamedTuple):
    """(L, C) us of every layer on 1 to C cores, how much of it is exchange or kept back, the bytes that all of them receive in
    the split that they take, and this split, of :data:`SPLITS`."""

    time: FloatArray
    exchange: FloatArray
    received: FloatArray
    split: AnyArray


def best_splits(layers: Layers, figures: CoreFigures, largest: int) -> Splits:
    """Return the best split of every layer on up to ``largest`` cores; figures with ``sync`` (ns), the cores' time to meet."""
    shape = (layers.count, largest)
    out = Splits(np.full(shape, np.inf), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int8))
    _fill(_work(layers, figures), 1e6 / figures.bandwidth, 1e-3 * (figures.sync or 0.0), *out)
    return out


def tiles_of(layers: Layers, figures: CoreFigures) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (L,) tiles of every result along rows and along channels, and us of a tile in one run of the layer."""
    wide = np.minimum(layers.channels, figures.tile_channels)
    high = np.minimum(layers.rows, figures.tile_rows)
    whole = layers.macs / figures.mac_rate + layers.elements / figures.element_rate
    piece = 1e6 * whole * (wide * high) / (layers.channels.astype(float) * layers.rows)
    return -(-layers.rows // high), -(-layers.channels // wide), piece


def _work(layers: Layers, figures: CoreFigures) -> LayerArrays:
    given, largest, made = (np.zeros(layers.count) for _ in range(3))
    tensors = layers.tensors
    size = np.repeat(tensors.volume, np.diff(tensors.indptr))
    np.add.at(given, tensors.targets, size)
    np.maximum.at(largest, tensors.targets, size)
    np.add.at(made, tensors.source, tensors.volume)
    kinds, product = np.array(layers.kinds), layers.macs > 0
    convolves = np.isin(kinds, list(CONVOLUTIONS))
    # of two results that are multiplied one has to be known for every row
    shared = np.where(product & ~convolves & (layers.weight_bytes == 0), given - largest, 0.0)
    ones = np.ones(layers.count, np.int64)
    window = ones if layers.window is None else layers.window
    beside = (given - shared) * (window - 1) / 2 / np.maximum(layers.rows**0.5, 1.0)
    return LayerArrays(
        *tiles_of(layers, figures), layers.weight_bytes.astype(float), shared, given - shared, made,
        ones if layers.batches is None else layers.batches, beside, product,
        np.maximum(1, layers.macs // (layers.channels * layers.rows)),
        np.isin(kinds, list(MOVEMENTS - STILL)), np.isin(kinds, list(OVER_ROWS)),
        np.ones(layers.count) if layers.nesting is None else layers.nesting.runs,
    )  # fmt: skip


@kernel
def _fill(
    work: LayerArrays,
    per_byte: float,
    sync: float,
    time: FloatArray,
    exchange: FloatArray,
    received: FloatArray,
    split: AnyArray,
) -> None:
    """Set what :class:`Splits` holds."""
    largest = time.shape[1]
    for k in range(time.shape[0]):
        high, wide, piece, runs = work.high[k], work.wide[k], work.piece[k], work.runs[k]
        time[k, 0] = high * wide * piece
        for c in range(2, largest + 1):
            kept = (c - 1) / c
            if work.product[k]:
                moved = work.given[k] / c * kept + work.made[k] * kept
                terms = work.terms[k]
                computed, which = high * wide * piece * (-(-terms // c) / terms), 4
            else:
                moved = min(work.given[k], 2 * work.beside[k]) if work.beside[k] > 0 else 0.0
                moved = min(moved, work.given[k] * kept)
                if work.moves[k]:
                    moved += work.made[k] / c * kept
                if work.adds[k]:
                    moved += work.made[k] * kept
                computed, which = -(-(high * wide) // c) * piece, 5
            took = per_byte * moved + sync
            if computed + took < time[k, c - 1]:
                time[k, c - 1], exchange[k, c - 1], split[k, c - 1] = computed + took, took, which
                received[k, c - 1] = c * moved
        for a in range(1, (largest if work.product[k] else 0) + 1):
            for b in range(1, largest // a + 1):
                c = a * b
                if c == 1:
                    continue
                moved = work.given[k] / a * (b - 1) / b + work.made[k] / c * (b - 1) / b
                moved += work.weights[k] / b * (a - 1) / a
                blocks = -(-work.batches[k] // a) / work.batches[k]
                moved += max(0.0, work.shared[k] * blocks / b - work.shared[k] / c)
                if a > 1:
                    moved += min(2 * work.beside[k], work.given[k] * (a - 1) / a)
                took = per_byte * moved + sync
                computed = -(-high // a) * -(-wide // b) * piece
                if computed + took < time[k, c - 1]:
                    which = 3 if a > 1 and b > 1 else (1 if a > 1 else 2)
                    time[k, c - 1], exchange[k, c - 1], split[k, c - 1] = computed + took, took, which
                    received[k, c - 1] = c * moved
        # fewer cores than the group has: what the layer takes and makes moves to them and back
        whole = work.given[k] + work.shared[k] + work.made[k]
        low, spent, got, how = np.inf, 0.0, 0.0, np.int8(0)
        own, sent, took, way = time[k, 0], exchange[k, 0], received[k, 0], split[k, 0]
        for c in range(2, largest + 1):
            there = per_byte * whole / (c - 1) + sync
            if own + there < low:
                low, spent, got, how = own + there, sent + there, took + whole, way
            own, sent, took, way = time[k, c - 1], exchange[k, c - 1], received[k, c - 1], split[k, c - 1]
            if low < own:
                time[k, c - 1], exchange[k, c - 1], split[k, c - 1] = low, spent, how
                received[k, c - 1] = got
        for c in range(largest - 1, 0, -1):
            if time[k, c] > time[k, c - 1]:
                exchange[k, c - 1] += time[k, c] - time[k, c - 1]
                time[k, c - 1] = time[k, c]
        for c in range(largest):
            time[k, c] *= runs
            exchange[k, c] *= runs
            received[k, c] *= runs
