"""Counterparts by votes: nodes whose neighbours correspond to each other correspond, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.learn.archive.arcs import Arcs, kept_arcs, overlap
from nmsolve.learn.archive.effort import VOTE, Effort
from nmsolve.model.types import FloatArray, IntArray

#: Rounds of votes at most, and rounds in a row that gain less than :data:`GAIN` after which there are no more.
ROUNDS, PATIENCE, GAIN = 30, 3, 0.002
#: Above this overlap one round without a gain is enough.
GOOD = 0.6
#: Rounds of mutual choice: those that were not wanted choose again among those left.
CHOICES = 12
#: Pairs with votes at most in a round; above, nodes only show their heaviest connections.
MOST_VOTES = 3e6
#: A pair of very unequal traffic counts this much less; one that was matched before counts a little more.
UNEQUAL, BEFORE = 0.5, 0.05
#: Pairs with less than this part of the votes of their row's best are not looked at.
PRUNED = 0.4


def voted(old: Arcs, new: Arcs, match: IntArray, effort: Effort) -> tuple[IntArray, float]:
    """Return better counterparts (new.n,) than ``match``, and their overlap: the best of all rounds.

    Each round forgets who corresponded and counts anew, so that early mistakes are outvoted.
    """
    a, b = (thinned(old), thinned(new)) if _pairs(old, new) > MOST_VOTES else (old, new)
    load_old, load_new = (np.log1p(np.asarray(g.traffic.sum(axis=1)).ravel()) for g in (old, new))
    best, found = match, overlap(old, new, match)
    vain = 0
    for _ in range(ROUNDS):
        if effort.over() or vain >= (1 if found > GOOD else PATIENCE):
            break
        row, col, score = votes(a, b, match)
        effort.add(VOTE * len(row))
        score -= UNEQUAL * np.minimum(1.0, np.abs(load_new[row] - load_old[col]))
        score += BEFORE * (match[row] == col)
        match = mutual(new.n, *_worth_a_look(row, col, score))
        share = overlap(old, new, match)
        vain = 0 if share > found + GAIN else vain + 1
        if share > found:
            best, found = match, share
    return best, found


def _pairs(old: Arcs, new: Arcs) -> float:
    """Return how many votes a round counts at most."""
    degree = [np.diff(g.traffic.indptr).astype(np.float64) for g in (old, new)]
    return float(np.sqrt((degree[0] ** 2).sum() * (degree[1] ** 2).sum()))


def thinned(graph: Arcs, kept: int = 8) -> Arcs:
    """Return the graph with the ``kept`` heaviest connections that every node sends."""
    order = np.lexsort((-graph.weight, graph.source))
    source = graph.source[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    chosen = np.sort(order[rank < kept])
    return Arcs(graph.n, graph.source[chosen], graph.target[chosen], graph.weight[chosen])


def votes(old: Arcs, new: Arcs, match: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs (node of new, node of old) and in how many neighbours they agree under ``match``."""
    from scipy.sparse import csr_array

    known = np.flatnonzero(match >= 0)
    pairs = csr_array((np.ones(len(known)), (known, match[known])), shape=(new.n, old.n))
    total: Any = new.adjacency @ pairs @ old.adjacency.T + new.adjacency.T @ pairs @ old.adjacency
    total = total.tocoo()
    return total.row.astype(np.int64), total.col.astype(np.int64), np.asarray(total.data, np.float64)


def _worth_a_look(row: IntArray, col: IntArray, score: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Leave out the pairs with far fewer votes than the best of their row: sorting them is most of the work."""
    if not len(row):
        return row, col, score
    best = np.full(int(row.max()) + 1, -np.inf)
    np.maximum.at(best, row, score)
    kept = score >= PRUNED * best[row]
    return row[kept], col[kept], score[kept]


def mutual(n: int, row: IntArray, col: IntArray, score: FloatArray) -> IntArray:
    """Return (n,) the column of every row, or -1: pairs that are each other's best, then those of whom is left, and so on."""
    order = np.lexsort((col, row, -score))
    row, col = row[order], col[order]
    match = np.full(n, -1, np.int64)
    columns = int(col.max(initial=-1)) + 1
    first_row, first_col, taken = np.empty(n, np.int64), np.empty(columns, np.int64), np.zeros(columns, bool)
    for _ in range(CHOICES):
        if not len(row):
            break
        at = np.arange(len(row))
        first_row[row[::-1]] = at[::-1]  # of equal indices the last assignment counts: the best entry
        first_col[col[::-1]] = at[::-1]
        chosen = (first_row[row] == at) & (first_col[col] == at)
        match[row[chosen]] = col[chosen]
        taken[col[chosen]] = True
        left = (match[row] < 0) & ~taken[col]
        row, col = row[left], col[left]
    return match


def supported(old: Arcs, new: Arcs, match: IntArray) -> IntArray:
    """Return ``match`` without the pairs that not a single connection supports."""
    kept = kept_arcs(old, new, match)
    support = np.bincount(new.source[kept], minlength=new.n) + np.bincount(new.target[kept], minlength=new.n)
    return np.where(support > 0, match, -1)
