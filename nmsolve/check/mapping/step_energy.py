"""The energy of a step recomputed for verification: counts in NumPy, time and messages by routes walked link by link.

Shares no code with :mod:`nmsolve.hw.step_energy`; formula from docs/objectives.md.
"""

from __future__ import annotations

import numpy as np

from nmsolve.check.mapping.step_time import walked_step_time
from nmsolve.check.mapping.verify import recompute
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.machine import Machine

#: Figures that the formula names, beside those of the step time.
NEEDED = (
    "power_chip", "power_core", "energy_neuron_access", "energy_neuron_update", "energy_spike_out", "energy_synaptic_op",
)  # fmt: skip


def walked_step_energy(cores: BetweenCores, machine: Machine) -> float:
    """Return the objective ``step-energy`` of the messages of a mapping, in pJ. InputError if the machine lacks figures."""
    return _walked(cores, machine)[0]


def walked_energy_delay(cores: BetweenCores, machine: Machine) -> float:
    """Return the objective ``energy-delay`` of the messages of a mapping, in pJ ns; errors as :func:`walked_step_energy`."""
    energy, time = _walked(cores, machine)
    return energy * time


def work_in_pj(graph: LogicGraph, machine: Machine) -> float:
    """Return what neurons, firings and synaptic events of a step cost, in pJ. InputError if figures are missing."""
    cost = {name: figure.value for name, figure in machine.figures.items()}
    missing = [name for name in NEEDED if name not in cost]
    if missing:
        raise InputError(
            f"an energy of a step without the figures {', '.join(missing)}",
            machine.name,
            "the machine of the run",
        )
    named = list(graph.resources)
    neurons = float(graph.sizes[:, named.index("neurons")].sum()) if "neurons" in named else float(graph.n)
    spent = neurons * (cost["energy_neuron_access"] + cost["energy_neuron_update"])
    for rows, row in pieces(graph):
        events = np.where(rows.multicast[row], rows.rate[row], rows.weights)
        spent += float(rows.rate.sum()) * cost["energy_spike_out"]
        spent += float(events.sum()) * cost["energy_synaptic_op"]
    return spent


def _walked(cores: BetweenCores, machine: Machine) -> tuple[float, float]:
    spent, time = work_in_pj(cores.graph, machine), walked_step_time(cores, machine)
    power = machine.figures["power_chip"].value * machine.n_chips
    used = np.zeros(machine.size, bool)
    used[cores.core] = True
    power += machine.figures["power_core"].value * float(used.sum())
    messages = recompute(cores.graph, machine, cores.core, cores)["energy"]
    return spent + messages + power * time, time
