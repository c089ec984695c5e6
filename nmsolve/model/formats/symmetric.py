"""Undirected graphs whose file stores every edge twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, IntArray


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
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        u, v = _ends(indptr, indices, int(bad[0]))
        raise InputError(
            f"edge {u + base}-{v + base} has weight {w[bad[0]]}", where(u), "a finite number >= 0"
        )
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
    loops = np.flatnonzero(ind == row)
    if len(loops):
        u = int(row[loops[0]])
        raise InputError(f"vertex {u + base} has an edge to itself", where(u), "no self-loops")
    twice = np.flatnonzero((ind[1:] == ind[:-1]) & (row[1:] == row[:-1]))
    if len(twice):
        u, v = int(row[twice[0]]), int(ind[twice[0]])
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
    differs = np.flatnonzero(m_val != val)
    if len(differs):
        k = differs[0]
        u, v = int(row[k]), int(ind[k])
        raise InputError(
            f"edge {u + base}-{v + base} has weight {val[k]:g} at one end and {m_val[k]:g} at the other",
            where(u),
            "equal weights",
        )


def _ends(indptr: IntArray, indices: IntArray, k: int) -> tuple[int, int]:
    return int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])
