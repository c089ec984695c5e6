"""Annealing over mappings whose messages take best trees: each costs what the table says for its cores and where it starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.rng import below, uniform
from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.model.compiled import kernel, plain, plain_callee
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.joint.problem import JointProblem


class TreeState(NamedTuple):
    """Messages as pins (``pin_ptr``, ``pins``, source among them) with ``rate`` and ``source``, and by node (``of_ptr``, ``of``);
    the table ``cost`` (2^P, P) by bit set of cores and core of the source; limits as in ``MappingProblem``; ``core`` and
    ``load`` change.
    """

    pin_ptr: IntArray
    pins: IntArray
    rate: FloatArray
    source: IntArray
    of_ptr: IntArray
    of: IntArray
    cost: FloatArray
    sizes: IntArray
    capacity: IntArray
    domain_of: Int32Array
    domains: BoolArray
    apart_ptr: IntArray
    apart: Int32Array
    core: IntArray
    load: IntArray


def state_of(joint: JointProblem, cost: FloatArray, core: IntArray) -> TreeState:
    """The state of a legal mapping ``core`` (n,); ``cost`` (2^P, P), or (2^P,) if it is the same wherever a message starts."""
    problem, messages = joint.mapping, joint.messages
    sets = [sorted({m.source, *m.targets}) for m in messages]
    pins = np.array([u for s in sets for u in s], np.int64)
    length = np.array([len(s) for s in sets], np.int64)
    order = np.argsort(pins, kind="stable")
    of_ptr = np.zeros(problem.n + 1, np.int64)
    np.cumsum(np.bincount(pins, minlength=problem.n), out=of_ptr[1:])
    load = np.zeros(problem.capacity.shape, np.int64)
    np.add.at(load, core, problem.sizes)
    cost = np.ascontiguousarray(np.broadcast_to(cost.reshape(len(cost), -1), (len(cost), problem.cores)))
    return TreeState(
        np.concatenate([[0], np.cumsum(length)]).astype(np.int64), pins, joint.rate,
        np.array([m.source for m in messages], np.int64), of_ptr,
        np.repeat(np.arange(len(sets)), length)[order], cost, problem.sizes, problem.capacity, problem.domain_of,
        problem.domains, problem.apart[0], problem.apart[1], np.array(core, np.int64), load,
    )  # fmt: skip


@plain_callee
def cost_around(s: TreeState, u: int) -> float:
    """What the messages of node ``u`` cost."""
    total = 0.0
    for j in range(s.of_ptr[u], s.of_ptr[u + 1]):
        m, cores = s.of[j], 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            cores |= 1 << s.core[s.pins[i]]
        total += s.rate[m] * s.cost[cores, s.core[s.source[m]]]
    return total


@plain
def total_cost(s: TreeState) -> float:
    """What all messages cost."""
    total = 0.0
    for m in range(len(s.rate)):
        cores = 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            cores |= 1 << s.core[s.pins[i]]
        total += s.rate[m] * s.cost[cores, s.core[s.source[m]]]
    return total


@plain_callee
def _put(s: TreeState, u: int, q: int) -> float:
    """Move node ``u`` to core ``q``; the change of the cost."""
    before = cost_around(s, u)
    for r in range(s.sizes.shape[1]):
        s.load[s.core[u], r] -= s.sizes[u, r]
        s.load[q, r] += s.sizes[u, r]
    s.core[u] = q
    return float(cost_around(s, u) - before)


@kernel
def anneal(
    s: TreeState, now: float, hot: float, cold: float, tries: int, low: float, best: IntArray, rng: AnyArray
) -> tuple[float, float]:
    """``tries`` moves or swaps with temperatures from ``hot`` to ``cold``; the last cost and the least, kept in ``best``."""
    n, cores = len(s.core), len(s.capacity)
    for i in range(tries):
        heat = hot * (cold / hot) ** (i / tries)
        u, v = np.int64(below(rng, n)), np.int64(below(rng, n))
        p, q = s.core[u], s.core[v]
        if uniform(rng) < 0.5:
            q, v = np.int64(below(rng, cores)), np.int64(-1)
        if q == p:
            continue
        if v < 0 and not fits(s, u, q, -1):
            continue
        if v >= 0 and not (fits(s, u, q, v) and fits(s, v, p, u)):
            continue
        change = _put(s, u, q)
        if v >= 0:
            change += _put(s, v, p)
        if change <= -heat * np.log(uniform(rng) + 1e-300):
            now += change
            if now < low - 1e-9 * abs(low):
                low = now
                best[:] = s.core
        else:
            if v >= 0:
                _put(s, v, q)
            _put(s, u, p)
    return now, low
