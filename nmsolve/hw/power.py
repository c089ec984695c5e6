"""What chips draw while a step lasts, and what its neurons and synapses cost wherever they are (docs/objectives.md, *Energy of a
step*)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.energy import has_energy, stated
from nmsolve.hw.routing.loads import tally
from nmsolve.hw.step_time import has_step_time, neurons_of
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import LARGEST, Machine

#: Figures of a machine that the energy of a step needs beside those of the step time, with their units.
FIGURES = {
    "power_chip": "mW", "power_core": "mW", "energy_neuron_access": "pJ", "energy_neuron_update": "pJ", "energy_spike_out": "pJ",
    "energy_synaptic_op": "pJ",
}  # fmt: skip


class Draw(NamedTuple):
    """What a step costs beside its messages: ``chips`` and ``core`` in pJ per ns (mW) of all chips and of each core that holds
    nodes, ``work`` in pJ for all neurons and synapses.
    """

    chips: float
    core: float
    work: float

    def total(self, messages: float, cores: float, time: float) -> float:
        """Return the pJ of a step of ``time`` ns with ``messages`` pJ for its messages, on so many cores."""
        return self.work + messages + (self.chips + self.core * cores) * time


def has_power(graph: LogicGraph, machine: Machine) -> bool:
    """Return True if mappings of this graph on this machine have an energy of a step."""
    stands = all(
        name in machine.figures
        and machine.figures[name].unit in ("", unit)
        and 0 <= machine.figures[name].value < LARGEST
        for name, unit in FIGURES.items()
    )
    return stands and has_energy(machine) and has_step_time(graph, machine)


def draw_of(graph: LogicGraph, machine: Machine) -> Draw:
    """Return what a step costs beside its messages.

    Raises
    ------
    InputError : the machine lacks figures (all are named), or one is below 0, too large or in another unit
    """
    missing = [name for name in FIGURES if name not in machine.figures]
    if missing or not has_energy(machine):
        named = ", ".join(missing) or "any under [energy]"
        raise InputError(
            f"the energy of a step needs figures that this machine does not have: {named}",
            machine.name,
            "a machine.toml with them under [figures] (0 where there is no such cost), or another objective",
        )
    f = {name: float(stated(machine, name, unit) or 0.0) for name, unit in FIGURES.items()}
    large = [name for name, value in f.items() if not value < LARGEST]
    if large:
        raise InputError(f"{large[0]} is {f[large[0]]:g}", machine.name, "less than 1e30")
    fires = events = 0.0
    for rows in graph.blocks():
        length = np.diff(rows.indptr)
        fires += float(tally(rows.source, rows.rate, graph.n).sum())
        events += float(
            np.where(np.repeat(rows.multicast, length), np.repeat(rows.rate, length), rows.weights).sum()
        )
    each = f["energy_neuron_access"] + f["energy_neuron_update"]
    work = (
        each * float(neurons_of(graph).sum())
        + f["energy_spike_out"] * fires
        + f["energy_synaptic_op"] * events
    )
    return Draw(f["power_chip"] * machine.n_chips, f["power_core"], work)
