"""Loads that no network can carry, whatever its queues: the most that links, buffers and the ports of cores can take.

Flits per cycle, for packets of P flits and V virtual channels of D flits (:class:`nmsolve.hw.noc.config.RouterConfig`):

* a link takes one flit every ``crossing_interval`` cycles between chips, else one per cycle;
* the buffer behind it (and that behind a core's port) serves its packets one after the other: a head is routed and gets a
  channel only when it is in front, so a virtual channel takes P flits in ``P + routing + vc_allocation`` cycles; and no
  more than D flits per round trip of a credit;
* the port into a core: a channel is free for the next packet when the tail has gone, P flits in ``P + vc_allocation`` cycles;
  never more than one flit per cycle.

What every flow must use is counted: all links of given routes; where routers choose, those up to the first choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.noc.layout import CORE
from nmsolve.hw.noc.tables import turn_tables
from nmsolve.hw.noc.traffic import Traffic
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, IntArray

#: What limits a load, in the order shown.
KINDS = ("links", "buffers", "injection", "ejection")


@dataclass(frozen=True)
class Cap:
    """The traffic may be multiplied by ``factor`` at most; ``kind``: of ``KINDS``; ``where`` the limit is met first."""

    kind: str
    factor: float
    where: str


def caps(
    machine: Machine, routing: Routes | TurnSet, traffic: Traffic, config: RouterConfig
) -> tuple[Cap, ...]:
    """Return one cap of every kind that the traffic uses."""
    p, v, cores = config.packet_flits, config.virtual_channels, machine.size
    rate, size = traffic.rate * p, np.diff(traffic.indptr)
    groups, channel, flow = _channels(machine, routing, traffic)
    used = np.bincount(channel, rate[flow], 4 * cores * groups)
    ends, link = link_ends(machine), np.arange(4 * cores)
    crosses = (ends >= 0) & (machine.chip_of[link // 4] != machine.chip_of[ends])
    wire = np.where(crosses, config.crossing, config.link)
    apart = np.where(crosses, config.crossing_interval, 1)
    serve = p / (p + config.routing + config.vc_allocation)
    trip = 2 * config.switch_allocation + config.switch_traversal + 2 * wire + config.credit
    buffers = v // groups * np.minimum(serve, config.buffer_flits / trip)
    roots = np.ones(traffic.count)
    if isinstance(routing, Routes):
        roots = np.maximum(np.bincount(routing.flow[routing.parent < 0], minlength=traffic.count), 1.0)
    sent = np.bincount(traffic.source, rate * roots, cores)
    taken = np.bincount(traffic.targets, np.repeat(rate, size), cores)
    room = config.buffer_flits / (2 * config.link + 1 + config.switch_allocation)
    out = v * p / (p + config.vc_allocation) if config.consumption == "shared" else 1.0
    limits: dict[str, tuple[AnyArray, AnyArray]] = {
        "links": (used.reshape(-1, groups).sum(1), 1.0 / apart),
        "buffers": (used, np.repeat(buffers, groups)),
        "injection": (sent, np.full(cores, min(1.0, v * min(serve, room)))),
        "ejection": (taken, np.full(cores, min(1.0, out))),
    }
    found = []
    for kind in KINDS:
        load, most = limits[kind]
        part = load / most
        if part.max(initial=0.0) > 0:
            k = int(part.argmax())
            per = {"links": 4, "buffers": 4 * groups}.get(kind, 1)
            end = int(ends[k * 4 // per]) if per > 1 else -1
            where = f"core {k // per}" + (f" -> {end}" if end >= 0 else "")
            found.append(Cap(kind, float(1.0 / part[k]), where))
    return tuple(found)


def _channels(
    machine: Machine, routing: Routes | TurnSet, traffic: Traffic
) -> tuple[int, IntArray, IntArray]:
    """Groups of virtual channels that routes tell apart, and (channel ``groups * link + group``, flow) of what must be used."""
    if isinstance(routing, Routes):
        return routing.channels, routing.channel, routing.flow
    tables = turn_tables(machine, routing, traffic.source, traffic.targets)
    ends, goal = link_ends(machine), traffic.targets.astype(np.int64)
    at, port = traffic.source.astype(np.int64), np.full(traffic.count, CORE)
    flow = np.arange(traffic.count)
    links, flows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    way = np.full(16, -1)
    way[[1, 2, 4, 8]] = range(4)  # one output alone
    while len(flow):
        d = way[tables.onward[tables.kind[at, goal], port]]
        go = (at != goal) & (d >= 0)
        flow, goal, at, d = flow[go], goal[go], at[go], d[go]
        links.append(4 * at + d)
        flows.append(flow)
        at, port = ends[4 * at + d].astype(np.int64), d
    return 1, np.concatenate(links), np.concatenate(flows)
