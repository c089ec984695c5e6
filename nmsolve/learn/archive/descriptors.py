"""Counterparts by descriptors: numbers about nodes and their surroundings that change little with weights and some edges."""

from __future__ import annotations

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.learn.archive.smooth import near_pairs
from nmsolve.learn.archive.votes import mutual
from nmsolve.model.types import FloatArray, IntArray

#: Heaviest connections of a node, in either direction, that are looked at one by one; steps that surroundings reach.
HEAVIEST, STEPS = 3, 2
#: Beyond this many nodes, neighbours are sought along this many principal axes: along all, the search looks at nearly every pair.
MANY, AXES = 5000, 7


def described(old: Arcs, new: Arcs) -> IntArray:
    """Return (new.n,) counterparts whose descriptors are near each other, -1 for none. Many are wrong: votes sort them out."""
    both = np.concatenate([descriptors(old), descriptors(new)])
    both = (both - both.mean(axis=0)) / np.maximum(both.std(axis=0), 1e-9)
    if max(old.n, new.n) > MANY:
        values, axes = np.linalg.eigh(both.T @ both)
        both = both @ axes[:, np.argsort(-values)[:AXES]]
    return mutual(new.n, *near_pairs(both[: old.n], both[old.n :]))


def descriptors(graph: Arcs) -> FloatArray:
    """Return (n, 26) float64: numbers, loads and heaviest of the connections in both directions, and means over neighbours."""
    n = graph.n
    own = []
    for end in (graph.source, graph.target):
        count = np.bincount(end, minlength=n)
        load = np.bincount(end, graph.weight, minlength=n)
        own += [np.sqrt(count), np.log1p(load), *_heaviest(graph, end).T]
    out = [np.stack(own, axis=1)]
    sent = graph.adjacency
    heard = sent.T.tocsr()
    reach = [np.asarray(m.sum(axis=1)).ravel()[:, None] for m in (sent, heard)]
    now = out[0][:, :2], out[0][:, 2 + HEAVIEST : 4 + HEAVIEST]
    here = np.concatenate(now, axis=1)
    for _ in range(STEPS):
        here = np.concatenate(
            [(m @ here) / np.maximum(r, 1.0) for m, r in zip((sent, heard), reach, strict=True)], axis=1
        )
        out.append(here)
        here = (here[:, :4] + here[:, 4:]) / 2
    return np.concatenate(out, axis=1)


def _heaviest(graph: Arcs, end: IntArray) -> FloatArray:
    """Return (n, HEAVIEST) logarithms of the weights of the heaviest connections at ``end``, 0 where there are fewer."""
    order = np.lexsort((-graph.weight, end))
    rank = np.arange(len(order)) - np.searchsorted(end[order], end[order])
    few = rank < HEAVIEST
    out = np.zeros((graph.n, HEAVIEST))
    out[end[order][few], rank[few]] = np.log1p(graph.weight[order][few])
    return out
