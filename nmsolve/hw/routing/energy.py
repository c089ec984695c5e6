"""Where the energy of one step goes: by message, router and link, and by the core that pays.

The parts add up to the objective ``energy`` (:mod:`nmsolve.hw.energy`, docs/objectives.md). A message to another core costs
``message`` + ``router`` once per remote target core, paid by the sending core. Every link that it crosses costs ``link_x`` or
``link_y``, and ``crossing`` where it joins two chips, paid by the core it leaves, and ``router``, paid by the core it enters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import machine_distance
from nmsolve.hw.detours import link_weights
from nmsolve.hw.energy import UNIT_ENERGY, has_energy
from nmsolve.hw.routing.loads import flow_loads, route_loads, tally
from nmsolve.model.links import link_ends, links_between_chips
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import FloatArray

#: The parts of the energy of the network, in the order they are shown.
PARTS = ("message", "router", "link_x", "link_y", "crossing")


class ByCore:
    """Energy per step in parts: every array (P,) among the fields is one, by core."""

    @property
    def by_part(self) -> dict[str, float]:
        """Every part's sum over all cores."""
        return {name: float(part.sum()) for name, part in self._parts().items()}

    @property
    def by_core(self) -> FloatArray:
        """(P,) sum of all parts."""
        total: FloatArray = np.sum(list(self._parts().values()), axis=0)
        return total

    @property
    def total(self) -> float:
        """Sum over parts and cores."""
        return float(self.by_core.sum())

    def _parts(self) -> dict[str, FloatArray]:
        return {name: part for name, part in vars(self).items() if isinstance(part, np.ndarray)}


@dataclass(frozen=True, eq=False)
class EnergyParts(ByCore):
    """Energy per step, each part (P,) float64 by the core that pays.

    Attributes
    ----------
    message : sending, once per remote target core of a message
    router : the first router of a message (the sender's) and every router it enters
    link_x, link_y : links along rows and along columns, without what follows
    crossing : what links between chips cost more
    unit : ``pJ``, or ``units`` (Jin et al.: router 1, link 0.1 times its weight) where the machine names no energy
    """

    message: FloatArray
    router: FloatArray
    link_x: FloatArray
    link_y: FloatArray
    crossing: FloatArray
    unit: str


def energy_parts(machine: Machine, flows: Flows, routes: Routes | None = None) -> EnergyParts:
    """Energy of one step of ``flows`` over ``routes``; None: the routes of least energy, as the objective ``energy`` has them.

    On a machine given by a distance matrix every unit of distance costs a router and a ``link_x`` and the sending core pays all.

    Raises
    ------
    InputError : dead links leave no route
    """
    targets = np.diff(flows.indptr)
    sent = tally(flows.source, flows.rate * targets, machine.size)
    if machine.distance_matrix is not None:
        return _of_distances(machine, flows, sent)
    loads = flow_loads(machine, flows, "energy") if routes is None else route_loads(machine, flows, routes)
    return counts_energy(machine, sent, loads)


def counts_energy(machine: Machine, messages: FloatArray, links: FloatArray) -> EnergyParts:
    """Price of counted events, for example those of a simulation.

    Parameters
    ----------
    messages : (P,) messages that every core sent to other cores, a multicast message once per target core
    links : (4 * P,) messages over every link, a multicast message once
    """
    size, table = machine.size, _figures(machine)
    used, ends = np.flatnonzero(links), link_ends(machine)
    load, start, along = links[used], used // 4, used % 4 >= 2

    def leaving(energy: FloatArray) -> FloatArray:
        return tally(start, load * energy, size)

    # Jin et al.'s units go with the weight of a link
    weight: FloatArray = np.ones(len(used)) if has_energy(machine) else link_weights(machine)[used]
    entered = tally(ends[used], load * table["router"], size)
    return EnergyParts(
        message=messages * table["message"],
        router=messages * table["router"] + entered,
        link_x=leaving(np.where(along, 0.0, table["link_x"] * weight)),
        link_y=leaving(np.where(along, table["link_y"] * weight, 0.0)),
        crossing=leaving(np.where(links_between_chips(machine)[used], table["crossing"], 0.0)),
        unit=_unit(machine),
    )


def _figures(machine: Machine) -> dict[str, float]:
    """Return the energy of every part, 0 if not named; Jin et al.'s units if none is."""
    if has_energy(machine):
        return {name: machine.energy[name].value if name in machine.energy else 0.0 for name in PARTS}
    link = UNIT_ENERGY["link"]
    return {"message": 0.0, "router": UNIT_ENERGY["router"], "link_x": link, "link_y": link, "crossing": 0.0}


def _unit(machine: Machine) -> str:
    return "pJ" if has_energy(machine) else "units"


def _of_distances(machine: Machine, flows: Flows, sent: FloatArray) -> EnergyParts:
    """Return the parts where only distances are known."""
    table, none = _figures(machine), np.zeros(machine.size)
    flow = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    far = machine_distance(machine, "hops").matrix[flows.source[flow], flows.targets]
    hops = tally(flows.source[flow], flows.rate[flow] * far, machine.size)
    router = (sent + hops) * table["router"]
    return EnergyParts(
        sent * table["message"], router, hops * table["link_x"], none, none.copy(), _unit(machine)
    )
