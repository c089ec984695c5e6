"""A second look at all mappings within a small migration budget: set by set of moved nodes, each cost added up anew."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import BoolArray, IntArray


def nothing_near(
    there: IntArray, far: IntArray, allowed: BoolArray, size: IntArray, room: IntArray, apart: BoolArray,
    reference: IntArray, budget: int, most: int, steps: float,
) -> bool | None:  # fmt: skip
    """Return True if no legal mapping within the budget costs ``most`` or less, False if one does; None if it takes too long.

    Parameters
    ----------
    there : (n, n) traffic, far : (k, k) distances, allowed : (n, k), size : (n, R), room : (k, R), apart : (n, n)
    reference : (n,) cores that nodes move from, -1 for one that is none of the k
    budget : nodes that may move; steps : traffic entries that may be looked at
    """
    n, k = allowed.shape
    if sum(comb(n, j) * (k - 1) ** j * (1 + j * n) for j in range(min(budget, n) + 1)) > steps:
        return None
    at = np.maximum(reference, 0)
    misplaced = (reference < 0) | ~allowed[np.arange(n), at]
    clash = np.argwhere(np.triu(apart & (reference[:, None] == reference) & (reference >= 0), 1))
    pairs = there * far[np.ix_(at, at)]
    for j in range(min(budget, n) + 1):
        for moved in combinations(range(n), j):
            chosen = np.zeros(n, bool)
            chosen[list(moved)] = True
            if (misplaced & ~chosen).any() or (~chosen[clash]).all(axis=1).any():
                continue
            left = room.copy()
            np.subtract.at(left, at[~chosen], size[~chosen])
            if (left < 0).any():
                continue
            kept = int(pairs[np.ix_(~chosen, ~chosen)].sum())
            which = np.array(moved, np.int64)
            if cheapest(there, far, allowed, size, left, apart, at.copy(), chosen, which, kept) <= most:
                return False
    return True


@kernel
def cheapest(
    there: IntArray, far: IntArray, allowed: BoolArray, size: IntArray, left: IntArray, apart: BoolArray,
    at: IntArray, chosen: BoolArray, which: IntArray, kept: int,
) -> int:  # fmt: skip
    """The least cost of a legal mapping that puts the nodes ``which`` anywhere; the others, which pay ``kept``, stay."""
    k, j, best = len(far), len(which), 2**62
    tried = np.zeros(j, np.int64)
    while True:
        for i in range(j):
            at[which[i]] = tried[i]
        legal, cost = True, kept
        for i in range(j):
            u = which[i]
            legal = legal and allowed[u, at[u]]
            for v in range(len(at)):
                if chosen[v] and v <= u:
                    legal = legal and (v == u or not (apart[u, v] and at[u] == at[v]))
                    continue
                legal = legal and not (apart[u, v] and at[u] == at[v])
                cost += there[u, v] * far[at[u], at[v]] + there[v, u] * far[at[v], at[u]]
        for i in range(j if legal else 0):
            for r in range(left.shape[1]):
                need = 0
                for o in range(j):
                    if tried[o] == tried[i]:
                        need += size[which[o], r]
                legal = legal and need <= left[tried[i], r]
        if legal and cost < best:
            best = cost
        i = 0
        while i < j and tried[i] == k - 1:
            tried[i] = 0
            i += 1
        if i == j:
            return best
        tried[i] += 1
