"""Resources that other networks already use: the next network has what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nmsolve.hw.router_tables import router_entries
from nmsolve.hw.routes import has_routes
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons import AXONS_IN, AXONS_OUT, axon_usage
from nmsolve.model.mapping.problem import TABLE_ENTRIES
from nmsolve.model.types import IntArray


def beside(machine: Machine, networks: Sequence[tuple[LogicGraph, IntArray]]) -> Machine:
    """Return the machine with what ``networks``, (graph, core of every node) each, take of every core counted as held.

    Counted is every resource that the machine limits: sizes of nodes, else entries of axon and routers' tables. Routers on
    the way of a message count, too.

    Raises
    ------
    InputError : a network uses none of the resources that the machine limits, so it would be as if it were not there; or its
        nodes have kinds, and the machine limits kinds per core (kinds of several networks are not counted)
    """
    held = {r: amount.copy() for r, amount in machine.held.items()}
    for graph, core in networks:
        if machine.kinds_per_core is not None and graph.kinds is not None:
            raise InputError(
                f"{graph.name} has kinds of nodes, and {machine.name} a limit of them (kinds_per_core) that would count only"
                " those of the next network", machine.name, "one network, or networks without kinds",
            )  # fmt: skip
        taken = _taken(machine, graph, np.asarray(core, np.int64))
        if not any(amount.any() for amount in taken.values()):
            raise InputError(
                f"{graph.name} uses none of the resources that the machine limits ({', '.join(machine.capacity) or 'nothing'})",
                machine.name,
                "a capacity that limits both networks",
            )
        for r, amount in taken.items():
            held[r] = held.get(r, 0) + amount
    return replace(machine, held=held)


def _taken(machine: Machine, graph: LogicGraph, core: IntArray) -> dict[str, IntArray]:
    """Return (size,) per resource that the machine limits: what a mapped network takes of every core."""
    out: dict[str, IntArray] = {}
    for r in machine.capacity:
        if r in graph.resources:
            out[r] = np.zeros(machine.size, np.int64)
            np.add.at(out[r], core, graph.sizes[:, graph.resources.index(r)])
        elif r in (AXONS_IN, AXONS_OUT):
            out[r] = axon_usage(graph, machine.size, core)[r == AXONS_OUT]
        elif r == TABLE_ENTRIES and has_routes(machine):
            out[r] = router_entries(graph, machine, core).astype(np.int64)
    return out
