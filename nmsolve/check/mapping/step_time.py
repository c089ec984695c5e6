"""The time and the energy of a step recomputed for verification: counts in NumPy, routes walked link by link.

Shares no code with :mod:`nmsolve.hw.step_time` and :mod:`nmsolve.hw.step_energy`; formulas from docs/objectives.md.
"""

from __future__ import annotations

import numpy as np

from nmsolve.check.mapping.verify import recompute
from nmsolve.check.walker import distinct, mesh_links, walk
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.machine import Machine

#: Figures that the formula names.
NEEDED = (
    "latency_neuron_access", "latency_neuron_update", "latency_spike_out", "latency_axon_out", "latency_axon_in",
    "latency_synaptic_op", "latency_link_message", "latency_barrier", "receives_while_sending",
)  # fmt: skip


def walked_step_time(cores: BetweenCores, machine: Machine) -> float:
    """Return the objective ``step-time`` of the messages of a mapping, in ns. InputError if the machine lacks figures for it."""
    cost = {name: figure.value for name, figure in machine.figures.items()}
    missing = [name for name in NEEDED if name not in cost]
    if missing:
        raise InputError(
            f"a step time without the figures {', '.join(missing)}", machine.name, "the machine of the run"
        )
    graph, at, count = cores.graph, cores.core, machine.size
    neurons = (
        graph.sizes[:, graph.resources.index("neurons")] if "neurons" in graph.resources else np.ones(graph.n)
    )
    sends, takes, carries = np.zeros(count), np.zeros(count), np.zeros(4 * count)
    np.add.at(sends, at, neurons * (cost["latency_neuron_access"] + cost["latency_neuron_update"]))
    for rows, row in pieces(graph):
        np.add.at(sends, at[rows.source], rows.rate * cost["latency_spike_out"])
        events = np.where(rows.multicast[row], rows.rate[row], rows.weights)
        np.add.at(takes, at[rows.targets], events * cost["latency_synaptic_op"])
    board = mesh_links(machine, "hops")
    once = cost.get("multicast_links", 0.0) > 0
    for rows in cores.condensed():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        p, q = at[rows.source[row]].astype(np.int64), rows.targets.astype(np.int64)
        copies = np.where(rows.multicast[row], rows.rate[row], rows.weights)
        np.add.at(sends, p, copies * cost["latency_axon_out"])
        np.add.at(takes, q, copies * cost["latency_axon_in"])
        tree = rows.multicast[row] & once
        taken = [np.zeros(0, np.int64)]
        for first in range(0, len(p), board.edges_at_once):
            part = slice(first, first + board.edges_at_once)
            for which, link in walk(board, p[part], q[part]):
                alone = ~tree[part][which]
                np.add.at(carries, link[alone], copies[part][which[alone]] * cost["latency_link_message"])
                taken.append(row[part][which[~alone]] * (4 * count) + link[~alone])
        keys = distinct(taken, len(rows.source) * 4 * count)
        np.add.at(carries, keys % (4 * count), rows.rate[keys // (4 * count)] * cost["latency_link_message"])
    busy = np.maximum(sends, takes) if cost["receives_while_sending"] > 0 else sends + takes
    return float(max(busy.max(), carries.max()) + cost["latency_barrier"])


#: Figures that the formula names, beside those of the step time.
NEEDED_FOR_ENERGY = (
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
    missing = [name for name in NEEDED_FOR_ENERGY if name not in cost]
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
