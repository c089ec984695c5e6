"""Square matrices as graphs: one rule for Matrix Market files, archives of SciPy, and matrices in memory.

Entries of one place are added up, the diagonal is dropped, an entry that is 0 is no edge. Weights are >= 0: negative and complex
entries have none until the user says how (:class:`.GraphReading`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, FloatArray, IntArray


class Entries(NamedTuple):
    """Stored entries of an n x n matrix.

    Attributes
    ----------
    row, col : (entries,) from 0
    value : (entries,) real or complex
    directed : row sends to column; False: undirected, each edge given once; None: undirected if the weights are symmetric
    """

    n: int
    row: AnyArray
    col: AnyArray
    value: AnyArray
    directed: bool | None


def matrix_graph(
    entries: Entries,
    name: str,
    where: str,
    label: Callable[[int, int], str],
    reading: GraphReading | None = None,
) -> LogicGraph:
    """Return the graph of a matrix.

    Parameters
    ----------
    where : file, for errors
    label : what an entry at (row, column), both from 0, is called in errors
    reading : how the entries of a file are read; None for a matrix in memory

    Raises
    ------
    InputError : entries that are no numbers, or (as read) negative, infinite or complex
    """
    if entries.value.dtype.kind not in ("buif" if reading is None else "buifc"):
        raise InputError(f"entries are of type {entries.value.dtype}", where, _NUMBER)
    how = reading or AS_IT_IS
    row, col, value = _summed(entries, how.pattern)
    if how.absolute:
        value = np.abs(value)
    wrong = np.flatnonzero(~(np.isfinite(value) & (value.imag == 0) & (value.real >= 0)))
    if len(wrong):
        k = wrong[0]
        shown = f"{value[k]:g}".strip("()") if value.dtype.kind == "c" else f"{value[k]:.15g}"
        raise InputError(
            f"{label(int(row[k]), int(col[k]))} is {shown}",
            where,
            _NUMBER if reading is None else f"{_NUMBER}, or {WITH}",
        )
    weight: FloatArray = value.real.astype(np.float64)
    directed = entries.directed
    if directed is None:
        directed = not _symmetric(row, col, weight)
        if not directed:
            upper = row < col
            row, col, weight = row[upper], col[upper], weight[upper]
    return LogicGraph.from_edges(entries.n, row, col, weight, directed=directed, name=name)


#: What is expected of an entry.
_NUMBER = "a finite number >= 0"
WITH = "--pattern (every entry weighs 1) or --absolute (its absolute value)"


def _summed(entries: Entries, pattern: bool) -> tuple[IntArray, IntArray, AnyArray]:
    """Return rows, columns and values off the diagonal, each place once, row by row, without zeros; 1 each if places count."""
    from scipy.sparse import coo_array

    off = np.flatnonzero(entries.row != entries.col)
    row, col, value = entries.row[off], entries.col[off], entries.value[off]
    value = np.ones(len(off)) if pattern else value.astype(np.result_type(value, np.float64))
    matrix = coo_array((value, (row, col)), shape=(entries.n, entries.n)).tocsr()
    matrix.sum_duplicates()
    if pattern:
        matrix.data[:] = 1
    matrix.eliminate_zeros()
    at = matrix.tocoo()
    return at.coords[0].astype(np.int64), at.coords[1].astype(np.int64), at.data


def _symmetric(row: IntArray, col: IntArray, weight: FloatArray) -> bool:
    """Return whether every entry has a mirror of the same weight; entries are sorted, each place once."""
    order = np.lexsort((row, col))
    return bool(
        np.array_equal(col[order], row)
        and np.array_equal(row[order], col)
        and np.array_equal(weight[order], weight)
    )
