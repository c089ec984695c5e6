"""Deadlock of messages longer than a channel's buffer (wormholes) with multicast trees.

Such a message holds many channels at once and advances on all its branches in lockstep: it may hold channel ``d`` while it
waits for channel ``e`` whenever ``e`` is not ``d`` or above it in its tree. A deadlock is a ring of messages, each waiting
for a channel that the next one holds, neighbours in the ring different. Numbers for pairs (message, channel waited for) that
grow along every (M, d) -> (M', e), where M' may hold ``d`` and wait for ``e``, M' other than M, exclude it. (Boppana,
Chalasani and Raghavendra 1998 show that consumption channels belong to it; for unicast alone the numbering of channels says
the same.)

What leaves the source over different links are wormhole packets of their own: the source keeps the whole message in its
memory and sends a copy for every link. So path-based multicast is free of deadlock where trees are not.

Entries: the K of the routes, then with ``ejection`` one per target of every flow in the order of ``flows.targets``: the one
channel by which a core takes messages from the network, number ``4 * P * V + core``. Without, cores take any number of
messages at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.routing.lengths import target_entries
from nmsolve.hw.routing.numbering import channel_graph, number_channels
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, IntArray

#: Most dependencies that are listed (16 bytes each, and they are sorted).
MOST = 2**26


class WormholePackets(NamedTuple):
    """All entries of routes and ejection: ``channel``, ``parent`` (index or -1), ``packet`` they belong to; (K + T,) each."""

    channel: IntArray
    parent: IntArray
    packet: IntArray


def wormhole_packets(
    machine: Machine, flows: Flows, routes: Routes, ejection: bool = True
) -> WormholePackets:
    """Entries of the routes, with those of the channels into the target cores if ``ejection``."""
    channel, parent = routes.channel, routes.parent
    if ejection:
        at = target_entries(machine, flows, routes)
        if (at < 0).any():
            raise InputError("a route does not reach its target", machine.name, "routes of these flows")
        channel = np.concatenate([channel, 4 * machine.size * routes.channels + flows.targets])
        parent = np.concatenate([parent, at])
    return WormholePackets(channel, parent, _packet_of_entry(parent))


@kernel
def _packet_of_entry(parent: IntArray) -> IntArray:
    """Number of the packet of every entry: entries without parent start one."""
    packet, count = np.empty(parent.shape[0], np.int64), 0
    for i in range(parent.shape[0]):
        if parent[i] < 0:
            packet[i] = count
            count += 1
        else:
            packet[i] = packet[parent[i]]
    return packet


def number_packets(packets: WormholePackets) -> tuple[IntArray, IntArray]:
    """Numbers of the pairs (message, channel waited for), one per entry, or a ring of entries that wait for each other.

    Returns
    -------
    numbering : (K + T,) int64, -1 for all if there is a cycle
    cycle : entries; empty if there is none

    Raises
    ------
    InputError : more than 67 million dependencies (large trees)
    """
    n = len(packets.channel)
    before, after = _holding(packets)
    into, out = _waiting(packets)
    graph = channel_graph(np.concatenate([before, into]), np.concatenate([after, out]), np.ones(4 * n, bool))
    number, cycle = number_channels(graph)
    if len(cycle):
        return number[:n], cycle[cycle < n]
    numbering: IntArray = np.argsort(np.argsort(number[:n])).astype(np.int64)
    return numbering, cycle


def _waiting(packets: WormholePackets) -> tuple[IntArray, IntArray]:
    """An entry waits for what any *other* packet with the same channel waits for.

    Nodes: ``e`` waits, ``n + e`` holds. Sorted by channel, node ``2 n + i`` represents the holders up to place ``i`` of the same
    channel, ``3 n + i`` for those from ``i`` on, so that all but one are reached over two nodes.
    """
    n = len(packets.channel)
    order = np.argsort(packets.channel, kind="stable")
    place = np.arange(n)
    same = packets.channel[order][1:] == packets.channel[order][:-1]  # place i and i + 1
    i = np.flatnonzero(same)
    before = [2 * n + place, 3 * n + place, 2 * n + i + 1, 3 * n + i, order[i + 1], order[i]]
    after = [n + order, n + order, 2 * n + i, 3 * n + i + 1, 2 * n + i, 3 * n + i + 1]
    return np.concatenate(before), np.concatenate(after)


def _holding(packets: WormholePackets) -> tuple[IntArray, IntArray]:
    """A packet that holds entry ``d`` may wait for every entry of its own that is not ``d`` or above it."""
    order = np.argsort(packets.packet, kind="stable")
    size = np.bincount(packets.packet, minlength=1)
    if float((size.astype(float) ** 2).sum()) > MOST:
        raise InputError(f"trees with {int(size.max())} channels", "", f"at most {MOST} pairs of channels")
    indptr = np.concatenate([[0], np.cumsum(size)])
    count = _pairs(order, indptr, packets.parent, np.zeros((0, 2), np.int64))
    pairs = np.empty((count, 2), np.int64)
    _pairs(order, indptr, packets.parent, pairs)
    return pairs[:, 0] + len(packets.channel), pairs[:, 1]


@kernel
def _pairs(order: IntArray, indptr: IntArray, parent: IntArray, out: IntArray) -> int:
    """Count the pairs and write them as far as ``out`` has room."""
    above: BoolArray = np.zeros(parent.shape[0], np.bool_)
    count = 0
    for w in range(indptr.shape[0] - 1):
        for i in range(indptr[w], indptr[w + 1]):
            d = order[i]
            e = d
            while e >= 0:
                above[e] = True
                e = parent[e]
            for j in range(indptr[w], indptr[w + 1]):
                if not above[order[j]]:
                    if count < out.shape[0]:
                        out[count, 0], out[count, 1] = d, order[j]
                    count += 1
            e = d
            while e >= 0:
                above[e] = False
                e = parent[e]
    return count
