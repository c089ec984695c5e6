"""One net's tree: opened into arrays by core, put on the machine and taken off it again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.routing.nets import Nets
from nmsolve.heuristics.routing.prices import Price, link_price
from nmsolve.model.compiled import inlined, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray


class RoutingState(NamedTuple):
    """Trees of all nets and what they load.

    ``tree`` in the slots of ``Nets``, parents first; ``size`` (N,) channels of a net; ``load`` (4 * P,) messages per step
    and link; ``use`` as ``Nets.ok``: messages per step that make a dependency; ``entries`` (P,) table entries;
    ``rank`` (C,) the order of channels.
    """

    tree: IntArray
    size: IntArray
    load: FloatArray
    use: FloatArray
    entries: IntArray
    rank: IntArray


class Open(NamedTuple):
    """The net at hand, by core (P,), and room for path searches.

    ``into`` channel by which the tree enters a core, ``depth`` links from the root, ``inside`` is ``tick[0]`` for cores of the
    tree, ``nodes`` its cores, parents first, ``cores[0]`` of them. ``flow`` is ``tick[1]`` where the flow at hand passes,
    ``goal`` is ``tick[2]`` for targets, ``outs`` bits of the directions in which the tree leaves a core. ``reach`` price to get
    the flow to a core of the tree. By label (level * C + channel): ``cost``, ``back``, ``seen``, ``queued``, ``queue``, ``hops``.
    ``seen`` is ``tick[3]`` for labels of this search. ``fresh`` a new tree, ``path`` a new branch. By leg: ``torn``.
    """

    into: IntArray
    depth: IntArray
    inside: IntArray
    nodes: IntArray
    flow: IntArray
    goal: IntArray
    outs: IntArray
    reach: FloatArray
    tick: IntArray
    cores: IntArray
    cost: FloatArray
    back: IntArray
    seen: IntArray
    queued: BoolArray
    queue: IntArray
    hops: IntArray
    fresh: IntArray
    path: IntArray
    torn: IntArray


def new_state(nets: Nets, rank: IntArray) -> RoutingState:
    """Nothing routed yet; ``rank`` is shared with the order of channels."""
    cores = len(nets.lead) // nets.ways
    return RoutingState(
        np.empty(int(nets.slot[-1]), np.int64), np.zeros(len(nets.root), np.int64), np.zeros(4 * cores),
        np.zeros(nets.ok.shape), np.zeros(cores, np.int64), rank,
    )  # fmt: skip


def new_open(nets: Nets) -> Open:
    """Room for one net."""
    cores, labels = len(nets.lead) // nets.ways, (nets.detour + 1) * len(nets.lead)

    def by_core() -> IntArray:
        return np.zeros(cores, np.int64)

    def by_label() -> IntArray:
        return np.zeros(labels, np.int64)

    return Open(
        by_core(), by_core(), by_core(), by_core(), by_core(), by_core(), by_core(), np.zeros(cores), np.zeros(4, np.int64),
        np.zeros(1, np.int64), np.zeros(labels), by_label(), by_label(), np.zeros(labels, bool),
        np.zeros(labels + cores + 1, np.int64), by_label(), by_core(), by_core(), np.zeros(len(nets.target), np.int64),
    )  # fmt: skip


@plain
def open_tree(nets: Nets, state: RoutingState, work: Open, n: int) -> None:
    """Read the stored tree of net ``n`` and mark its targets."""
    start_tree(nets, work, n)
    work.tick[2] += 1
    for leg in range(nets.legs[nets.flows[n]], nets.legs[nets.flows[n + 1]]):
        work.goal[nets.target[leg]] = work.tick[2]
    for i in range(nets.slot[n], nets.slot[n] + state.size[n]):
        grow(nets, work, state.tree[i])


@plain
def start_tree(nets: Nets, work: Open, n: int) -> None:
    """A tree with the root of net ``n`` alone."""
    work.tick[0] += 1
    root = nets.root[n]
    work.inside[root], work.depth[root], work.into[root], work.nodes[0] = work.tick[0], 0, -1, root
    work.outs[root] = 0
    work.cores[0] = 1


@inlined
def grow(nets: Nets, work: Open, c: int) -> None:
    """Hang channel ``c`` on the tree, whose start is in the tree."""
    u, v = c // nets.ways, nets.lead[c]
    work.into[v], work.depth[v], work.inside[v] = c, work.depth[u] + 1, work.tick[0]
    work.outs[v] = 0
    work.outs[u] |= 1 << (c // nets.vcs % 4)
    work.nodes[work.cores[0]] = v
    work.cores[0] += 1


@plain
def store_tree(nets: Nets, state: RoutingState, work: Open, n: int) -> None:
    """Write the open tree into the slot of net ``n``."""
    size = work.cores[0] - 1
    for i in range(size):
        state.tree[nets.slot[n] + i] = work.into[work.nodes[i + 1]]
    state.size[n] = size


@inlined
def needs_entry(nets: Nets, work: Open, u: int) -> bool:
    """True if the open tree needs a table entry in its core ``u``."""
    c = work.into[u]
    if nets.per_core:
        return bool(c >= 0)
    return bool(c < 0 or work.goal[u] == work.tick[2] or work.outs[u] != 1 << (c // nets.vcs % 4))


@plain
def step_price(nets: Nets, state: RoutingState, price: Price, c: int, j: int, e: int) -> float:
    """Price of dependency ``j`` of channel ``c``, which leads to channel ``e``; inf where there may be none."""
    if not nets.ok[c, j]:
        return np.inf
    if state.rank[c] < state.rank[e]:
        return 0.0
    return price.back if price.back >= 0.0 else np.inf


@inlined
def passes(work: Open, v: int) -> bool:
    """True if the flow at hand is led through core ``v`` of the open tree."""
    return bool(work.flow[v] == work.tick[1] and work.inside[v] == work.tick[0])


@plain
def put(nets: Nets, state: RoutingState, work: Open, n: int, sign: float) -> None:
    """Put the open tree on the machine (``sign`` 1.0) or take it off (-1.0)."""
    ways, into, passed, load, use = nets.ways, work.into, work.flow, state.load, state.use
    for f in range(nets.flows[n], nets.flows[n + 1]):
        work.tick[1] += 1
        now, rate = work.tick[1], sign * nets.rate[f]
        passed[nets.root[n]] = now
        for leg in range(nets.legs[f], nets.legs[f + 1]):
            v = nets.target[leg]
            while passed[v] != now:
                c = into[v]
                u = c // ways
                load[nets.link[c]] += rate
                if into[u] >= 0:
                    use[into[u], c - u * ways] += rate
                passed[v] = now
                v = u
    if nets.entries >= 0:
        for i in range(work.cores[0]):
            if needs_entry(nets, work, work.nodes[i]):
                state.entries[work.nodes[i]] += 1 if sign > 0.0 else -1


@plain
def cost_of(nets: Nets, state: RoutingState, work: Open, price: Price, n: int) -> float:
    """What it would cost to put the open tree on the machine; inf where it goes against the order and may not.

    Loads are as before afterwards.
    """
    ways, total = nets.ways, 0.0
    for f in range(nets.flows[n], nets.flows[n + 1]):
        work.tick[1] += 1
        work.flow[nets.root[n]] = work.tick[1]
        for leg in range(nets.legs[f], nets.legs[f + 1]):
            v = nets.target[leg]
            while work.flow[v] != work.tick[1]:
                c = work.into[v]
                u, link = c // ways, nets.link[c]
                total += link_price(state.load[link], nets.rate[f], price)
                state.load[link] += nets.rate[f]
                if work.into[u] >= 0:
                    total += step_price(nets, state, price, work.into[u], c % ways, c)
                work.flow[v] = work.tick[1]
                v = u
    for f in range(nets.flows[n], nets.flows[n + 1]):
        work.tick[1] += 1
        work.flow[nets.root[n]] = work.tick[1]
        for leg in range(nets.legs[f], nets.legs[f + 1]):
            lead_flow(nets, state, work, leg, -nets.rate[f])
    for i in range(work.cores[0] if nets.entries >= 0 else 0):
        u = work.nodes[i]
        if needs_entry(nets, work, u) and state.entries[u] >= nets.entries:
            total += price.entry
    return total


@plain
def lead_flow(nets: Nets, state: RoutingState, work: Open, leg: int, rate: float) -> None:
    """Lead the flow at hand along the tree to the leg's target; links it did not pass yet get load ``rate``."""
    v = nets.target[leg]
    while work.flow[v] != work.tick[1]:
        c = work.into[v]
        state.load[nets.link[c]] += rate
        work.flow[v] = work.tick[1]
        v = c // nets.ways
