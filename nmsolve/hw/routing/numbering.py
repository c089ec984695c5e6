"""Which channel waits for which, and a numbering that grows along every dependency or a cycle that shows there is none.

A message in the buffer of channel ``c`` that wants channel ``d`` next makes ``d`` a dependency of ``c``. Spikes are single
packets that fit into a channel's buffer and cores always take what arrives, so a packet waits for the next channel only, at
a branch for each of the next ones. A router that takes the channels of a branch one by one and holds them must take them in
the order of their numbers; then that adds no dependency that the numbers do not climb. Messages longer than a buffer:
:mod:`nmsolve.hw.routing.wormhole`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import AnyArray, BoolArray, IntArray


class ChannelGraph(NamedTuple):
    """Dependencies: a message may hold channel ``c`` and wait for any of ``indices[indptr[c]:indptr[c + 1]]``.

    ``indptr`` (n + 1,) int64, ``indices`` int64 increasing in each row, ``used`` (n,) bool: channels that messages cross.
    """

    indptr: IntArray
    indices: IntArray
    used: BoolArray


def channel_graph(before: AnyArray, after: AnyArray, used: BoolArray) -> ChannelGraph:
    """The graph of dependencies ``before[i]`` -> ``after[i]`` (repeated ones count once) of ``len(used)`` channels."""
    n = len(used)
    key = np.sort(before.astype(np.int64) * n + after)
    key = key[np.diff(key, prepend=-1) > 0]
    indptr = np.searchsorted(key, np.arange(n + 1) * n)
    return ChannelGraph(indptr.astype(np.int64), key % max(n, 1), used)


def channel_dependencies(machine: Machine, routes: Routes) -> ChannelGraph:
    """Return which channel of the machine waits for which on the given routes; (4 * P * V,) channels ``V * link + v``."""
    used = np.zeros(4 * machine.size * routes.channels, bool)
    used[routes.channel] = True
    later = np.flatnonzero(routes.parent >= 0)
    return channel_graph(routes.channel[routes.parent[later]], routes.channel[later], used)


def number_channels(graph: ChannelGraph) -> tuple[IntArray, IntArray]:
    """Number the channels in use so that numbers grow along every dependency, or find a cycle.

    Returns
    -------
    numbering : (n,) int64, ``0, 1, ...`` for channels in use, -1 for the others (for all if there is a cycle)
    cycle : channels that wait for each other in a ring, each for the next, the last for the first; empty if there is none

    Notes
    -----
    Dally and Seitz 1987: such a numbering exists if and only if the dependencies have no cycle; then no ring of messages
    can wait for each other.
    """
    number: IntArray = np.full(len(graph.used), -1, np.int64)
    path = np.empty(len(graph.used), np.int64)
    first, last = _depth_first(graph.indptr, graph.indices, graph.used, number, path)
    if last < 0:
        return number, np.zeros(0, np.int64)
    number[:] = -1
    return number, path[first : last + 1].copy()


@kernel
def _depth_first(
    indptr: IntArray, indices: IntArray, used: BoolArray, number: IntArray, path: IntArray
) -> tuple[int, int]:
    """Number channels in reverse order of leaving; (first, last) place of a cycle on ``path``, or (0, -1)."""
    n = used.shape[0]
    place, turn = np.full(n, -1, np.int64), indptr[:-1].copy()
    free = 0
    for c in range(n):
        free += used[c]
    for start in range(n):
        if not used[start] or number[start] >= 0:
            continue
        top = 0
        path[0], place[start] = start, 0
        while top >= 0:
            c = path[top]
            if turn[c] == indptr[c + 1]:
                free -= 1
                number[c], place[c] = free, -1
                top -= 1
                continue
            k = indices[turn[c]]
            turn[c] += 1
            if place[k] >= 0:
                return place[k], top
            if number[k] < 0:
                top += 1
                path[top], place[k] = k, top
    return 0, -1


def cycle_text(machine: Machine, cycle: AnyArray, channels: int = 1) -> str:
    """A cycle of channels for people: ``core 0 -> 1 -> 5 -> 4 -> 0``, with the virtual channel where there are several."""
    ends = link_ends(machine)
    steps = [f"core {int(cycle[0]) // channels // 4}"]
    for c in cycle.tolist():
        steps.append(f"{int(ends[c // channels])}" + (f" (channel {c % channels})" if channels > 1 else ""))
    return " -> ".join(steps)
