"""What chips draw while a step lasts, and what its neurons and synapses cost wherever they are (docs/objectives.md, *Energy of a
step*)."""

from __future__ import annotations

from typing import NamedTuple

from nmsolve.hw.energy import has_energy, stated_all, states_all
from nmsolve.hw.step_time import StepCosts, fixed_times, has_step_time
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine

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
        """Return the pJ of a step of ``time`` ns with ``messages`` pJ for its messages, on this many cores."""
        return self.work + messages + (self.chips + self.core * cores) * time


def has_power(graph: LogicGraph, machine: Machine) -> bool:
    """Return True if mappings of this graph on this machine have an energy of a step."""
    return states_all(machine, FIGURES) and has_energy(machine) and has_step_time(graph, machine)


def draw_of(graph: LogicGraph, machine: Machine) -> Draw:
    """Return what a step costs beside its messages.

    Raises
    ------
    InputError : the machine lacks figures (all are named), or one is below 0, too large or in another unit
    """
    f = stated_all(machine, FIGURES, "energy of a step")
    if not has_energy(machine):
        wanted = "a machine.toml with some, or another objective"
        raise InputError("the energy of a step needs figures under [energy]", machine.name, wanted)
    each = StepCosts(
        f["energy_neuron_access"] + f["energy_neuron_update"], f["energy_spike_out"], 0.0, 0.0, f["energy_synaptic_op"],
        0.0, 0.0, False, False,
    )  # fmt: skip
    work = sum(float(side.sum()) for side in fixed_times(graph, each))  # pJ in place of ns
    return Draw(f["power_chip"] * machine.n_chips, f["power_core"], work)
