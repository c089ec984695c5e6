"""Tiles of operators that are too large for a unit's own memory (M3.3), with copies beside compute (M3.4).

A result of R rows and C columns, each element made from a line of K inputs (a convolution's patch, a row of a matrix, the
element itself with K = 1), is made in tiles of r rows and c columns. With b bytes an element a tile holds

    b (r K + K c + r c)   for products,      b r c (inputs + 1)   for everything else

and twice the inputs if the next tile is copied in while this one is computed (double buffering). Counts, remainders and offsets
are steps of a scalar program, and stay symbolic where the shape is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.operators.scalars.lower import lower
from nmsolve.model.operators.scalars.program import Builder, ScalarProgram


@dataclass(frozen=True)
class Work:
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
    """Tiles of one operator: rows and columns of a tile (the last ones may be smaller), and whether copies are doubled."""

    rows: int
    columns: int
    doubled: bool


def tile_bytes(work: Work, rows: int, columns: int, doubled: bool) -> int:
    """Return the bytes that a tile holds; see the module. The inner length must be a number."""
    if work.inner:
        inputs, own = rows * work.inner + work.inner * columns, rows * columns
    else:
        inputs, own = rows * columns * work.inputs, rows * columns
    return int(work.element * (inputs * (2 if doubled else 1) + own))


def choose_tiles(work: Work, rows: int, columns: int, budget: int, doubled: bool = True) -> Tiles | None:
    """Return tiles that fit the budget and move least; None if the whole result fits as it is.

    Parameters
    ----------
    rows, columns : of the result, or the most that they may be
    budget : bytes of the unit's own memory

    Raises
    ------
    InputError : not even one element fits
    """
    if tile_bytes(work, rows, columns, False) <= budget:
        return None
    best: tuple[float, int, int] | None = None
    r = 1
    while True:
        c = _most_columns(work, r, columns, budget, doubled)
        if c and (best is None or _moved(work, rows, columns, r, c) < best[0]):
            best = (_moved(work, rows, columns, r, c), r, c)
        if r >= rows:
            break
        r = min(2 * r, rows)
    if best is None:
        need = tile_bytes(work, 1, 1, doubled)
        raise InputError(f"one element needs {need:,} bytes on chip", "", f"at most {budget:,}")
    return Tiles(best[1], best[2], doubled)


def _most_columns(work: Work, rows: int, columns: int, budget: int, doubled: bool) -> int:
    """Return the most columns of a tile of so many rows that fit; bytes grow evenly with columns."""
    fixed = tile_bytes(work, rows, 0, doubled)
    each = tile_bytes(work, rows, 1, doubled) - fixed
    return max(0, min(columns, (budget - fixed) // each))


def _moved(work: Work, rows: int, columns: int, r: int, c: int) -> float:
    """Return elements that all tiles bring in together: for products every row is read once for every column of tiles."""
    down, across = -(-rows // r), -(-columns // c)
    if not work.inner:
        return down * across  # each element moves once whatever the tiles: fewer tiles start less often
    return float(rows * work.inner * across + work.inner * columns * down)


def tile_program(name: str, work: Work, tiles: Tiles) -> ScalarProgram:
    """Return loop counts, remainders and the offsets of a tile as a scalar program (M3.3).

    Results: ``NAME:row_tiles``, ``NAME:row_rest`` (rows of the last tile), ``NAME:row_offset`` (first row of the tile with the
    number ``NAME:row``, a symbol that counts from 0), and likewise for columns.
    """
    builder = Builder(shared=True)
    for axis, length, tile in (("row", work.rows, tiles.rows), ("column", work.columns, tiles.columns)):
        size, whole = builder.const(tile), lower(builder, length)
        up = builder.add("add", whole, builder.const(tile - 1))
        count = builder.add("floordiv", up, size)
        before = builder.add("mul", builder.add("sub", count, builder.const(1)), size)
        builder.results[f"{name}:{axis}_tiles"] = count
        builder.results[f"{name}:{axis}_rest"] = builder.add("sub", whole, before)
        builder.results[f"{name}:{axis}_offset"] = builder.add("mul", builder.symbol(f"{name}:{axis}"), size)
    return builder.program()


def tiled_time(tiles: int, copy: float, compute: float, doubled: bool) -> float:
    """Return the time of all tiles, from those of one.

    With doubled copies the next tile comes in while this one is computed: ``copy + (tiles - 1) max(copy, compute) + compute``;
    else one after the other.
    """
    if not doubled:
        return tiles * (copy + compute)
    return copy + (tiles - 1) * max(copy, compute) + compute
