"""Routes for the flows that lost theirs; the others stay as they are wherever that is possible.

The order of channels is rebuilt from the dependencies that the remaining routes make, the most used first (:mod:`.order`).
Flows without a route, and those whose dependencies the order does not keep, are led along rising channels. For a flow that finds
no such way the order first takes the dependencies of its way along a spanning tree, up towards the root and then down (Schroeder
et al. 1991, Autonet): these never close a cycle among themselves, so in the end every flow has a way if the network is connected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.routing.forest import Forest, forest_of, two_way
from nmsolve.heuristics.routing.nets import Nets, mirror, nets_of, routes_of
from nmsolve.heuristics.routing.prices import Price, link_price
from nmsolve.heuristics.routing.trees import (
    Open,
    RoutingState,
    grow,
    new_open,
    new_state,
    open_tree,
    put,
    start_tree,
    store_tree,
)
from nmsolve.hw.routing.growing_order import new_order, rebuild
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Exponent 2^k of the load in the price of a link; what a unit of total load is worth in units of largest load; last passes.
POWER, TOTAL, PASSES = 5, 0.1, 3
#: Hottest links in a row that could not be relieved before it is left at that.
IDLE = 8


class MendSearch(NamedTuple):
    """Room for path searches.

    ``by``: working channels, numbers rising. By core: ``best`` price to get there, ``via`` which channel; by channel: ``back``,
    the one before it.
    """

    by: IntArray
    best: FloatArray
    via: IntArray
    back: IntArray


def mend(
    problem: RoutingProblem, routes: Routes, kept: BoolArray, number: IntArray, ceiling: float = np.inf
) -> tuple[Routes, IntArray] | None:
    """Routes of all flows, most of those with ``kept`` (F,) unchanged, and numbers of channels that grow along every route.

    Parameters
    ----------
    problem : turns must be free; routes may become longer than its ``detour``
    routes : a route for every flow that is kept; what it says of others is not looked at
    number : (4 * P * V,) numbers that grow along all kept routes (-1: no number)
    ceiling : routes over links with a larger load than this are changed, too, as long as that helps

    Returns
    -------
    Routes and numbers (4 * P * V,); None if links that work both ways do not connect all flows
    """
    forest = forest_of(problem.machine, two_way(problem.machine))
    source = np.repeat(problem.flows.source, np.diff(problem.flows.indptr))
    if (forest.tree[source] != forest.tree[problem.flows.targets]).any():
        return None
    longest = 4 * (problem.machine.rows + problem.machine.cols)
    nets = nets_of(RoutingStage(replace(problem, detour=longest), "max-link"))
    nets = nets._replace(ok=np.ascontiguousarray(nets.ok[:, : nets.ways]))
    turned = problem.form == "destination"
    old = _turned(problem, number) if turned else number
    rank = np.argsort(np.argsort(old, kind="stable"), kind="stable")
    state, work = new_state(nets, rank), new_open(nets._replace(detour=0))
    _load(problem, nets, state, work, routes, kept)
    changed = _until_all_led(nets, state, work, forest)
    search = _search_room(nets, rank)
    for _ in range(PASSES):
        _lead(nets, state, work, _price(nets, state), search, changed)
    _cool(nets, state, work, search, ceiling)
    out = np.where(nets.lead >= 0, rank, -1)
    return routes_of(problem, nets, state.tree, state.size), _turned(problem, out) if turned else out


def _until_all_led(nets: Nets, state: RoutingState, work: Open, forest: Forest) -> IntArray:
    """Lead all nets that the order does not keep, with more and more tree dependencies in it; returns those led."""
    order = new_order(state.rank, nets.ok.shape)
    heads = nets.lead[:, None] * nets.ways + np.arange(nets.ways)
    before = np.where(state.rank[:, None] < state.rank[np.maximum(heads, 0)], 1e-6, 0.0)
    must, forced = np.zeros(nets.ok.shape, bool), np.zeros(len(nets.root), bool)
    changed = np.zeros(len(nets.root), bool)
    dust = 1e-9 * float(nets.rate.max(initial=0.0))
    while True:
        wish = np.where(nets.ok, np.where(state.use > dust, state.use, before * dust), -1.0)
        wish[must] = np.inf
        rebuild(order, wish, nets.lead, nets.enter, nets.ways)
        _drop(nets, state, work)
        todo = np.flatnonzero(state.size == 0)
        todo = todo[np.argsort(-_net_rates(nets)[todo], kind="stable")]
        changed[todo] = True
        _lead(nets, state, work, _price(nets, state), _search_room(nets, state.rank), todo)
        left = np.flatnonzero(state.size == 0)
        _along_tree(nets, state, work, left[forced[left]], forest, must, True)
        left = left[~forced[left]]
        if not len(left):
            return np.flatnonzero(changed)
        forced[left] = True
        _along_tree(nets, state, work, left, forest, must, False)


def _cool(nets: Nets, state: RoutingState, work: Open, search: MendSearch, ceiling: float) -> None:
    """Reroute the nets on the hottest links, link by link, until none is above the ceiling or nothing helps."""
    idle, hottest = 0, float(state.load.max(initial=0.0))
    while idle < IDLE and hottest > ceiling:
        link = int(np.argsort(-state.load, kind="stable")[idle])
        if state.load[link] <= ceiling:
            return
        _lead(nets, state, work, _price(nets, state), search, _over(nets, state, link))
        now = float(state.load.max())
        idle = 0 if now < hottest else idle + 1
        hottest = min(now, hottest)


def _turned(problem: RoutingProblem, number: IntArray) -> IntArray:
    """Numbers of the channels of the mirrored machine, on which all routes are walked backwards."""
    back = mirror(problem)
    out, there = np.full_like(number, -1), np.flatnonzero((back >= 0) & (number >= 0))
    out[back[there]] = int(number.max(initial=0)) - number[there]
    return out


def _net_rates(nets: Nets) -> FloatArray:
    rates: FloatArray = np.add.reduceat(nets.rate, nets.flows[:-1]) if len(nets.root) else np.zeros(0)
    return rates


def _search_room(nets: Nets, rank: IntArray) -> MendSearch:
    alive = np.flatnonzero(nets.lead >= 0)
    cores = len(nets.lead) // nets.ways
    return MendSearch(
        alive[np.argsort(rank[alive])],
        np.empty(cores),
        np.empty(cores, np.int64),
        np.empty(len(rank), np.int64),
    )


def _price(nets: Nets, state: RoutingState) -> Price:
    """Prices by the load of the hottest link."""
    rate = float(nets.rate.mean()) if len(nets.rate) else 1.0
    scale = max(float(state.load.max(initial=0.0)), rate)
    return Price(scale, POWER, TOTAL * 2.0**POWER / scale, np.inf, 0.0, 0.0, 0.0)


def _load(
    problem: RoutingProblem, nets: Nets, state: RoutingState, work: Open, routes: Routes, kept: BoolArray
) -> None:
    """Put the nets on the machine whose flows are all kept."""
    first, last, channel = routes.indptr[:-1], routes.indptr[1:], routes.channel
    if nets.per_core:  # mirrored: the last channel comes first
        first, last = len(channel) - last, len(channel) - first
        channel = mirror(problem)[channel][::-1]
    whole = np.logical_and.reduceat(kept[nets.flow], nets.flows[:-1]) if len(nets.root) else np.zeros(0, bool)
    _put_kept(nets, state, work, whole, np.array(first), np.array(last), np.array(channel))


@plain
def _put_kept(
    nets: Nets,
    state: RoutingState,
    work: Open,
    whole: BoolArray,
    first: IntArray,
    last: IntArray,
    channel: IntArray,
) -> None:
    for n in range(len(nets.root)):
        if not whole[n]:
            continue
        start_tree(nets, work, n)
        for f in range(nets.flows[n], nets.flows[n + 1]):
            for i in range(first[nets.flow[f]], last[nets.flow[f]]):
                if work.inside[nets.lead[channel[i]]] != work.tick[0]:
                    grow(nets, work, channel[i])
        store_tree(nets, state, work, n)
        open_tree(nets, state, work, n)
        put(nets, state, work, n, 1.0)


@kernel
def _over(nets: Nets, state: RoutingState, link: int) -> IntArray:
    """Nets with a channel of the link."""
    out, count = np.empty(len(nets.root), np.int64), 0
    for n in range(len(nets.root)):
        for i in range(nets.slot[n], nets.slot[n] + state.size[n]):
            if nets.link[state.tree[i]] == link:
                out[count] = n
                count += 1
                break
    return out[:count]


@plain
def _drop(nets: Nets, state: RoutingState, work: Open) -> None:
    """Take the nets off that go against the order."""
    for n in range(len(nets.root)):
        against = False
        open_tree(nets, state, work, n)
        for i in range(1, work.cores[0]):
            c = work.into[work.nodes[i]]
            before = work.into[c // nets.ways]
            against = against or (before >= 0 and state.rank[before] > state.rank[c])
        if against:
            put(nets, state, work, n, -1.0)
            state.size[n] = 0


@plain
def _lead(
    nets: Nets, state: RoutingState, work: Open, price: Price, search: MendSearch, todo: IntArray
) -> None:
    """Reroute the nets ``todo`` within the order; those without a route keep the old one."""
    for n in todo:
        open_tree(nets, state, work, n)
        had, built = state.size[n] > 0, True
        if had:
            put(nets, state, work, n, -1.0)
        start_tree(nets, work, n)
        for f in range(nets.flows[n], nets.flows[n + 1]):
            for leg in range(nets.legs[f], nets.legs[f + 1]):
                built = built and _attach(nets, state, work, price, search, nets.rate[f], nets.target[leg])
        if built and work.cores[0] - 1 <= nets.slot[n + 1] - nets.slot[n]:
            store_tree(nets, state, work, n)
        open_tree(nets, state, work, n)
        if state.size[n] > 0:
            put(nets, state, work, n, 1.0)


@plain
def _attach(
    nets: Nets, state: RoutingState, work: Open, price: Price, search: MendSearch, rate: float, target: int
) -> bool:
    """Hang the cheapest branch to ``target`` on the open tree; False if there is none.

    One look at all channels in rising order: what leads to a core by smaller numbers is known when a channel leaves it. A
    branch never comes back to a core, because leaving it the first time was cheaper.
    """
    into, inside, tick, rank, lead = work.into, work.inside, work.tick[0], state.rank, nets.lead
    best, via = search.best, search.via
    if inside[target] == tick:
        return True
    best[:] = np.inf
    for i in range(work.cores[0]):
        best[work.nodes[i]] = 0.0
    for e in search.by:
        u, v = e // nets.ways, lead[e]
        if best[u] == np.inf or inside[v] == tick:
            continue
        if inside[u] == tick:
            c = into[u]
            if c >= 0 and (rank[c] > rank[e] or not nets.ok[c, e % nets.ways]):
                continue
        else:
            c = via[u]
        x = best[u] + link_price(state.load[nets.link[e]], rate, price)
        if x < best[v]:
            best[v], via[v], search.back[e] = x, e, -1 if inside[u] == tick else c
    if best[target] == np.inf:
        return False
    e, n = via[target], 0
    while e >= 0:
        work.path[n] = e
        e = search.back[e]
        n += 1
    for i in range(n - 1, -1, -1):
        grow(nets, work, work.path[i])
    return True


@plain
def _along_tree(
    nets: Nets, state: RoutingState, work: Open, todo: IntArray, forest: Forest, must: BoolArray, store: bool
) -> None:
    """The ways of nets along the spanning tree: their dependencies to ``must``, or with ``store`` the nets led so."""
    for n in todo:
        start_tree(nets, work, n)
        for leg in range(nets.legs[nets.flows[n]], nets.legs[nets.flows[n + 1]]):
            a, b, down = nets.root[n], nets.target[leg], 0
            while a != b:
                if forest.place[a] > forest.place[b]:
                    up = forest.above[a]
                    _hang(nets, work, a, up)
                    a = up
                else:
                    work.path[down] = b
                    down += 1
                    b = forest.above[b]
            for i in range(down - 1, -1, -1):
                _hang(nets, work, forest.above[work.path[i]], work.path[i])
        if store:
            store_tree(nets, state, work, n)
            open_tree(nets, state, work, n)
            put(nets, state, work, n, 1.0)
            continue
        for i in range(1, work.cores[0]):
            c = work.into[work.nodes[i]]
            if work.into[c // nets.ways] >= 0:
                must[work.into[c // nets.ways], c % nets.ways] = True


@plain
def _hang(nets: Nets, work: Open, u: int, v: int) -> None:
    """Hang the first channel from ``u`` to ``v`` on the tree."""
    if work.inside[v] == work.tick[0]:
        return
    for j in range(nets.ways):
        if nets.lead[u * nets.ways + j] == v:
            grow(nets, work, u * nets.ways + j)
            return
