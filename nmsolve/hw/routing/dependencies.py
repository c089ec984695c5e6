"""Channel dependencies: of given routes, and of a whole turn set whatever the traffic.

A message in the buffer of channel ``c`` that wants channel ``d`` next makes ``d`` a dependency of ``c``. Spikes are single
packets that fit into a channel's buffer and cores always take what arrives, so a packet waits for the next channel only, at
a branch for each of the next ones. A router that takes the channels of a branch one by one and holds them must take them in
the order of their numbers; then that adds no dependency that the numbers do not climb. Messages longer than a buffer:
:mod:`nmsolve.hw.routing.wormhole`.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.dateline import closing_links, dateline_channels
from nmsolve.hw.routing.numbering import ChannelGraph, channel_graph
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, IntArray


def channel_dependencies(machine: Machine, routes: Routes, siblings: bool = False) -> ChannelGraph:
    """Return which channel of the machine waits for which on the given routes; (4 * P * V,) channels ``V * link + v``.

    ``siblings``: the channels by which a message leaves one core are held and taken one by one in the order of their place
    (``V * link + v``) rather than of their numbers, as the routers of :mod:`nmsolve.hw.deadlock` do: each waits for the next.
    """
    used = np.zeros(4 * machine.size * routes.channels, bool)
    used[routes.channel] = True
    later = np.flatnonzero(routes.parent >= 0)
    before, after = routes.channel[routes.parent[later]], routes.channel[later]
    if siblings:
        order = np.lexsort((routes.channel, routes.parent, routes.flow))
        a, b = order[:-1], order[1:]
        same = (routes.flow[a] == routes.flow[b]) & (routes.parent[a] == routes.parent[b])
        before = np.concatenate([before, routes.channel[a[same]]])
        after = np.concatenate([after, routes.channel[b[same]]])
    return channel_graph(before, after, used)


def turn_dependencies(machine: Machine, turns: TurnSet, dateline: str | None = None) -> ChannelGraph:
    """Return which channel may wait for which if messages take any allowed turn over working links.

    ``dateline``: ``ring`` or ``crossings`` (:mod:`nmsolve.hw.routing.dateline`) with the virtual channels it needs, for
    routes that cross no dateline twice; None for one channel per link.
    """
    works, ends = link_works(machine), link_ends(machine)
    link = np.repeat(np.flatnonzero(works), 4)
    after = 4 * ends[link] + np.tile(np.arange(4), len(link) // 4)
    keep = works[after] & turns.allowed[ends[link], link % 4, after % 4]
    if dateline is None:
        return channel_graph(link[keep], after[keep], works)
    return _with_channels(machine, link[keep], after[keep], dateline)


def _with_channels(machine: Machine, before: AnyArray, after: AnyArray, dateline: str) -> ChannelGraph:
    """Return dependencies of links spread over the virtual channels; those that no message can enter are not in use."""
    count, closing = dateline_channels(machine, dateline), closing_links(machine)
    out: list[IntArray] = []
    turned = before % 4 // 2 != after % 4 // 2
    for v in range(count):
        kept = np.where(turned, 0, v) if dateline == "ring" else np.full(len(before), v)
        w = np.where(closing[after], 1 if dateline == "ring" else kept + 1, kept)
        again = closing[after] & (kept == 1) if dateline == "ring" else w == count  # crossed once more
        possible = ~again & ((v > 0) | ~closing[before])  # a dateline is never crossed on channel 0
        out.append(np.stack([before * count + v, after * count + w], 1)[possible])
    pairs = np.concatenate(out)
    lane = np.arange(count)[None, :]
    usable = link_works(machine)[:, None] & ((lane > 0) | ~closing[:, None])
    return channel_graph(pairs[:, 0], pairs[:, 1], usable.reshape(-1))
