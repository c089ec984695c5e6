"""Loads of links by the flows of a mapping: the traffic over each per step."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.cost import CoreDistance
from nmsolve.hw.kernels import walk_routes
from nmsolve.hw.links import Links, links_of
from nmsolve.model.errors import InputError
from nmsolve.model.graph import Rows
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import AnyArray, FloatArray, read_only

#: Orders of the two dimensions: along the row first, or along the column first.
ORDERS = ("xy", "yx")


def flow_loads(machine: Machine, flows: Flows, rule: str = "xy", quantity: str = "hops") -> FloatArray:
    """Return (4 * P,) load of every link under dimension-order routing; 0 where there is no link.

    A multicast flow loads every link of the union of its routes once.

    Parameters
    ----------
    rule : ``xy`` or ``yx``; with dead links only ``xy``, which then means the route trees of :mod:`nmsolve.hw.detours`
    quantity : ``hops``, ``energy`` or ``latency``: what a shorter way is measured in (on a torus and round dead links)

    Raises
    ------
    InputError : a machine given by a distance matrix, an unknown rule, ``yx`` with dead links
    """
    check_rule(machine, rule)
    links = links_of(machine, quantity)
    d, ends = links.distance, links.ends
    size = np.diff(flows.indptr)
    many, rate = size > 1, np.repeat(flows.rate, size)
    loads, cores = np.zeros(4 * machine.size), read_only(np.arange(machine.size))
    none = np.full(4 * machine.size, -1, np.int64), np.zeros((flows.count, 0))
    if rule == "xy":
        x, y = (d.x, d.y) if machine.faulty_links else _strict(d.x, d.y)
        rows = Rows(0, flows.indptr, flows.source, flows.targets, rate, many, flows.rate).fixed
        along = links._replace(distance=d._replace(x=read_only(x), y=read_only(y)))
        walk_routes(rows, rows.multicast, cores, along, none[0], loads, none[1])
        return loads
    # YX is XY on the machine mirrored at its diagonal: rows become columns, east becomes south.
    mirror = cores.reshape(machine.rows, machine.cols).T.ravel().argsort()
    link = 4 * np.repeat(mirror, 4) + np.tile([2, 3, 0, 1], machine.size)
    mirrored = np.full_like(ends, -1)
    mirrored[link] = np.where(ends >= 0, mirror[ends], -1)
    x, y = _strict(d.x, d.y)
    source, targets = (mirror[of].astype(np.int32) for of in (flows.source, flows.targets))
    rows = Rows(0, flows.indptr, source, targets, rate, many, flows.rate).fixed
    turned = CoreDistance(
        machine.cols, machine.rows, read_only(y), read_only(x), d.wrap_y, d.wrap_x, d.step, d.matrix
    )
    along = Links(turned, links.before, read_only(mirrored))
    walk_routes(rows, rows.multicast, cores, along, none[0], loads, none[1])
    out: FloatArray = loads[link]
    return out


def route_loads(machine: Machine, flows: Flows, routes: Routes) -> FloatArray:
    """Return (4 * P,) load of every link by any routes; the virtual channels of a link are added up."""
    return tally(routes.links, flows.rate[routes.flow], 4 * machine.size)


def tally(where: AnyArray, amount: AnyArray, size: int) -> FloatArray:
    """Return (size,) float64 sum of the ``amount`` that goes to every index."""
    out: FloatArray = np.bincount(where, amount, size).astype(
        np.float64
    )  # no amount at all would be whole numbers
    return out


def check_rule(machine: Machine, rule: str) -> None:
    """Raise InputError if ``rule`` is unknown or has no routes on the machine."""
    if rule not in ORDERS:
        raise InputError(f"unknown order {rule!r}", "", "one of " + ", ".join(ORDERS))
    require_links(machine)
    if rule == "yx" and machine.faulty_links:
        raise InputError("yx routes on a machine with dead links", machine.name, "xy (route trees)")


def _strict(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions of columns and rows that really grow; links may cost no energy, but a route has to know its direction."""
    out = []
    for line in (x, y):
        tiny = 1e-6 * (float(line[-1]) or 1.0) / max(len(line), 1)
        out.append(line if (np.diff(line) > 0).all() else line + tiny * np.arange(len(line)))
    return out[0], out[1]
