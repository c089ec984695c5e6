"""Channel dependencies of given routes.

A message in the buffer of channel ``c`` that wants channel ``d`` next makes ``d`` a dependency of ``c``. Spikes are single
packets that fit into a channel's buffer and cores always take what arrives, so a packet waits for the next channel only, at
a branch for each of the next ones. A router that takes the channels of a branch one by one and holds them must take them in
the order of their numbers; then that adds no dependency that the numbers do not climb. Messages longer than a buffer:
:mod:`nmsolve.hw.routing.wormhole`.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.numbering import ChannelGraph, channel_graph
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes


def channel_dependencies(machine: Machine, routes: Routes) -> ChannelGraph:
    """Return which channel of the machine waits for which on the given routes; (4 * P * V,) channels ``V * link + v``."""
    used = np.zeros(4 * machine.size * routes.channels, bool)
    used[routes.channel] = True
    later = np.flatnonzero(routes.parent >= 0)
    return channel_graph(routes.channel[routes.parent[later]], routes.channel[later], used)
