"""The state of the search where cores hold several nodes (:mod:`packings`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.types import BoolArray, IntArray


class Packing(NamedTuple):
    """The problem's arrays and the state of the search.

    Attributes
    ----------
    traffic : (n, n) int64 directed weights; weight : (n, n) int64 traffic both ways
    dense : (P, P) int64 distances; cheap : the cheaper direction of each
    heavy : (n, n) int64, node u's others by falling weight; near : (P, P) int64, cores by rising distance from core p
    size : (n, R) int64 what nodes need; rising : (R, n) int64 nodes by rising need
    apart : (n, n) bool, nodes that never share a core
    maps : (G, P) int64 symmetries of the board that keep capacities and the first domain, the identity among them
    like : (P,) int64, the first of the cores that are interchangeable with core p while both are empty
    domain : (n + 1, n, P) bool, cores left to every node, per depth; free : (n + 1, P, R) int64 room of the cores, per depth
    linear : (n + 1, n, P) int64 per depth; fixed : (n + 1,) int64 per depth
    node : (n + 1,) int64, the node that is placed next, per depth
    child_core, child_bound : (n + 1, P) int64 per depth, by rising (doubled) bound
    children, turn : (n + 1,) int64 number of children per depth, and how many were entered
    core : (n,) int64 core of every node or -1; held : (P,) int64 nodes on every core
    best : (n,) int64 best mapping found
    state : (5,) int64 as in :class:`nmsolve.solvers.mapping.branch_bound.search.Tree`
    cost : (n, P) int64, slots : (P,) int64 work space
    grain : all model objectives are multiples of this (>= 1)
    """

    traffic: IntArray
    weight: IntArray
    dense: IntArray
    cheap: IntArray
    heavy: IntArray
    near: IntArray
    size: IntArray
    rising: IntArray
    apart: BoolArray
    maps: IntArray
    like: IntArray
    domain: BoolArray
    free: IntArray
    linear: IntArray
    fixed: IntArray
    node: IntArray
    child_core: IntArray
    child_bound: IntArray
    children: IntArray
    turn: IntArray
    core: IntArray
    held: IntArray
    best: IntArray
    state: IntArray
    cost: IntArray
    slots: IntArray
    grain: int


def new_packing(
    traffic: IntArray,
    dense: IntArray,
    allowed: BoolArray,
    size: IntArray,
    room: IntArray,
    apart: BoolArray,
    maps: IntArray,
    limit: int,
    grain: int,
) -> Packing:
    """A search that looks for mappings with model objective below ``limit``; nothing is expanded yet.

    Parameters
    ----------
    allowed : (n, P) bool, the cores that every node may use; room : (P, R) int64 what cores hold
    """
    (n, cores), whole = allowed.shape, np.int64
    weight, cheap = traffic + traffic.T, np.minimum(dense, dense.T)
    own = np.lexsort((~np.eye(cores, dtype=bool), cheap), axis=1)
    domain, free = np.zeros((n + 1, n, cores), bool), np.zeros((n + 1, *room.shape), whole)
    domain[0], free[0] = allowed, room
    return Packing(
        traffic=traffic,
        weight=weight,
        dense=dense,
        cheap=cheap,
        heavy=np.argsort(-weight, axis=1, kind="stable").astype(whole),
        near=own.astype(whole),
        size=np.ascontiguousarray(size, whole),
        rising=np.argsort(size.T, axis=1, kind="stable").astype(whole),
        apart=apart,
        maps=maps,
        like=interchangeable(dense, np.concatenate([allowed, room.T])),
        domain=domain,
        free=free,
        linear=np.zeros((n + 1, n, cores), whole),
        fixed=np.zeros(n + 1, whole),
        node=np.zeros(n + 1, whole),
        child_core=np.zeros((n + 1, cores), whole),
        child_bound=np.zeros((n + 1, cores), whole),
        children=np.zeros(n + 1, whole),
        turn=np.zeros(n + 1, whole),
        core=np.full(n, -1, whole),
        held=np.zeros(cores, whole),
        best=np.full(n, -1, whole),
        state=np.array([-1, 0, 2 * limit, 0, 0], whole),
        cost=np.zeros((n, cores), whole),
        slots=np.zeros(cores, whole),
        grain=grain,
    )


def interchangeable(dense: IntArray, kinds: IntArray) -> IntArray:
    """(P,) for every core the first one that it can be exchanged with: no distance (P, P) and no row of ``kinds`` (K, P), what
    cores are besides, tells them apart."""
    first = np.arange(len(dense))
    for q in range(len(dense)):
        for p in range(q):
            g = np.arange(len(dense))
            g[[p, q]] = q, p
            if first[p] == p and (kinds[:, p] == kinds[:, q]).all() and (dense[np.ix_(g, g)] == dense).all():
                first[q] = p
                break
    return first
