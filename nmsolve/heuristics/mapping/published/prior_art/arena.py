"""What the four metaheuristics share: a mapping that knows its loads, and the change that sending a node somewhere makes.

All four search over mappings with the one elementary step *send node u to core q*: u moves there if there is room, else it
changes places with a node of q. With one node per core that is the exchange of two cores' contents, the step of the
published placement methods; with several it is their natural extension and keeps every capacity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below
from nmsolve.hw.cost import CoreDistance, core_distance, pair_distance
from nmsolve.hw.deltas import Arcs, arcs, pair_move_delta, pair_swap_delta
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray


class Arena(NamedTuple):
    """The problem as flat arrays: who talks to whom, distances, capacities, allowed cores.

    sizes (n, R) and capacity (cores, R) int64; domain (n,) row of domains (D, cores); free (P,) cores some node may use.
    """

    arcs: Arcs
    distance: CoreDistance
    sizes: IntArray
    capacity: IntArray
    domain: Int32Array
    domains: BoolArray
    free: IntArray


class Mapping(NamedTuple):
    """A mapping that can be changed: core (n,) int64, load (cores, R) int64, cost (1,) its objective."""

    core: IntArray
    load: IntArray
    cost: FloatArray


def new_arena(problem: MappingProblem) -> Arena:
    """Flatten a problem with a pairwise objective."""
    return Arena(
        arcs(problem.graph), core_distance(problem),
        problem.sizes, problem.capacity, problem.domain_of, problem.domains,
        np.flatnonzero(problem.domains.any(axis=0)).astype(np.int64),
    )  # fmt: skip


def new_mapping(a: Arena, core: IntArray) -> Mapping:
    """A feasible mapping with its loads and its objective (core is copied)."""
    load = np.zeros_like(a.capacity)
    np.add.at(load, core, a.sizes)
    core = core.astype(np.int64)
    return Mapping(core, load, np.array([cost_of(a, core)]))


def copied(m: Mapping) -> Mapping:
    """An independent copy."""
    return Mapping(m.core.copy(), m.load.copy(), m.cost.copy())


@kernel
def assign(to: Mapping, other: Mapping) -> None:
    """Make ``to`` the same mapping as ``other``."""
    to.core[:] = other.core
    to.load[:] = other.load
    to.cost[:] = other.cost


@plain
def cost_of(a: Arena, core: IntArray) -> float:
    """The objective: every edge's traffic times its distance."""
    indptr, other, sent, distance = a.arcs.indptr, a.arcs.other, a.arcs.sent, a.distance
    total = 0.0
    for u in range(len(core)):
        for k in range(indptr[u], indptr[u + 1]):
            if sent[k] != 0.0:
                total += sent[k] * pair_distance(core[u], core[other[k]], distance)
    return total


@plain
def fits(a: Arena, m: Mapping, u: int, q: int, leaving: int) -> bool:
    """True if core q may and can take node u once node ``leaving`` (-1: none) has gone."""
    if not a.domains[a.domain[u], q]:
        return False
    for r in range(a.sizes.shape[1]):
        load = m.load[q, r] + a.sizes[u, r]
        if leaving >= 0:
            load -= a.sizes[leaving, r]
        if load > a.capacity[q, r]:
            return False
    return True


@plain
def partner(a: Arena, m: Mapping, u: int, q: int, rng: AnyArray) -> int:
    """Who changes places when u is sent to q: -1 none (there is room), -2 it cannot be done, else a random node of q."""
    p = m.core[u]
    if p == q or not a.domains[a.domain[u], q]:
        return -2
    if fits(a, m, u, q, -1):
        return -1
    n = len(m.core)
    v = below(rng, n)
    for _ in range(n):
        if m.core[v] == q and fits(a, m, u, q, v) and fits(a, m, v, p, u):
            return int(v)
        v = v + 1 if v + 1 < n else 0
    return -2


@plain
def change(a: Arena, m: Mapping, u: int, q: int, v: int) -> float:
    """What sending u to q changes in the objective; v is its :func:`partner`."""
    if v < 0:
        return float(pair_move_delta(u, q, -1, a.arcs, m.core, a.distance))
    return float(pair_swap_delta(u, v, a.arcs, m.core, a.distance))


@plain
def send(a: Arena, m: Mapping, u: int, q: int, v: int, delta: float) -> None:
    """Send u to q, its partner v (-1: none) to where u was; ``delta`` is their :func:`change`."""
    p = m.core[u]
    for r in range(a.sizes.shape[1]):
        size = a.sizes[u, r]
        if v >= 0:
            size -= a.sizes[v, r]
        m.load[p, r] -= size
        m.load[q, r] += size
    m.core[u] = q
    if v >= 0:
        m.core[v] = p
    m.cost[0] += delta


@plain
def step_of(a: Arena, m: Mapping, rng: AnyArray) -> tuple[int, int, int]:
    """A random step ``(u, q, partner)``: half of them exchange two random nodes, half aim at a random core."""
    u = below(rng, len(m.core))
    if below(rng, 2) == 0:
        v = below(rng, len(m.core))
        p, q = m.core[u], m.core[v]
        if p == q or not (fits(a, m, u, q, v) and fits(a, m, v, p, u)):
            return u, q, -2
        return u, q, v
    q = a.free[below(rng, len(a.free))]
    if q == m.core[u] or not fits(a, m, u, q, -1):
        return u, q, -2
    return u, q, -1


@plain
def shake(a: Arena, m: Mapping, steps: int, rng: AnyArray) -> None:
    """Make random steps, good or bad."""
    for _ in range(steps):
        u, q, v = step_of(a, m, rng)
        if v > -2:
            send(a, m, u, q, v, change(a, m, u, q, v))


@plain
def descend(a: Arena, m: Mapping, steps: int, rng: AnyArray) -> None:
    """Try random steps, make those that gain (first improvement)."""
    for _ in range(steps):
        u, q, v = step_of(a, m, rng)
        if v > -2:
            delta = change(a, m, u, q, v)
            if delta < 0.0:
                send(a, m, u, q, v, delta)
