"""The traffic through every router, from input to output, and how long packets hold them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.routing.loads import tally
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, links_between_chips
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import FloatArray


class Crossbars(NamedTuple):
    """Routers under some traffic. A port is a direction of travel (0 to 3), or 4 for the core itself.

    Attributes
    ----------
    rate : (P, 5, 5) packets per cycle from an input port to an output port
    entering : (P, 5) packets per cycle into an input port; less than they leave with where messages fork
    flits : (P, 5) cycles that the flits of a packet take over an output
    coming : (P, 5) the same over the link into an input port
    hold : (P, 5) least cycles between two packets of different inputs at an output: its flits, then a new allocation
    service : (P, 5) least cycles between two packets of the same input that go to an output: they are routed, too
    spacing : (P, 5) mean least cycles between packets that enter an input port, by the router before; 0 from the core
    """

    rate: FloatArray
    entering: FloatArray
    flits: FloatArray
    coming: FloatArray
    hold: FloatArray
    service: FloatArray
    spacing: FloatArray


def crossbars(
    machine: Machine, flows: Flows, routes: Routes, config: RouterConfig, per_cycle: float
) -> Crossbars:
    """Routers under ``flows``, whose rates times ``per_cycle`` are packets per cycle. InputError: a target is not reached."""
    size, links, ends = machine.size, routes.links, link_ends(machine)
    rate_of = flows.rate[routes.flow] * per_cycle
    before = np.where(routes.parent >= 0, links[routes.parent] % 4, 4) if len(links) else links
    rate = tally((links // 4 * 5 + before) * 5 + links % 4, rate_of, 25 * size)
    at = ends[links]
    entered = at * (flows.count + 1) + routes.flow  # every core is entered once by a flow
    wanted = flows.targets * (flows.count + 1) + np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    ending = np.isin(entered, wanted)
    if ending.sum() != len(flows.targets):
        raise InputError(
            "routes that do not reach every target of their flows once", "routes", "the routes of these flows"
        )
    rate += tally((at[ending] * 5 + links[ending] % 4) * 5 + 4, rate_of[ending], 25 * size)
    entering = tally(at * 5 + links % 4, rate_of, 5 * size).reshape(size, 5)
    entering[:, 4] = tally(flows.source, flows.rate * per_cycle, size)
    flits = np.full((size, 5), float(config.packet_flits))
    flits[:, :4][links_between_chips(machine).reshape(size, 4)] *= config.crossing_interval
    rate = rate.reshape(size, 5, 5)
    hold = flits + config.vc_allocation
    service = hold + config.routing
    share = rate / np.maximum(rate.sum(1), 1e-300)[:, None, :]
    spaced = hold + config.routing * (share**2).sum(1)
    spacing, coming = np.zeros((size, 5)), np.full((size, 5), float(config.packet_flits))
    link = np.flatnonzero(ends >= 0)
    spacing[ends[link], link % 4] = spaced[link // 4, link % 4]
    coming[ends[link], link % 4] = flits[link // 4, link % 4]
    return Crossbars(rate, entering, flits, coming, hold, service, spacing)
