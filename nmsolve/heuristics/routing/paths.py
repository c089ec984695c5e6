"""The cheapest new branch from a tree to a target, over channels and not only cores: what a turn costs depends on both.

Labels are (level, channel), where the level is how many links the route is longer than a shortest one. Every step makes a
route longer, so labels form no cycle, and a queue that takes improved labels again ends.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.routing.nets import Nets
from nmsolve.heuristics.routing.prices import Price, link_price
from nmsolve.heuristics.routing.trees import Open, RoutingState, grow, needs_entry, passes, step_price
from nmsolve.model.compiled import plain


@plain
def attach(nets: Nets, state: RoutingState, work: Open, price: Price, f: int, leg: int) -> bool:
    """Grow the open tree by the cheapest branch to the target of ``leg`` of flow ``f``; False if there is none."""
    if work.inside[nets.target[leg]] == work.tick[0]:
        return True
    if work.cores[0] == 1:
        work.reach[work.nodes[0]] = 0.0
    else:
        _reach(nets, state, work, price, nets.rate[f])
    _search(nets, state, work, price, f, leg)
    return bool(_branch(nets, work, leg))


@plain
def _reach(nets: Nets, state: RoutingState, work: Open, price: Price, rate: float) -> None:
    """What it costs to lead the flow to every core of the tree."""
    work.reach[work.nodes[0]] = 0.0
    for i in range(1, work.cores[0]):
        v = work.nodes[i]
        if passes(work, v):
            work.reach[v] = 0.0
            continue
        c = work.into[v]
        u = c // nets.ways
        x = work.reach[u] + link_price(state.load[nets.link[c]], rate, price)
        if work.into[u] >= 0:
            x += step_price(nets, state, price, work.into[u], c % nets.ways, c)
        work.reach[v] = x


@plain
def _search(nets: Nets, state: RoutingState, work: Open, price: Price, f: int, leg: int) -> None:
    """Labels of all channels from which the target can be reached in time; tree cores are ``-1 - core`` in the queue."""
    lead, ok, link, far, rank = nets.lead, nets.ok, nets.link, nets.far[nets.row[leg]], state.rank
    load, inside, into, queue = state.load, work.inside, work.into, work.queue
    cost, back, seen, queued, hops = work.cost, work.back, work.seen, work.queued, work.hops
    ways, channels, room, rate = nets.ways, len(nets.lead), len(queue), nets.rate[f]
    target, detour, shortest = nets.target[leg], nets.detour, nets.most[leg] - nets.detour
    tables = nets.entries >= 0
    work.tick[3] += 1
    tick, now, head, tail = work.tick[0], work.tick[3], 0, work.cores[0]
    for i in range(tail):
        queue[i] = -1 - work.nodes[i]
    while head != tail:
        label = queue[head]
        head = head + 1 if head + 1 < room else 0
        if label < 0:
            u = -1 - label
            c, base, far_out = into[u], work.reach[u], work.depth[u] + 1
            if base == np.inf:
                continue
        else:
            queued[label] = False
            c, base, far_out = label % channels, cost[label], hops[label] + 1
            u = lead[c]
            if u == target:
                continue
        for j in range(ways):
            e = u * ways + j
            v = lead[e]
            if v < 0 or far[v] < 0 or inside[v] == tick:
                continue
            level = far_out + far[v] - shortest
            if level > detour or (c >= 0 and not ok[c, j]):
                continue
            x = base + link_price(load[link[e]], rate, price)
            if c >= 0 and rank[c] > rank[e]:
                if price.back < 0.0:
                    continue
                x += price.back
            if tables:
                x += _entry_price(nets, state, work, price, label, c, e)
            if detour > 0 and _visited(nets, work, label, v):
                continue
            new = level * channels + e
            if x < np.inf and (seen[new] != now or x < cost[new]):
                cost[new], back[new], hops[new] = x, label, far_out
                if seen[new] != now or not queued[new]:
                    seen[new], queued[new] = now, True
                    queue[tail] = new
                    tail = tail + 1 if tail + 1 < room else 0


@plain
def _entry_price(
    nets: Nets, state: RoutingState, work: Open, price: Price, label: int, c: int, e: int
) -> float:
    """Price of the table entry that going on from channel ``c`` (or from the tree) over channel ``e`` needs."""
    if nets.per_core:
        return price.entry if state.entries[nets.lead[e]] >= nets.entries else 0.0
    u = e // nets.ways
    if state.entries[u] < nets.entries:
        return 0.0
    if label < 0:
        return 0.0 if needs_entry(nets, work, u) else price.entry
    return price.entry if c // nets.vcs % 4 != e // nets.vcs % 4 else 0.0


@plain
def _visited(nets: Nets, work: Open, label: int, v: int) -> bool:
    """True if the branch that ends in ``label`` has passed core ``v``."""
    while label >= 0:
        if nets.lead[label % len(nets.lead)] == v:
            return True
        label = work.back[label]
    return False


@plain
def _branch(nets: Nets, work: Open, leg: int) -> bool:
    """Hang the cheapest branch on the tree; False if there is none, or it passes a core twice."""
    best, least = -1, np.inf
    target, channels = nets.target[leg], len(nets.lead)
    for level in range(nets.detour + 1):
        for j in range(nets.ways):
            c = nets.enter[target, j]
            label = level * channels + c
            if c >= 0 and work.seen[label] == work.tick[3] and work.cost[label] < least:
                best, least = label, work.cost[label]
    if best < 0:
        return False
    size = 0
    while best >= 0:
        if size == len(work.path):
            return False
        work.path[size] = best % channels
        size += 1
        best = work.back[best]
    for i in range(size - 1, -1, -1):
        if work.inside[nets.lead[work.path[i]]] == work.tick[0]:
            return False
        grow(nets, work, work.path[i])
    return True
