"""Is a deadlock possible on these routes? A checked numbering that excludes it, or a ring in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.check.routing.numbering import numbering_complaint, packets_complaint
from nmsolve.hw.routing.numbering import channel_dependencies, cycle_text, number_channels
from nmsolve.hw.routing.wormhole import WormholePackets, number_packets, wormhole_packets
from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import IntArray

#: ``packet``: a message fits into the buffer of one channel; ``wormhole``: it may fill any number of channels at once.
SWITCHING = ("packet", "wormhole")


@dataclass(frozen=True, eq=False)
class Proof:
    """What :func:`prove` found.

    Attributes
    ----------
    switching : of ``SWITCHING``, what it holds for
    numbering : (4 * P * V,) numbers of channels that grow along every dependency of packets; all -1 if these form a cycle
    packets : numbers for long multicast messages (:mod:`nmsolve.hw.routing.wormhole`); None for ``packet``, and where all flows
        are unicast, which need no more than ``numbering``
    cycle : a ring that can wait for each other, in words; "" if none can
    """

    switching: str
    numbering: IntArray
    packets: IntArray | None
    cycle: str

    @property
    def free(self) -> bool:
        """True if no deadlock is possible."""
        return not self.cycle


def prove(
    machine: Machine, flows: Flows, routes: Routes, switching: str = "packet", ejection: bool = False
) -> Proof:
    """Number the channels (for long multicast messages, pairs of message and channel) and check the numbers independently.

    ``ejection``: with ``wormhole``, a core takes one message at a time from the network, not any number of them.
    InputError for an unknown ``switching``.
    """
    if switching not in SWITCHING:
        raise InputError(f"unknown switching {switching!r}", "", "packet or wormhole")
    number, cycle = number_channels(channel_dependencies(machine, routes))
    if len(cycle):
        return Proof(switching, number, None, cycle_text(machine, cycle, routes.channels))
    _accepted(numbering_complaint(machine, routes, number))
    if switching == "packet" or not flows.multicast:
        return Proof(switching, number, None, "")
    packets = wormhole_packets(machine, flows, routes, ejection)
    order, ring = number_packets(packets)
    if len(ring):
        return Proof(switching, number, None, _ring_text(machine, flows, routes, packets, ring))
    _accepted(packets_complaint(machine, flows, routes, order, ejection))
    return Proof(switching, number, order, "")


def cover_long_messages(machine: Machine, flows: Flows, routes: Routes) -> tuple[IntArray | None, str]:
    """Number multicast messages of many flits on routes that are free of deadlock for packets, or say why that fails.

    The stricter rule comes first: cores take one message at a time. If only that can deadlock, they take any number.

    Returns
    -------
    packets : (pairs,) as in :class:`Proof`, checked; None where all flows are unicast or none are found
    reason : "" with numbers and for unicast; else the ring of messages that can wait for each other, or what is too large
    """
    reason = ""
    for ejection in (True, False):
        try:
            proof = prove(machine, flows, routes, "wormhole", ejection)
        except InputError as error:
            return None, str(error)
        if proof.free:
            return proof.packets, ""
        reason = proof.cycle
    return None, reason


def _accepted(complaint: str | None) -> None:
    if complaint is not None:
        raise BackendError(f"a numbering of channels does not hold: {complaint}")


def _ring_text(
    machine: Machine, flows: Flows, routes: Routes, packets: WormholePackets, ring: IntArray
) -> str:
    """Who waits for what: ``flow 0 (core 3 -> 1, 7) for link 4 -> 7, held by flow 1 ...``."""
    ends, entries = link_ends(machine), len(routes.channel)
    target_of = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    parts = []
    for k in ring.tolist():
        flow = int(routes.flow[k] if k < entries else target_of[k - entries])
        link = int(packets.channel[k]) // routes.channels
        what = (
            f"link {link // 4} -> {int(ends[link])}"
            if k < entries
            else f"core {flows.targets[k - entries]} to take it"
        )
        parts.append(f"flow {flow} ({flows.name(flow)}) waits for {what}")
    return ", held by ".join([*parts, parts[0].partition(" waits")[0]])
