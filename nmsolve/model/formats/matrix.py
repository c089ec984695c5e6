"""Sparse matrices as graphs: one rule for Matrix Market files, archives of SciPy, and matrices in memory;
and one for files that hold every edge of an undirected graph twice.

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
from nmsolve.model.types import AnyArray, FloatArray, IntArray, first_true


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
    if (k := first_true(~(np.isfinite(value) & (value.imag == 0) & (value.real >= 0)))) is not None:
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


def each_edge_once(
    indptr: IntArray, indices: IntArray, weights: AnyArray, where: Callable[[int], str], base: int
) -> tuple[IntArray, IntArray, AnyArray]:
    """Return source, target and weight (edges,) of every edge, from sparse rows that hold each edge at both ends.

    Parameters
    ----------
    indptr, indices, weights : CSR, (n + 1,) and twice (2 * edges,); indices in 0..n-1; rows need not be sorted
    where : the place of vertex ``u`` in the file, for errors
    base : number of the first vertex in the file's own counting (0 or 1), for errors

    Raises
    ------
    InputError : a self-loop, an edge listed twice, an edge listed at one end only or with two weights, a
        negative or infinite weight
    """
    n = len(indptr) - 1
    w = np.asarray(weights, np.float64)
    if (k := first_true(~(np.isfinite(w) & (w >= 0)))) is not None:
        u, v = _ends(indptr, indices, k)
        raise InputError(f"edge {u + base}-{v + base} has weight {w[k]}", where(u), "a finite number >= 0")
    ptr, ind, val, mirror = _sorted_and_mirrored(n, indptr, indices, w)
    _check_pairs(ptr, ind, val, mirror, where, base)
    row = np.repeat(np.arange(n), np.diff(ptr))
    upper = ind > row
    return row[upper], ind[upper], val[upper]


def _sorted_and_mirrored(
    n: int, indptr: IntArray, indices: IntArray, w: AnyArray
) -> tuple[IntArray, IntArray, AnyArray, tuple[IntArray, IntArray, AnyArray]]:
    """Return the matrix with sorted rows, and its transpose with sorted rows (two linear transpositions)."""
    from scipy.sparse import csr_array

    matrix = csr_array((w, indices, indptr), shape=(n, n))
    mirror = matrix.T.tocsr()
    matrix = mirror.T.tocsr()
    other = (mirror.indptr.astype(np.int64), mirror.indices.astype(np.int64), mirror.data)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data, other


def _check_pairs(
    ptr: IntArray,
    ind: IntArray,
    val: AnyArray,
    mirror: tuple[IntArray, IntArray, AnyArray],
    where: Callable[[int], str],
    base: int,
) -> None:
    """Raise for self-loops, repeated edges and edges whose two ends do not agree."""
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    if (at := first_true(ind == row)) is not None:
        u = int(row[at])
        raise InputError(f"vertex {u + base} has an edge to itself", where(u), "no self-loops")
    if (place := first_true((ind[1:] == ind[:-1]) & (row[1:] == row[:-1]))) is not None:
        u, v = int(row[place]), int(ind[place])
        raise InputError(
            f"edge {u + base}-{v + base} is listed twice", where(u), "each neighbour once per vertex"
        )
    m_ptr, m_ind, m_val = mirror
    same = len(m_ind) == len(ind) and bool((m_ptr == ptr).all() and (m_ind == ind).all())
    if not same:
        n = len(ptr) - 1
        m_row = np.repeat(np.arange(n), np.diff(m_ptr))
        lonely = np.setdiff1d(row * n + ind, m_row * n + m_ind)
        u, v = (int(x) for x in divmod(int(lonely[0]), n))
        raise InputError(
            f"vertex {u + base} lists neighbour {v + base}, but not the other way round",
            where(u),
            "each edge at both ends",
        )
    if (k := first_true(m_val != val)) is not None:
        u, v = int(row[k]), int(ind[k])
        raise InputError(
            f"edge {u + base}-{v + base} has weight {val[k]:g} at one end and {m_val[k]:g} at the other",
            where(u),
            "equal weights",
        )


def _ends(indptr: IntArray, indices: IntArray, k: int) -> tuple[int, int]:
    return int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])
