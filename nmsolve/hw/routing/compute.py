"""Energy that cores themselves take per step, where the machine has figures for it; the network's is in ``energy``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.hw.energy import stated
from nmsolve.hw.routing.energy import ByCore
from nmsolve.hw.routing.loads import tally
from nmsolve.hw.step_time import neurons_of
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray

#: Figures (pJ) of a machine that price each part.
FIGURES = {
    "synapses": ("energy_synaptic_op",),
    "neurons": ("energy_neuron_access", "energy_neuron_update"),
    "spikes": ("energy_spike_out",),
}


@dataclass(frozen=True, eq=False)
class ComputeEnergy(ByCore):
    """pJ per step, each part (P,) float64 by core; 0 where the machine has no figure (``missing``).

    Attributes
    ----------
    synapses : a synaptic event for every target of every message, on the target's core
    neurons : every neuron is looked up and updated once per step
    spikes : every message is a spike of its node
    missing : parts that have no figure
    """

    synapses: FloatArray
    neurons: FloatArray
    spikes: FloatArray
    missing: tuple[str, ...]


def compute_energy(graph: LogicGraph, machine: Machine, core: AnyArray) -> ComputeEnergy | None:
    """Return what synapses, neurons and spikes cost per step on the mapping ``core`` (n,); None without any figure.

    A node counts as many neurons as its resource ``neurons`` says, 1 without that resource. The rate of a message is that of its
    row (the largest weight of a row that is not multicast); an edge that is not multicast makes as many events as its weight.

    Raises
    ------
    InputError : wrong mapping, a figure in another unit
    """
    price = {
        part: sum(stated(machine, name, "pJ") or 0.0 for name in names) for part, names in FIGURES.items()
    }
    missing = tuple(part for part, names in FIGURES.items() if not any(n in machine.figures for n in names))
    if len(missing) == len(FIGURES):
        return None
    at = checked_core(graph, machine, core)
    size = machine.size
    events, spikes = np.zeros(size), np.zeros(size)
    for rows in graph.blocks():
        length = np.diff(rows.indptr)
        each = np.where(np.repeat(rows.multicast, length), np.repeat(rows.rate, length), rows.weights)
        events += tally(at[rows.targets], each, size)
        spikes += tally(at[rows.source], rows.rate, size)
    return ComputeEnergy(
        events * price["synapses"],
        tally(at, neurons_of(graph), size) * price["neurons"],
        spikes * price["spikes"],
        missing,
    )
