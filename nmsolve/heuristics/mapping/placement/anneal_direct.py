"""Kernels that price every move from its neighbours: any distance matrix, and boards too large for tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.placement.proposals import anneal, descend, put
from nmsolve.heuristics.mapping.placement.tables import Grid, Seats
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.types import FloatArray, Int32Array, IntArray


class Links(NamedTuple):
    """Neighbours and any distance for the kernels, all float64.

    ``weights`` (both directions) go with symmetric distances; ``out`` and ``back`` with asymmetric ones.
    ``matrix`` and its transpose ``across`` are (0, 0) where the distance is separable.
    """

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    out: FloatArray
    back: FloatArray
    matrix: FloatArray
    across: FloatArray
    symmetric: bool


class Direct(NamedTuple):
    """A placement whose moves are priced neighbour by neighbour."""

    links: Links
    grid: Grid
    seats: Seats


@embedded
def _mesh_price(s: Direct, u: int, other: int, x0: int, y0: int, x1: int, y1: int) -> float:
    """Change of cost if ``u`` went from (x0, y0) to (x1, y1), the pair of ``u`` and ``other`` left out; separable."""
    dx, dy, price = s.grid.dx, s.grid.dy, 0.0
    for k in range(s.links.indptr[u], s.links.indptr[u + 1]):
        v = s.links.indices[k]
        if v != other:
            x, y = s.seats.cx[v], s.seats.cy[v]
            price += s.links.weights[k] * (dx[x1, x] - dx[x0, x] + dy[y1, y] - dy[y0, y])
    return price


@embedded
def _matrix_price(
    s: Direct, u: int, other: int, p: int, q: int, weights: FloatArray, matrix: FloatArray
) -> float:
    """The same on a distance matrix, from core ``p`` to ``q``, for one direction of asymmetric traffic or distances."""
    cols, price = s.grid.dx.shape[0], 0.0
    for k in range(s.links.indptr[u], s.links.indptr[u + 1]):
        v = s.links.indices[k]
        if v != other:
            r = np.int64(s.seats.cy[v]) * cols + np.int64(s.seats.cx[v])
            price += weights[k] * (matrix[q, r] - matrix[p, r])
    return price


@embedded
def swap_price(s: Direct, u: int, v: int, x0: int, y0: int, x1: int, y1: int) -> Any:
    """Change of cost if ``u`` goes from (x0, y0) to (x1, y1) and ``v`` (< 0: none) the other way."""
    indptr, indices, weights, out, back, matrix, across, symmetric = s.links
    if matrix.shape[0] == 0:
        price = _mesh_price(s, u, v, x0, y0, x1, y1)
        return price + _mesh_price(s, v, u, x1, y1, x0, y0) if v >= 0 else price
    p, q = y0 * s.grid.dx.shape[0] + x0, y1 * s.grid.dx.shape[0] + x1
    if symmetric:
        price = _matrix_price(s, u, v, p, q, weights, matrix)
        return price + _matrix_price(s, v, u, q, p, weights, matrix) if v >= 0 else price
    price = _matrix_price(s, u, v, p, q, out, matrix)
    price += _matrix_price(s, u, v, p, q, back, across)
    if v >= 0:
        price += _matrix_price(s, v, u, q, p, out, matrix)
        price += _matrix_price(s, v, u, q, p, back, across)
        for k in range(indptr[u], indptr[u + 1]):
            if indices[k] == v:
                price += (out[k] - back[k]) * (matrix[q, p] - matrix[p, q])
    return price


@embedded
def _price(s: Direct, u: int, v: int, x0: int, y0: int, x1: int, y1: int, limit: float) -> tuple[float, int]:
    """As :func:`.tables.table_price`."""
    indptr = s.links.indptr
    looked = indptr[u + 1] - indptr[u] + (indptr[v + 1] - indptr[v] if v >= 0 else 0)
    return swap_price(s, u, v, x0, y0, x1, y1), looked


@embedded
def _swap(s: Direct, u: int, v: int, x1: int, y1: int) -> int:
    """As :func:`.tables.make_swap`; no entries are touched."""
    cols = s.grid.dx.shape[0]
    put(u, v, np.int64(s.seats.cy[u]) * cols + np.int64(s.seats.cx[u]), y1 * cols + x1, cols, s.seats)
    return 0


@plain
def anneal_direct(
    s: Direct, order: IntArray, first: int, visits: int, tries: int, temperature: float, reach: int, rng: IntArray,
    quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """:func:`~nmsolve.heuristics.mapping.placement.proposals.anneal`, O(degree) per proposal."""
    anneal(s, _price, _swap, order, first, visits, tries, temperature, reach, rng, quantiles, stats)


@plain
def descend_direct(s: Direct, first: int, end: int, reach: int, least: float) -> int:
    """:func:`~nmsolve.heuristics.mapping.placement.proposals.descend`."""
    return descend(s, _price, _swap, first, end, reach, least)  # type: ignore[no-any-return]
