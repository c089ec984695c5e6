"""Least cost of a few nodes on a free grid, for those who want it as a row or a check."""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.mapping.bounds.subgraphs.oracle import MAX_NODES
from nmsolve.solvers.mapping.bounds.subgraphs.pool import solve_parts

#: Cells per row and column that stand for "no limit"; states after which a search is given up.
_FREE, _BUDGET = 10**6, 10**9


def free_grid_optimum(n: int, edges: AnyArray, weights: AnyArray) -> tuple[int, IntArray]:
    """Least ``sum w_uv (|x_u - x_v| + |y_u - y_v|)`` of ``n`` nodes on different cells of an unbounded grid.

    Parameters
    ----------
    n : nodes, at most 20; up to 12 take milliseconds, beyond it depends
    edges : (m, 2) node numbers; weights : (m,) whole numbers >= 0

    Returns
    -------
    The exact optimum, and (n, 2) int64 positions that reach it.

    Raises
    ------
    InputError : too many nodes, unknown ones, or weights that are negative or not whole
    """
    if not 1 <= n <= MAX_NODES:
        raise InputError(f"{n} nodes", "free grid", f"1..{MAX_NODES}")
    ends, given = np.asarray(edges, np.int64).reshape(-1, 2), np.asarray(weights, np.float64)
    if len(ends) != len(given) or (len(ends) and (ends.min() < 0 or ends.max() >= n)):
        raise InputError(
            "edges name unknown nodes, or are not as many as the weights", "free grid", f"0..{n - 1}"
        )
    if not (
        np.isfinite(given).all() and (given >= 0).all() and (given % 1 == 0).all() and given.sum() < 2**40
    ):
        raise InputError(
            "weights must be whole numbers >= 0, in all below 2**40", "free grid", "whole numbers"
        )
    w = np.zeros((n, n), np.int64)
    np.add.at(w, (ends[:, 0], ends[:, 1]), given.astype(np.int64))
    w = w + w.T
    np.fill_diagonal(w, 0)
    out = np.zeros((n, 2), np.int64)
    grid = np.array([1, 1, _FREE, _FREE], np.int64)
    cost, _, _ = solve_parts(w, grid, np.zeros((n, 2), np.int64), False, _BUDGET, out)
    return int(cost), out
