"""Writes both files and says what SANA-FE will count and what the files cannot say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.hw.energy import has_energy
from nmsolve.hw.sanafe.architecture import LINK_BUFFER, architecture, message_and_hops
from nmsolve.hw.sanafe.network import Senders, network
from nmsolve.model.errors import InputError
from nmsolve.model.files import atomic_file, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, IntArray

#: SANA-FE reads a network's text as a whole; more synapses than this take it tens of gigabytes.
MOST_SYNAPSES = 20_000_000


@dataclass(frozen=True)
class SanafeCounts:
    """What SANA-FE counts per step of the graph: one message per destination core, also its own one, on XY routes, no trees.

    Attributes
    ----------
    messages, hops_x, hops_y : along rows and along columns
    network_energy : pJ, messages and hops at the energies of the architecture file
    """

    messages: float
    hops_x: float
    hops_y: float
    network_energy: float


@dataclass(frozen=True)
class SanafeExport:
    """What was written.

    Attributes
    ----------
    files : the architecture, then the network
    steps : steps of SANA-FE for one step of the graph: a neuron fires at most once per step
    notes : what the files assume or cannot say, in words
    expected : counts per step of the graph
    """

    files: tuple[Path, Path]
    steps: int
    notes: tuple[str, ...]
    expected: SanafeCounts


def export_sanafe(graph: LogicGraph, machine: Machine, core: AnyArray, folder: str | Path) -> SanafeExport:
    """Write the mapping ``core`` (n,) as ``arch.yaml`` and ``network.yaml`` into ``folder``, which is made if need be.

    Node ``i`` is neuron ``nodes.i``; where a node sends more than one message (hypergraphs), the further ones are sent by neurons
    ``more.j`` on its core. Each file is written completely or not at all.

    Raises
    ------
    InputError : a torus or a distance matrix (SANA-FE simulates meshes), too many synapses, a wrong mapping, a folder that cannot
        be written
    """
    if machine.distance_matrix is not None or machine.torus:
        kind = "torus" if machine.torus else "distance matrix"
        raise InputError(f"SANA-FE cannot simulate a {kind}", machine.name, "a mesh")
    if graph.m > MOST_SYNAPSES:
        raise InputError(f"{graph.m} synapses", graph.name, f"at most {MOST_SYNAPSES} for SANA-FE")
    at, senders = checked_core(graph, machine, core), Senders(graph)
    most = int(np.bincount(at[senders.node], minlength=machine.size).max(initial=1))
    steps = max(1, int(np.ceil(senders.rate.max(initial=0.0))))
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot make the folder: {reason}", str(target), "a writable place") from None
    files = target / "arch.yaml", target / "network.yaml"
    room = max(most, machine.capacity.get("neurons", 0))
    write_atomic(files[0], json.dumps(architecture(machine, room), indent=1) + "\n")
    with atomic_file(files[1]) as file:
        for text in network(graph, machine, at, senders, steps):
            file.write(text.encode())
    return SanafeExport(files, steps, _notes(graph, machine, steps), counts(graph, machine, at))


def counts(graph: LogicGraph, machine: Machine, core: IntArray) -> SanafeCounts:
    """What SANA-FE counts per step of the graph."""
    messages = hops_x = hops_y = 0.0
    for rows in graph.blocks():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        copies = np.unique(row * machine.size + core[rows.targets])
        row, goal = np.divmod(copies, machine.size)
        start, rate = core[rows.source[row]], rows.rate[row]
        messages += float(rate.sum())
        hops_x += float((rate * np.abs(start % machine.cols - goal % machine.cols)).sum())
        hops_y += float((rate * np.abs(start // machine.cols - goal // machine.cols)).sum())
    each = message_and_hops(machine)
    return SanafeCounts(
        messages, hops_x, hops_y, messages * each["message"] + hops_x * each["x"] + hops_y * each["y"]
    )


def _notes(graph: LogicGraph, machine: Machine, steps: int) -> tuple[str, ...]:
    """What the files assume or cannot say."""
    one_by_one = any(bool((~rows.multicast & (np.diff(rows.indptr) > 1)).any()) for rows in graph.blocks())
    missing = [
        words
        for name, words in (
            ("energy_synaptic_op", "synapses"), ("energy_neuron_update", "neurons"), ("energy_spike_out", "spikes"),
        )
        if name not in machine.figures
    ]  # fmt: skip
    said = {
        "every destination core gets a copy of a message over a route of its own, as SANA-FE simulates it; a copy "
        "to the sender's own core costs a message, too": True,
        "edges of a node that are no multicast are sent as one message per destination core, at the largest weight": one_by_one,
        f"one step of the graph is {steps} steps of SANA-FE, where a neuron fires at most once per step": steps
        > 1,
        "the machine names no energy: Jin et al.'s units stand as pJ": not has_energy(machine),
        "links between chips cost what others do": machine.n_chips > 1,
        f"{len(machine.faulty_links)} dead links are used": bool(machine.faulty_links),
        f"no energy is known of {', '.join(missing)}: 0": bool(missing),
        f"buffers of links hold {LINK_BUFFER} messages (times only)": "link_buffer" not in machine.figures,
        "barriers between steps take no time": True,
    }
    return tuple(words for words, holds in said.items() if holds)
