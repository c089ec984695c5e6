"""Colour refinement of two graphs at once: nodes whose surroundings differ get different colours."""

from __future__ import annotations

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.model.types import AnyArray, IntArray

#: Rounds of refinement at most: surroundings up to this many steps away.
ROUNDS = 24
#: After this many rounds, fewer unique colours mean that what has changed spreads; before, that a regular graph has few yet.
SURE = 3
#: Nodes that are paired at will, one after the other, where colours alone cannot tell them apart.
PAIRED = 64
_A, _B, _C = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mixed(x: AnyArray) -> AnyArray:
    """Return 64-bit hashes of 64-bit numbers (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * _B
    x = (x ^ (x >> np.uint64(27))) * _C
    return np.asarray(x ^ (x >> np.uint64(31)))


def refined(graph: Arcs, colour: AnyArray, weighted: bool) -> AnyArray:
    """Return (n,) uint64 colours after one round: own colour, and colours of all neighbours with direction and weight.

    The order of the neighbours does not matter: their hashes are added modulo 2^64.
    """
    label = _mixed(graph.weight.view(np.uint64)) if weighted else np.zeros(len(graph.source), np.uint64)
    out = np.zeros(graph.n, np.uint64)
    np.add.at(out, graph.source, _mixed(colour[graph.target] * _A + label))
    into = np.zeros(graph.n, np.uint64)
    np.add.at(into, graph.target, _mixed(colour[graph.source] * _B + label + _C))
    return _mixed(colour * _C + _mixed(out + _A) + into * _A)


def unique_pairs(old: AnyArray, new: AnyArray) -> tuple[IntArray, IntArray]:
    """Return the nodes of both graphs whose colour exactly one node of either has, as two arrays of equal length."""
    a, at, counts_a = np.unique(old, return_index=True, return_counts=True)
    b, to, counts_b = np.unique(new, return_index=True, return_counts=True)
    _, i, j = np.intersect1d(a[counts_a == 1], b[counts_b == 1], return_indices=True)
    return at[counts_a == 1][i], to[counts_b == 1][j]


def seeds(old: Arcs, new: Arcs) -> IntArray:
    """Return (new.n,) counterparts by unique colours of any round, -1 where there is none; later rounds count more.

    Colours with weights come before those without: weights say more, unless all of them have changed.
    """
    match = np.full(new.n, -1, np.int64)
    for weighted in (False, True):
        a, b = np.zeros(old.n, np.uint64), np.zeros(new.n, np.uint64)
        before = 0
        for done in range(ROUNDS):
            a, b = refined(old, a, weighted), refined(new, b, weighted)
            i, j = unique_pairs(a, b)
            taken = np.isin(match, i)
            match[taken] = -1
            match[j] = i
            if len(i) == new.n or (done >= SURE and len(i) <= before // 2):
                break  # what has changed is everywhere by now
            before = max(before, len(i))
    return match


def exact(old: Arcs, new: Arcs) -> IntArray | None:
    """Return (n,) counterparts under which both graphs are the same, or None if none were found.

    Where nodes of one colour are left, one of either graph is paired at will and colours are refined again.
    """
    if old.n != new.n or len(old.source) != len(new.source):
        return None
    a, b = np.zeros(old.n, np.uint64), np.zeros(new.n, np.uint64)
    for step in range(PAIRED):
        kinds = 0
        for _ in range(ROUNDS):
            a, b = refined(old, a, True), refined(new, b, True)
            found = len(np.unique(a))
            if found == kinds:
                break
            kinds = found
        order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
        if not np.array_equal(a[order_a], b[order_b]):
            return None
        if kinds == old.n:
            break
        colours, count = np.unique(a, return_counts=True)
        several = np.flatnonzero(count > 1)
        chosen = colours[several[np.argmin(count[several])]]
        fresh = _mixed(np.full(1, step + 1, np.uint64))[0]
        a[np.flatnonzero(a == chosen)[0]] = fresh
        b[np.flatnonzero(b == chosen)[0]] = fresh
    match = np.empty(new.n, np.int64)
    match[np.argsort(b, kind="stable")] = np.argsort(a, kind="stable")
    return match
