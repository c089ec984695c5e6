"""Checks a numbering against routes or turns, in plain Python and from the definitions; no code shared with what made it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray


def numbering_complaint(machine: Machine, routes: Routes, numbering: IntArray) -> str | None:
    """Return why ``numbering`` (4 * P * V,) does not prove that packets on ``routes`` never wait in a ring; None if it does.

    Checked: every channel in use has a number >= 0, each next channel of a route a larger one. (At a branch a router may
    also take and hold channels one by one, in the order of their numbers, equal ones by place.)
    """
    v, wanted = routes.channels, 4 * machine.size * routes.channels
    if numbering.shape != (wanted,):
        return f"{numbering.size} channel numbers, {wanted} channels"
    number, channels, parents = numbering.tolist(), routes.channel.tolist(), routes.parent.tolist()
    flow = [f for f, size in enumerate(np.diff(routes.indptr).tolist()) for _ in range(size)]
    for f, channel, above in zip(flow, channels, parents, strict=True):
        held = channels[above] if above >= 0 else -1
        if number[channel] >= 0 and (above < 0 or number[channel] > number[held]):
            continue
        name = f"flow {f}: channel {channel % v} of link {channel // v}"
        if number[channel] < 0:
            return f"{name} has no number"
        return (
            f"{name} has number {number[channel]}, channel {held % v} of link {held // v} before it"
            f" {number[held]}"
        )
    return None


def _neighbours(machine: Machine, core: int) -> list[tuple[int, int]]:
    """Return (direction, core) of the links that leave a core."""
    row, col = divmod(core, machine.cols)
    out = []
    for d, (dr, dc) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
        r, c = row + dr, col + dc
        if machine.torus and machine.rows > 2:
            r %= machine.rows
        if machine.torus and machine.cols > 2:
            c %= machine.cols
        if 0 <= r < machine.rows and 0 <= c < machine.cols:
            out.append((d, r * machine.cols + c))
    return out


def packets_complaint(
    machine: Machine, flows: Flows, routes: Routes, numbering: IntArray, ejection: bool = True
) -> str | None:
    """Return why ``numbering`` does not prove that long messages cannot wait for each other in a ring; None if it does.

    ``numbering`` (pairs,) has a number for every entry of the routes and with ``ejection`` for every target of every
    flow (:mod:`nmsolve.hw.routing.wormhole`). It must grow from a message that waits for a channel to all that any other message
    holding it may wait for.
    """
    wanted = len(routes.channel) + ejection * len(flows.targets)
    if numbering.shape != (wanted,):
        return f"{numbering.size} numbers, {wanted} pairs of message and channel"
    ways = _ways(machine, flows, routes, ejection)  # of every entry: channels from the source to it
    rest: dict[int, list[tuple[int, int, int]]] = defaultdict(
        list
    )  # channel -> (least number waited for, packet, entry)
    for packet, entries in ways.items():
        for d, way in entries.items():
            later = [int(numbering[e]) for e in entries if e not in way]
            if later:
                rest[way[d]].append((min(later), packet, d))
    for holders in rest.values():
        holders.sort()
    for waiting, entries in ways.items():
        for d, way in entries.items():
            for least, packet, held in rest[way[d]][:2]:  # one of the two least is another packet's
                if packet != waiting and numbering[d] >= least:
                    return (
                        f"entry {d} waits with number {int(numbering[d])} for channel {way[d]}, which entry {held} may hold"
                        f" while it waits with number {least}"
                    )
    return None


def _ways(
    machine: Machine, flows: Flows, routes: Routes, ejection: bool
) -> dict[int, dict[int, dict[int, int]]]:
    """packet -> entry -> {entry: channel} of the way from the source to it, itself included."""
    ways: dict[int, dict[int, int]] = {}
    packet: dict[int, int] = {}
    out: dict[int, dict[int, dict[int, int]]] = defaultdict(dict)
    for f in range(routes.count):
        reached: dict[int, int] = {}
        for k in range(int(routes.indptr[f]), int(routes.indptr[f + 1])):
            above, link = int(routes.parent[k]), int(routes.channel[k]) // routes.channels
            ways[k] = (ways[above] if above >= 0 else {}) | {k: int(routes.channel[k])}
            packet[k] = packet[above] if above >= 0 else k
            out[packet[k]][k] = ways[k]
            reached[dict(_neighbours(machine, link // 4))[link % 4]] = k
        for j in range(int(flows.indptr[f]), int(flows.indptr[f + 1])) if ejection else ():
            entry, last = len(routes.channel) + j, reached[int(flows.targets[j])]
            out[packet[last]][entry] = ways[last] | {
                entry: 4 * machine.size * routes.channels + int(flows.targets[j])
            }
    return out
