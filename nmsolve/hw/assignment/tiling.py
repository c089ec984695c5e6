"""Tiles of operators that are too large for a unit's own memory (M3.3), with copies beside compute (M3.4).

A result of R rows and C columns, each element a sum over K products (a convolution's patch, a row of a matrix) or, with K = 0,
made from the elements at its place, is made in tiles of r rows and c columns. A sum is built up from pieces of k products, while
the tile of the result stays on chip. With b bytes an element a tile holds

    b (r k + k c + r c)   for products,      b r c (inputs + 1)   for everything else

and twice the inputs if the next tile is copied in while this one is computed (double buffering). Every row is read once for each
column of tiles, and every column once for each row of tiles. Counts, remainders and offsets are steps of a scalar program, and
stay symbolic where the shape is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.operators.graph import Operator, OperatorGraph
from nmsolve.model.operators.layers import CHANNELS_FIRST
from nmsolve.model.operators.scalars.lower import lower
from nmsolve.model.operators.scalars.program import Builder, ScalarProgram
from nmsolve.model.operators.sizes import BITS
from nmsolve.model.operators.symbols import exact_div, product

#: Products of a sum that are brought in at a time; less would leave arithmetic units empty, more takes room from the result.
DEPTH = 64


@dataclass(frozen=True)
class Extent:
    """What is to be tiled: a number or an expression for each.

    Attributes
    ----------
    rows, columns : of the result
    inner : K, the length of a sum of products; 0 for operators without products
    inputs : tensors of the result's size that it reads, without products
    element : bytes of an element
    """

    rows: Any
    columns: Any
    inner: Any = 0
    inputs: int = 1
    element: int = 4


@dataclass(frozen=True)
class Tiles:
    """Tiles of one operator: rows, columns and products of a sum in one tile (the last ones may be smaller).

    ``doubled``: the next tile's inputs are copied in beside the arithmetic. ``depth`` is 0 without products.
    """

    rows: int
    columns: int
    depth: int
    doubled: bool


def tile_bytes(extent: Extent, rows: int, columns: int, depth: int, doubled: bool) -> int:
    """Return the bytes that a tile holds; see the module."""
    inputs = depth * (rows + columns) if extent.inner else rows * columns * extent.inputs
    return int(extent.element * (inputs * (2 if doubled else 1) + rows * columns))


def choose_tiles(
    extent: Extent, rows: int, columns: int, inner: int, budget: int, doubled: bool = True
) -> Tiles | None:
    """Return tiles that fit the budget and read least; None if the whole fits as it is.

    Parameters
    ----------
    rows, columns, inner : of the extent, or the most that they may be
    budget : bytes of the unit's own memory

    Raises
    ------
    InputError : not even one element fits
    """
    if tile_bytes(extent, rows, columns, inner, False) <= budget:
        return None
    depth, best, least = min(inner, DEPTH), None, 0
    while best is None and (depth > 0 or not inner):
        r = 1
        while True:
            c = _most_columns(extent, r, columns, depth, budget, doubled)
            read = _read(extent, rows, columns, r, c) if c else 0
            if c and (best is None or read < least):
                best, least = Tiles(r, c, depth, doubled), read
            if r >= rows:
                break
            r = min(2 * r, rows)
        if not inner or best is not None:
            break
        depth //= 2
    if best is None:
        need = tile_bytes(extent, 1, 1, min(inner, 1), doubled)
        raise InputError(f"one element needs {need:,} bytes on chip", "", f"at most {budget:,}")
    return best


def _most_columns(extent: Extent, rows: int, columns: int, depth: int, budget: int, doubled: bool) -> int:
    """Return the most columns of a tile of this many rows that fit; bytes grow evenly with columns."""
    fixed = tile_bytes(extent, rows, 0, depth, doubled)
    each = tile_bytes(extent, rows, 1, depth, doubled) - fixed
    return max(0, min(columns, (budget - fixed) // each))


def _read(extent: Extent, rows: int, columns: int, r: int, c: int) -> int:
    """Return what all tiles read: for products lines of rows and columns; else how many they are, as fewer start less often."""
    down, across = -(-rows // r), -(-columns // c)
    return rows * across + columns * down if extent.inner else down * across


def tile_program(name: str, extent: Extent, tiles: Tiles) -> ScalarProgram:
    """Return loop counts, remainders and the offsets of a tile as a scalar program (M3.3).

    Results: ``NAME:row_tiles``, ``NAME:row_rest`` (rows of the last tile), ``NAME:row_offset`` (first row of the tile with the
    number ``NAME:row``, a symbol that counts from 0), likewise for columns, and with products for the inner length (``inner``).
    """
    builder = Builder(shared=True)
    axes = [("row", extent.rows, tiles.rows), ("column", extent.columns, tiles.columns)]
    for axis, length, tile in axes + [("inner", extent.inner, tiles.depth)] * bool(tiles.depth):
        size, whole = builder.const(tile), lower(builder, length)
        up = builder.add("add", whole, builder.const(tile - 1))
        count = builder.add("floordiv", up, size)
        before = builder.add("mul", builder.add("sub", count, builder.const(1)), size)
        builder.results[f"{name}:{axis}_tiles"] = count
        builder.results[f"{name}:{axis}_rest"] = builder.add("sub", whole, before)
        builder.results[f"{name}:{axis}_offset"] = builder.add("mul", builder.symbol(f"{name}:{axis}"), size)
    return builder.program()


def read_again(extent: Extent, tiles: Tiles, streamed: int, held: int) -> int:
    """Return bytes that tiles read beyond each input once.

    Parameters
    ----------
    extent : of a product, in numbers
    streamed, held : bytes of the input that rows come from (what flows), and of that which columns come from (the weights)
    """
    down, across = -(-int(extent.rows) // tiles.rows), -(-int(extent.columns) // tiles.columns)
    return streamed * (across - 1) + held * (down - 1)


def tile_count(extent: Extent, tiles: Tiles) -> int:
    """Return how many pieces come in one after the other; the extent is in numbers."""
    sizes = ((extent.rows, tiles.rows), (extent.columns, tiles.columns), (extent.inner, tiles.depth or 1))
    down, across, deep = (max(1, -(-int(length) // tile)) for length, tile in sizes)
    return down * across * deep


def tiled_time(tiles: int, copy: float, compute: float, doubled: bool) -> float:
    """Return the time of all tiles, from the time of all copies and of all arithmetic.

    With doubled copies the next tile comes in while this one is computed, so only the first copy and the last arithmetic stand
    alone: ``copy / n + (n - 1) / n max(copy, compute) + compute / n``; else one goes after the other.
    """
    if not doubled:
        return copy + compute
    return (copy + (tiles - 1) * max(copy, compute) + compute) / tiles


def extent_of(graph: OperatorGraph, operator: Operator, macs: Any) -> Extent | None:
    """Return what tiles are cut of: the channels of a convolution's result, else its last axis, are columns, all else rows.

    Numbers, or expressions where the shape has symbols. None for operators without MACs, and where a shape is not known.

    Parameters
    ----------
    macs : multiply-accumulate operations; inner length = MACs / elements of the result
    """
    outputs = [k for k in operator.outputs if k >= 0]
    shape = graph.tensors[outputs[0]].shape if outputs else None
    if not shape or macs is None or (isinstance(macs, int) and macs == 0):
        return None
    axis = 1 if operator.kind in CHANNELS_FIRST and len(shape) > 1 else len(shape) - 1
    columns, rows = shape[axis], product(d for k, d in enumerate(shape) if k != axis)
    inner = exact_div(macs, product(shape)) if product(shape) != 0 else 0
    bits = BITS.get(graph.tensors[outputs[0]].dtype) or 32
    return Extent(rows, columns, inner, element=max(1, bits // 8)) if inner != 0 else None
