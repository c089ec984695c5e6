"""All mappings within a small migration budget: which nodes move, by rising number, and where to."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.graph import compress_rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, Int32Array, IntArray
from nmsolve.solvers.mapping.exact.data import ExactData

#: Most mappings that are looked at (seconds), and entries of a table of what nodes pay on cores (128 MiB per move).
MOST_MAPPINGS, MOST_ENTRIES = 2e8, 2**24
#: Entries of ``Moves.state``: the least cost, mappings looked at, cores with too much on them (by resource), pairs that share a
#: core and must not, nodes on cores that they may not use.
COST, SEEN, FULL, TOGETHER, ASTRAY = range(5)


def too_many_moves(problem: MappingProblem) -> str | None:
    """Say why not all mappings within the migration budget are looked at; None if they are."""
    migration, entries = problem.migration, problem.n * problem.cores
    if migration is None or not np.array_equal(migration.group, np.arange(problem.n)):
        return "groups of nodes that stay together"
    if entries > MOST_ENTRIES or _mappings(problem.n, problem.cores, migration.budget) > MOST_MAPPINGS:
        return f"more than {MOST_MAPPINGS:.0e} mappings within the migration budget"
    return None


def _mappings(n: int, cores: int, budget: int) -> int:
    return sum(comb(n, k) * (cores - 1) ** k for k in range(min(budget, n) + 1))


class Moves(NamedTuple):
    """The problem and a mapping that few nodes have moved in.

    Attributes
    ----------
    indptr, other, out, back : CSR over nodes, what each sends to and receives from others
    dense : (P, P) int64 distances; allowed : (n, P) bool; size : (n, R) int64; apart : (n, n) bool
    home : (n,) int64, cores of the reference; core : (n,) int64 as moved; free : (P, R) int64 room left
    linear : (B, n, P) int64 what every node pays on every core, per number of moves; cost : (B,) int64
    node, place : (B + 1,) int64, the node moved at every depth, and the next move to try (node times P plus core)
    best : (n,) int64 the cheapest legal mapping; state : (5,) int64
    """

    indptr: IntArray
    other: Int32Array
    out: IntArray
    back: IntArray
    dense: IntArray
    allowed: BoolArray
    size: IntArray
    apart: BoolArray
    home: IntArray
    core: IntArray
    free: IntArray
    linear: IntArray
    cost: IntArray
    node: IntArray
    place: IntArray
    best: IntArray
    state: IntArray


def new_moves(data: ExactData, limit: int) -> Moves:
    """A search for mappings below the cost ``limit``; the reference itself is looked at."""
    problem, whole = data.problem, np.int64
    assert problem.migration is not None
    home, budget = problem.migration.reference, min(problem.migration.budget, data.n)
    both = np.concatenate([data.tail, data.head]), np.concatenate([data.head, data.tail])
    none = np.zeros(data.edges, whole)
    indptr, other, out = compress_rows(data.n, *both, np.concatenate([data.weight, none]))
    back = compress_rows(data.n, *both, np.concatenate([none, data.weight]))[2]
    free = np.array(problem.capacity, whole)
    np.subtract.at(free, home, problem.sizes)
    same = data.apart & (home[:, None] == home)
    state = np.zeros(5, whole)
    state[[COST, FULL, TOGETHER]] = limit, (free < 0).sum(), np.triu(same, 1).sum()
    state[ASTRAY] = (~data.allowed[np.arange(data.n), home]).sum()
    linear = np.zeros((max(1, budget), data.n, data.cores), whole)
    row = np.repeat(np.arange(data.n), np.diff(indptr))
    at = home[other]
    np.add.at(
        linear[0],
        row,
        out.astype(whole)[:, None] * data.dense[:, at].T + back.astype(whole)[:, None] * data.dense[at],
    )
    cost = np.zeros(max(1, budget), whole)
    cost[0] = data.value(home)
    moves = Moves(
        indptr, other, out.astype(whole), back.astype(whole), np.ascontiguousarray(data.dense), data.allowed,
        np.ascontiguousarray(problem.sizes, whole), data.apart, np.array(home), np.array(home), free, linear, cost,
        np.zeros(budget + 1, whole), np.zeros(budget + 1, whole), np.array(home), state,
    )  # fmt: skip
    if not state[[FULL, TOGETHER, ASTRAY]].any() and cost[0] < limit:
        state[COST] = cost[0]
    return moves


@kernel
def move_from(m: Moves, first: int) -> None:
    """Look at all mappings within the budget in which ``first`` is the moved node of the lowest number."""
    n, cores = m.allowed.shape
    depth, most = 0, len(m.place) - 1
    m.place[0] = first * cores
    while True:
        if m.place[depth] == (n if depth else first + 1) * cores:
            if depth == 0:
                return
            depth -= 1
            seat(m, m.node[depth], m.home[m.node[depth]])
            continue
        u, p = m.place[depth] // cores, m.place[depth] % cores
        m.place[depth] += 1
        if p == m.home[u] or not m.allowed[u, p]:
            continue
        m.state[SEEN] += 1
        cost = m.cost[depth] + m.linear[depth, u, p] - m.linear[depth, u, m.home[u]]
        if depth + 1 == most and cost >= m.state[COST]:
            continue
        seat(m, u, p)
        if cost < m.state[COST] and m.state[FULL] == 0 and m.state[TOGETHER] == 0 and m.state[ASTRAY] == 0:
            m.state[COST] = cost
            copy_to(m.best, m.core)
        if depth + 1 == most:
            seat(m, u, m.home[u])
            continue
        m.node[depth] = u
        depth += 1
        m.cost[depth] = cost
        update(m, depth, u, p)
        m.place[depth] = (u + 1) * cores


@plain
def seat(m: Moves, u: int, p: int) -> None:
    """Put node ``u`` on core ``p``; count what breaks a rule."""
    c = m.core[u]
    m.state[ASTRAY] += int(m.allowed[u, c]) - int(m.allowed[u, p])
    for v in range(len(m.core)):
        if v != u and m.apart[u, v]:
            m.state[TOGETHER] += int(m.core[v] == p) - int(m.core[v] == c)
    for r in range(m.size.shape[1]):
        m.state[FULL] -= int(m.free[c, r] < 0) + int(m.free[p, r] < 0)
        m.free[c, r] += m.size[u, r]
        m.free[p, r] -= m.size[u, r]
        m.state[FULL] += int(m.free[c, r] < 0) + int(m.free[p, r] < 0)
    m.core[u] = p


@plain
def update(m: Moves, depth: int, u: int, p: int) -> None:
    """Fill ``linear`` of a depth after node ``u`` has moved to ``p``."""
    c = m.home[u]
    for v in range(len(m.core)):
        for q in range(len(m.dense)):
            m.linear[depth, v, q] = m.linear[depth - 1, v, q]
    for k in range(m.indptr[u], m.indptr[u + 1]):
        v, out, back = m.other[k], m.out[k], m.back[k]
        for q in range(len(m.dense)):
            m.linear[depth, v, q] += out * (m.dense[p, q] - m.dense[c, q]) + back * (
                m.dense[q, p] - m.dense[q, c]
            )
