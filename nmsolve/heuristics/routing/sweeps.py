"""Sweeps over all nets: each is taken off the machine and rerouted along the cheapest links."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import below, shuffle, uniform
from nmsolve.heuristics.routing.nets import Nets
from nmsolve.heuristics.routing.paths import attach
from nmsolve.heuristics.routing.prices import Price
from nmsolve.heuristics.routing.trees import (
    Open,
    RoutingState,
    cost_of,
    grow,
    lead_flow,
    open_tree,
    put,
    start_tree,
    store_tree,
)
from nmsolve.hw.routing.growing_order import head_of
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, IntArray


@plain
def sweep(nets: Nets, state: RoutingState, work: Open, price: Price, order: IntArray, rng: AnyArray) -> int:
    """Reroute the nets in ``order``, one at a time; return how many lack a complete tree.

    A net of one leg takes the cheapest route there is. Of a net of several, some legs are torn out and led back in; the new
    tree stays if it is not dearer.
    """
    missing = 0
    for n in order:
        open_tree(nets, state, work, n)
        had = state.size[n] > 0
        if had:
            put(nets, state, work, n, -1.0)
        single = nets.legs[nets.flows[n + 1]] - nets.legs[nets.flows[n]] == 1
        _tear(nets, work, n, had and not single, rng)
        built = _rebuild(nets, state, work, price, n, rng)
        if built and (single or not had or _cheaper(nets, state, work, price, n)):
            store_tree(nets, state, work, n)
        else:
            open_tree(nets, state, work, n)
        if state.size[n] > 0:
            put(nets, state, work, n, 1.0)
        else:
            missing += 1
    return missing


@plain
def _tear(nets: Nets, work: Open, n: int, some: bool, rng: AnyArray) -> None:
    """Tear all legs of the open tree, or ``some``: a random part, at least one."""
    first, last = nets.legs[nets.flows[n]], nets.legs[nets.flows[n + 1]]
    part = uniform(rng) if some else 1.0
    for leg in range(first, last):
        work.torn[leg] = 1 if not some or uniform(rng) < part else 0
    work.torn[first + below(rng, last - first)] = 1
    work.tick[1] += 1
    work.flow[nets.root[n]] = work.tick[1]
    for leg in range(first, last):
        v = nets.target[leg]
        while work.torn[leg] == 0 and work.flow[v] != work.tick[1]:
            work.flow[v] = work.tick[1]
            v = work.into[v] // nets.ways
    size = 0
    for i in range(1, work.cores[0]):
        v = work.nodes[i]
        if work.flow[v] == work.tick[1]:
            work.fresh[size] = work.into[v]
            size += 1
    start_tree(nets, work, n)
    for i in range(size):
        grow(nets, work, work.fresh[i])


@kernel
def _rebuild(nets: Nets, state: RoutingState, work: Open, price: Price, n: int, rng: AnyArray) -> bool:
    """Lead the torn legs back into the open tree; False if one finds no way. Loads are as before afterwards."""
    first, last = nets.flows[n], nets.flows[n + 1]
    if nets.legs[last] - nets.legs[first] == 1:
        work.tick[1] += 1
        work.flow[nets.root[n]] = work.tick[1]
        return bool(attach(nets, state, work, price, first, nets.legs[first]))
    for f in range(first, last):
        _kept(nets, state, work, n, f, nets.rate[f])
    legs, built, turn = np.empty(nets.legs[last] - nets.legs[first], np.int64), True, below(rng, last - first)
    for i in range(last - first):
        f = first + (i + turn) % (last - first)
        _kept(nets, state, work, n, f, 0.0)
        count = 0
        for leg in range(nets.legs[f], nets.legs[f + 1]):
            if work.torn[leg] == 1:
                legs[count] = leg
                count += 1
        shuffle(rng, legs[:count])
        for k in range(count):
            if built and attach(nets, state, work, price, f, legs[k]):
                lead_flow(nets, state, work, legs[k], nets.rate[f])
                work.torn[legs[k]] = 0
            else:
                built = False
    for f in range(first, last):
        _kept(nets, state, work, n, f, -nets.rate[f])
    return built


@plain
def _kept(nets: Nets, state: RoutingState, work: Open, n: int, f: int, rate: float) -> None:
    """Lead flow ``f`` along its legs that are not torn, with load ``rate``."""
    work.tick[1] += 1
    work.flow[nets.root[n]] = work.tick[1]
    for leg in range(nets.legs[f], nets.legs[f + 1]):
        if work.torn[leg] == 0:
            lead_flow(nets, state, work, leg, rate)


@plain
def _cheaper(nets: Nets, state: RoutingState, work: Open, price: Price, n: int) -> bool:
    """True if the open tree costs no more than the stored one; the open tree stays open."""
    size = work.cores[0] - 1
    for i in range(size):
        work.fresh[i] = work.into[work.nodes[i + 1]]
    new = cost_of(nets, state, work, price, n)
    open_tree(nets, state, work, n)
    old = cost_of(nets, state, work, price, n)
    start_tree(nets, work, n)
    for i in range(size):
        grow(nets, work, work.fresh[i])
    return bool(new <= old and new < np.inf)


@plain
def recount(nets: Nets, state: RoutingState, work: Open) -> None:
    """Loads, dependencies and entries from the trees alone, so that rounding does not add up."""
    state.load[:] = 0.0
    state.use[:] = 0.0
    state.entries[:] = 0
    for n in range(len(nets.root)):
        if state.size[n] > 0:
            open_tree(nets, state, work, n)
            put(nets, state, work, n, 1.0)


@plain
def against(nets: Nets, state: RoutingState, least: float) -> int:
    """Dependencies in use (by more than ``least`` messages) that go against the order of channels."""
    count = 0
    for c in range(len(nets.lead)):
        for j in range(nets.ok.shape[1]):
            if state.use[c, j] > least and state.rank[c] > state.rank[head_of(c, j, nets.ways, nets.lead)]:
                count += 1
    return count
