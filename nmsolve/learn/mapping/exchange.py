"""What a node would gain if it changed places with those on a core nearby."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import BoolArray, FloatArray, IntArray


@kernel
def exchanges(
    core: IntArray, reach: int, indptr: IntArray, other: IntArray, weight: FloatArray, across: FloatArray, down: FloatArray,
    may: BoolArray, kind: IntArray, size: IntArray, capacity: IntArray,
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:  # fmt: skip
    """Return what every move of up to ``reach`` rows and columns changes in traffic times distance.

    Moves are numbered row by row; there are K = (2 * reach + 1) squared, the one in the middle stays.

    Returns
    -------
    own : (n, K) the change for the node alone
    both : (n, K) also for those on the core, who come to where the node was: the mean over them; none comes if there is room
    target : (n, K) core, -1 where the node may not be
    cost : (n,) traffic times distance of every node
    """
    n, cols, side = len(core), len(across), 2 * reach + 1
    along, aside = np.zeros((n, side)), np.zeros((n, side))
    between = np.zeros((n, side * side))
    left, number = capacity.copy(), np.zeros(len(capacity), np.int64)
    for u in range(n):
        left[core[u]] -= size[u]
        number[core[u]] += 1
    begin = np.zeros(len(capacity) + 1, np.int64)
    begin[1:] = np.cumsum(number)
    here, fill = np.empty(n, np.int64), begin[:-1].copy()
    for u in range(n):
        here[fill[core[u]]] = u
        fill[core[u]] += 1
        row, col = core[u] // cols, core[u] % cols
        for k in range(indptr[u], indptr[u + 1]):
            r, c = core[other[k]] // cols, core[other[k]] % cols
            for d in range(side):
                along[u, d] += weight[k] * across[min(max(col + d - reach, 0), cols - 1), c]
                aside[u, d] += weight[k] * down[min(max(row + d - reach, 0), len(down) - 1), r]
            if abs(r - row) <= reach and abs(c - col) <= reach:
                # Two that change places stay as far apart as they were.
                move = (r - row + reach) * side + c - col + reach
                between[u, move] += 2 * weight[k] * (across[col, c] + down[row, r])
    own, both = np.zeros((n, side * side)), np.zeros((n, side * side))
    target = np.full((n, side * side), -1, np.int64)
    for u in range(n):
        row, col = core[u] // cols, core[u] % cols
        for a in range(side):
            for b in range(side):
                r, c, move = row + a - reach, col + b - reach, a * side + b
                if r < 0 or r >= len(down) or c < 0 or c >= cols or not may[kind[u], r * cols + c]:
                    continue
                p = r * cols + c
                target[u, move] = p
                own[u, move] = along[u, b] + aside[u, a] - along[u, reach] - aside[u, reach]
                both[u, move] = own[u, move]
                if p != core[u] and not (left[p] >= size[u]).all() and number[p]:
                    change = between[u, move]
                    for v in here[begin[p] : begin[p + 1]]:
                        change += along[v, side - 1 - b] + aside[v, side - 1 - a]
                        change -= along[v, reach] + aside[v, reach]
                    both[u, move] += change / number[p]
        if target[u, side * side // 2] < 0:
            target[u, side * side // 2] = core[u]  # to stay is always possible
    return own, both, target, along[:, reach] + aside[:, reach]
