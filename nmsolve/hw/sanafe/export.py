"""Write both files, with what SANA-FE will count and what the files cannot express."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.hw.energy import has_energy
from nmsolve.hw.sanafe.architecture import LINK_BUFFER, architecture, message_and_hops
from nmsolve.hw.sanafe.network import Senders, network
from nmsolve.hw.scores import score
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import file_set
from nmsolve.model.files import atomic_file, made_folder, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.tiles import tile_shape
from nmsolve.model.types import AnyArray, IntArray

#: SANA-FE reads a network's text as a whole; more synapses than this take it tens of gigabytes.
MOST_SYNAPSES = 20_000_000
#: The architecture, then the network.
FILES = ("arch.yaml", "network.yaml")


@dataclass(frozen=True)
class SanafeCounts:
    """What SANA-FE counts per step of the graph: one message per destination core, also its own one, on XY routes, no trees.

    Attributes
    ----------
    messages, hops_x, hops_y : along rows and along columns
    network_energy : pJ, messages and hops at the energies of the architecture file
    own_core_energy : pJ of it for messages to the sender's own core, which never enter the network here
    """

    messages: float
    hops_x: float
    hops_y: float
    network_energy: float
    own_core_energy: float


@dataclass(frozen=True)
class SanafeExport:
    """What was written.

    Attributes
    ----------
    files : the architecture, then the network
    steps : steps of SANA-FE for one step of the graph: a neuron fires at most once per step
    notes : what the files assume or cannot say, in words
    expected : counts per step of the graph
    energy : the objective ``energy`` of the mapping. Where no row is multicast, no links join chips and none is dead it is
        ``expected.network_energy - expected.own_core_energy``
    """

    files: tuple[Path, Path]
    steps: int
    notes: tuple[str, ...]
    expected: SanafeCounts
    energy: float


def export_sanafe(graph: LogicGraph, machine: Machine, core: AnyArray, folder: str | Path) -> SanafeExport:
    """Write the mapping ``core`` (n,) as ``arch.yaml`` and ``network.yaml`` into ``folder``, which is made if need be.

    Node ``i`` is neuron ``nodes.i``; where a node sends at more than one rate or more than one message, the further ones are sent
    by neurons ``more.j`` on its core (:class:`nmsolve.hw.sanafe.network.Senders`). Both appear at once, or none.

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
    at = checked_core(graph, machine, core)
    senders = Senders(graph, at)
    most = int(np.bincount(at[senders.node], minlength=machine.size).max(initial=1))
    steps = max(1, int(np.ceil(senders.rate.max(initial=0.0))))
    target = made_folder(folder)
    room = max(most, machine.capacity.get("neurons", 0))
    with file_set(target, FILES) as inside:
        write_atomic(inside / FILES[0], json.dumps(architecture(machine, room), indent=1) + "\n")
        with atomic_file(inside / FILES[1]) as file:
            for text in network(graph, machine, at, senders, steps):
                file.write(text.encode())
    files = target / FILES[0], target / FILES[1]
    notes = _notes(graph, machine, steps, len(senders.node) - graph.n)
    return SanafeExport(
        files, steps, notes, counts(graph, machine, at, senders), score(graph, machine, at)["energy"]
    )


def counts(graph: LogicGraph, machine: Machine, core: IntArray, senders: Senders) -> SanafeCounts:
    """Return SANA-FE's counts per step of the graph for a mapping (n,): a sender's rate once per core with a target."""
    goals = np.concatenate([np.zeros(0, np.int64), *(core[rows.targets] for rows in graph.blocks())])
    sender, goal = np.divmod(np.unique(senders.of_edge * machine.size + goals), machine.size)
    start, rate = core[senders.node[sender]], senders.rate[sender]
    rows, cols = tile_shape(machine)
    hops_x = float((rate * np.abs(start % machine.cols // cols - goal % machine.cols // cols)).sum())
    hops_y = float((rate * np.abs(start // machine.cols // rows - goal // machine.cols // rows)).sum())
    messages, each = float(rate.sum()), message_and_hops(machine)
    energy = messages * each["message"] + hops_x * each["x"] + hops_y * each["y"]
    return SanafeCounts(messages, hops_x, hops_y, energy, float(rate[start == goal].sum()) * each["message"])


def _notes(graph: LogicGraph, machine: Machine, steps: int, more: int) -> tuple[str, ...]:
    """Return what the files assume or cannot say; ``more`` neurons are there only to send."""
    trees = any(bool((rows.multicast & (np.diff(rows.indptr) > 1)).any()) for rows in graph.blocks())
    missing = [
        words
        for name, words in (
            ("energy_synaptic_op", "synapses"), ("energy_neuron_update", "neurons"), ("energy_spike_out", "spikes"),
        )
        if name not in machine.figures
    ]  # fmt: skip
    said = {
        "every destination core gets a copy of a message over a route of its own, as SANA-FE simulates it; a copy "
        "to the sender's own core costs a message as well": True,
        "the energy of the mapping counts a link of a multicast tree once, SANA-FE once per destination core": trees,
        f"{more} neurons only send: they stand for further messages of a node, and for edges of other weights": more
        > 0,
        f"one step of the graph is {steps} steps of SANA-FE, where a neuron fires at most once per step": steps
        > 1,
        "the machine states no energy: Jin et al.'s units are used as pJ": not has_energy(machine),
        "links between chips cost what others do": machine.n_chips > 1 and tile_shape(machine) == (1, 1),
        f"{len(machine.faulty_links)} dead links are used": bool(machine.faulty_links),
        f"no energy is known of {', '.join(missing)}: 0": bool(missing),
        f"buffers of links hold {LINK_BUFFER} messages (times only)": "link_buffer" not in machine.figures,
        "barriers between steps take no time": True,
    }
    return tuple(words for words, holds in said.items() if holds)
