"""Loads of links by the flows of a mapping: the traffic over each per step."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.kernels import walk_routes
from nmsolve.hw.links import links_of
from nmsolve.model.graph import Rows
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import AnyArray, FloatArray, read_only


def flow_loads(machine: Machine, flows: Flows, quantity: str = "hops") -> FloatArray:
    """Return (4 * P,) load of every link under XY routing, with dead links under the route trees; 0 where there is no link.

    A multicast flow loads every link of the union of its routes once.

    Parameters
    ----------
    quantity : ``hops``, ``energy`` or ``latency``: what a shorter way is measured in (on a torus and round dead links)

    Raises
    ------
    InputError : a machine given by a distance matrix
    """
    require_links(machine)
    links = links_of(machine, quantity)
    d = links.distance
    size = np.diff(flows.indptr)
    many, rate = size > 1, np.repeat(flows.rate, size)
    loads, cores = np.zeros(4 * machine.size), read_only(np.arange(machine.size))
    none = np.full(4 * machine.size, -1, np.int64), np.zeros((flows.count, 0))
    x, y = (d.x, d.y) if machine.faulty_links else _strict(d.x, d.y)
    rows = Rows(0, flows.indptr, flows.source, flows.targets, rate, many, flows.rate).fixed
    along = links._replace(distance=d._replace(x=read_only(x), y=read_only(y)))
    walk_routes(rows, rows.multicast, cores, along, none[0], loads, none[1])
    return loads


def route_loads(machine: Machine, flows: Flows, routes: Routes) -> FloatArray:
    """Return (4 * P,) load of every link by any routes; the virtual channels of a link are added up."""
    return tally(routes.links, flows.rate[routes.flow], 4 * machine.size)


def tally(where: AnyArray, amount: AnyArray, size: int) -> FloatArray:
    """Return (size,) float64 sum of the ``amount`` that goes to every index."""
    out: FloatArray = np.bincount(where, amount, size).astype(
        np.float64
    )  # no amount at all would be whole numbers
    return out


def _strict(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions of columns and rows that really grow; links may cost no energy, but a route has to know its direction."""
    out = []
    for line in (x, y):
        tiny = 1e-6 * (float(line[-1]) or 1.0) / max(len(line), 1)
        out.append(line if (np.diff(line) > 0).all() else line + tiny * np.arange(len(line)))
    return out[0], out[1]
