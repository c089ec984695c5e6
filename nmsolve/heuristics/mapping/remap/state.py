"""What the re-mapping kernels read and change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.common.room import put, room_of
from nmsolve.heuristics.mapping.nets.tables import ring_in, ring_out
from nmsolve.hw.deltas import deltas_of, net_delta, pair_move_delta, pair_swap_delta
from nmsolve.model.mapping.migration_fit import homes_of
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray


class Rules(NamedTuple):
    """What counts as moved: ``home`` (n,) the core that a node was on, -1 where it may not be there any more; ``weight``
    and the CSR ``home_ptr``, ``home_core``, ``home_count`` as in ``Migration``; ``budget`` user's nodes may move.
    ``places`` are the usable cores."""

    home: IntArray
    weight: IntArray
    home_ptr: IntArray
    home_core: IntArray
    home_count: IntArray
    budget: int
    places: IntArray
    cols: int
    mesh: bool


class Prices(NamedTuple):
    """Pairs that talk and core distances: arguments of :func:`nmsolve.hw.deltas.pair_move_delta`."""

    indptr: IntArray
    other: Int32Array
    sent: FloatArray
    received: FloatArray
    x: FloatArray
    y: FloatArray
    wrap_x: float
    wrap_y: float
    step: float
    matrix: FloatArray


class Trees(NamedTuple):
    """Messages charged by their route: the other arguments of :func:`nmsolve.hw.deltas.net_delta`."""

    row_ptr: IntArray
    row_ind: Int32Array
    indptr: IntArray
    source: Int32Array
    targets: Int32Array
    weights: FloatArray
    rate: FloatArray
    by_union: BoolArray
    step: float
    dist: FloatArray
    before: Int32Array


class State(NamedTuple):
    """A mapping that changes: the fields of ``Room``, rings of the nodes of each core (``head``, ``after``, ``before``);
    ``away``: the nodes not at home (the first ``tally[1]`` entries), ``spot`` (n,) where a node is in it, -1 if at home;
    ``tally[0]`` user's nodes moved."""

    sizes: IntArray
    capacity: IntArray
    load: IntArray
    domain_of: Int32Array
    domains: BoolArray
    apart_ptr: IntArray
    apart: Int32Array
    core: IntArray
    head: IntArray
    after: IntArray
    before: IntArray
    away: IntArray
    spot: IntArray
    tally: IntArray


def rules_of(problem: MappingProblem) -> Rules:
    """The rules of a problem with a migration budget."""
    migration = problem.migration
    assert migration is not None
    tables = (homes_of(problem)[0], migration.weight, *migration.homes)
    mesh = problem.machine.distance_matrix is None
    every: tuple[Any, ...] = (
        *map(np.array, tables), migration.budget, np.flatnonzero(problem.machine.usable), problem.machine.cols, mesh,
    )  # fmt: skip
    return Rules(*every)


def prices_of(problem: MappingProblem) -> tuple[Prices, Trees | None]:
    """What moves cost, for every objective that is a sum; no trees where it is one over pairs.

    Arrays are copied, because numba compiles anew for read-only ones.
    """
    d = deltas_of(problem)
    graph, ready, distance = problem.graph, d.ready, d.ready.distance
    around = (float(distance.wrap_x), float(distance.wrap_y), float(distance.step))
    pairs: tuple[Any, ...] = (
        *map(np.array, (*d.pairs, distance.x, distance.y)), *around, np.array(distance.matrix),
    )  # fmt: skip
    prices = Prices(*pairs)
    if not ready.by_union.any():
        return prices, None
    rows = (graph.indptr, graph.source, graph.targets, graph.weights, graph.rate, ready.by_union)
    unions = (float(ready.step), np.array(ready.dist), np.array(ready.before))
    every: tuple[Any, ...] = (*map(np.array, (*d.rows, *rows)), *unions)
    return prices, Trees(*every)


def new_state(problem: MappingProblem, rules: Rules, core: IntArray) -> State:
    """The state of the mapping ``core`` (n,), which is copied."""
    n, cores = problem.n, problem.cores
    state = State(
        *room_of(problem), np.full(cores, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64),
        np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    put_all(state, rules, np.ascontiguousarray(core, np.int64))
    return state


@nb.njit(cache=True, nogil=True)
def put_all(s: State, rules: Rules, core: IntArray) -> None:
    """Put every node on its core in ``core``; nodes may be on cores already."""
    for u in range(len(core)):
        if s.core[u] != core[u]:
            relocate(s, rules, u, core[u])


@nb.njit(cache=True, nogil=True)
def amount(rules: Rules, u: int, p: int) -> int:
    """Members of node ``u`` that have moved if it sits on core ``p``."""
    for k in range(rules.home_ptr[u], rules.home_ptr[u + 1]):
        if rules.home_core[k] == p:
            return rules.weight[u] - rules.home_count[k]  # type: ignore[no-any-return]
    return rules.weight[u]  # type: ignore[no-any-return]


@nb.njit(cache=True, nogil=True)
def relocate(s: State, rules: Rules, u: int, p: int) -> None:
    """Move node ``u`` to core ``p`` (from nowhere, if it is on none) and keep all tables right; rules are not asked."""
    q = s.core[u]
    if q >= 0:
        s.tally[0] -= amount(rules, u, q)
        ring_out(s, u, q)
    s.tally[0] += amount(rules, u, p)
    ring_in(s, u, p)
    put(s, u, p)
    if p == rules.home[u] and s.spot[u] >= 0:
        s.tally[1] -= 1
        last = s.away[s.tally[1]]
        s.away[s.spot[u]], s.spot[last] = last, s.spot[u]
        s.spot[u] = -1
    elif p != rules.home[u] and s.spot[u] < 0:
        s.away[s.tally[1]], s.spot[u] = u, s.tally[1]
        s.tally[1] += 1


@nb.njit(cache=True, nogil=True)
def change(s: State, c: Prices, t: Trees | None, cols: int, u: int, p: int, v: int) -> float:
    """Change of the objective if ``u`` goes to core ``p`` and ``v`` (-1: nobody) to where ``u`` is.

    Compiled without the net kernel where ``t`` is None.
    """
    if t is not None:
        return net_delta(  # type: ignore[no-any-return]
            u, p, v, t.row_ptr, t.row_ind, t.indptr, t.source, t.targets, t.weights, t.rate, t.by_union, s.core,
            cols, c.x, c.y, c.wrap_x, c.wrap_y, c.step, c.matrix, t.step, t.dist, t.before,
        )  # fmt: skip
    tail = (
        c.indptr,
        c.other,
        c.sent,
        c.received,
        s.core,
        cols,
        c.x,
        c.y,
        c.wrap_x,
        c.wrap_y,
        c.step,
        c.matrix,
    )
    if v >= 0:
        return pair_swap_delta(u, v, *tail)  # type: ignore[no-any-return]
    return pair_move_delta(u, p, -1, *tail)  # type: ignore[no-any-return]
