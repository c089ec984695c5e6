"""How long one synchronous step takes: the slowest core or the hottest link, and the barrier (docs/objectives.md, *Step time*).

A core updates its neurons and sends; it takes messages and works off their synaptic events. Where the chip does both side by
side, the longer one counts, else their sum. A message goes to every core that holds a target, its sender's own too. The
network carries a copy to each, as SANA-FE simulates Loihi; or, where its routers copy messages (``multicast_links``), one over
every link of the tree of routes, as on SpiNNaker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.energy import stated, stated_all, states_all
from nmsolve.hw.links import Links, link_before, links_of
from nmsolve.hw.machine_file import TICK
from nmsolve.hw.routing.loads import tally
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.machine import LARGEST, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Figures of a machine that the step time needs, with their units.
FIGURES = {
    "latency_neuron_access": "ns", "latency_neuron_update": "ns", "latency_spike_out": "ns", "latency_axon_out": "ns",
    "latency_axon_in": "ns", "latency_synaptic_op": "ns", "latency_link_message": "ns", "latency_barrier": "ns",
    "receives_while_sending": "1 or 0",
}  # fmt: skip

#: Figures that change it where they are given: whether routers copy messages. 0 if left out.
OPTIONAL = {"multicast_links": "1 or 0"}


class StepCosts(NamedTuple):
    """What takes time, in ns.

    ``neuron`` per neuron and step, ``spike`` per firing, ``sent`` and ``taken`` per message and core that it goes to,
    ``event`` per synapse that a message reaches, ``link`` per message on a link, ``barrier`` once per step. ``aside``: a core
    receives while it updates and sends. ``shared``: a multicast message is on a link once, whatever cores it goes to behind it.
    """

    neuron: float
    spike: float
    sent: float
    taken: float
    event: float
    link: float
    barrier: float
    aside: bool
    shared: bool


class StepLoads(NamedTuple):
    """ns per step: (P,) of each core for updating and sending, and for receiving; (4 P,) of each directed link."""

    sending: FloatArray
    receiving: FloatArray
    links: FloatArray


def has_step_time(graph: LogicGraph, machine: Machine) -> bool:
    """Return True if mappings of this graph on this machine have a step time."""
    given = {name: unit for name, unit in OPTIONAL.items() if name in machine.figures}
    return graph.directed and states_all(machine, FIGURES | given) and machine.distance_matrix is None


def require_step_time(graph: LogicGraph, machine: Machine) -> None:
    """Raise InputError as :func:`step_costs`, and for a graph that does not say who sends."""
    step_costs(machine)
    tick_of(machine)
    if not graph.directed:
        raise InputError(
            "the graph is undirected: it does not say who sends, which the step time depends on",
            graph.name,
            "a directed graph, or another objective",
        )


def tick_of(machine: Machine) -> float | None:
    """Return the ns between two steps of a chip that runs in real time; None where the next step begins when all are ready.

    Raises
    ------
    InputError : the figure is in another unit, not above 0 or 1e30 and more
    """
    tick = stated(machine, TICK, "ns")
    if tick is not None and not 0 < tick < LARGEST:
        raise InputError(f"the tick is {tick:g} ns", f"{machine.name}: {TICK}", "above 0, below 1e30")
    return tick


def step_costs(machine: Machine) -> StepCosts:
    """Return what takes time on a machine.

    Raises
    ------
    InputError : the machine lacks figures (all are named), one is below 0 or in another unit, or it has no links
    """
    f = stated_all(machine, FIGURES, "step time")
    if machine.distance_matrix is not None:
        raise InputError("the step time needs links", machine.name, "a mesh or torus")
    return StepCosts(
        f["latency_neuron_access"] + f["latency_neuron_update"], f["latency_spike_out"], f["latency_axon_out"],
        f["latency_axon_in"], f["latency_synaptic_op"], f["latency_link_message"], f["latency_barrier"],
        f["receives_while_sending"] > 0, any((stated(machine, name, unit) or 0) > 0 for name, unit in OPTIONAL.items()),
    )  # fmt: skip


def neurons_of(graph: LogicGraph) -> FloatArray:
    """Return (n,) how many neurons each node stands for: its resource ``neurons``, 1 without that resource."""
    if "neurons" in graph.resources:
        return graph.sizes[:, graph.resources.index("neurons")].astype(np.float64)
    return np.ones(graph.n)


def fixed_times(graph: LogicGraph, costs: StepCosts) -> tuple[FloatArray, FloatArray]:
    """Return what a node costs wherever it is, in ns: (n,) to update and fire it, (n,) for the events of its synapses.

    A message of a row is a firing at the row's rate; a synapse of a multicast row gets the row's rate of events, another edge its
    weight.
    """
    fires, hears = np.zeros(graph.n), np.zeros(graph.n)
    for rows in graph.blocks():
        length = np.diff(rows.indptr)
        each = np.where(np.repeat(rows.multicast, length), np.repeat(rows.rate, length), rows.weights)
        fires += tally(rows.source, rows.rate, graph.n)
        hears += tally(rows.targets, each, graph.n)
    return costs.neuron * neurons_of(graph) + costs.spike * fires, costs.event * hears


def step_loads(graph: LogicGraph, machine: Machine, core: IntArray) -> StepLoads:
    """Return how long every core and every link is busy in a step of the mapping ``core`` (n,).

    Raises
    ------
    InputError : as :func:`step_costs`; usable cores without a route
    """
    costs = step_costs(machine)
    own, heard = fixed_times(graph, costs)
    sending, receiving = tally(core, own, machine.size), tally(core, heard, machine.size)
    counts, links = np.zeros((2, machine.size)), np.zeros(4 * machine.size)
    routes = links_of(machine)
    for rows in graph.blocks():
        _add_messages(rows.fixed, core, routes, counts, links, costs.shared)
    return StepLoads(
        sending + costs.sent * counts[0], receiving + costs.taken * counts[1], costs.link * links
    )


def step_time(problem: MappingProblem, core: IntArray) -> float:
    """Return the objective ``step-time`` of the mapping ``core`` (n,), in ns."""
    costs = step_costs(problem.machine)
    loads = step_loads(problem.graph, problem.machine, core)
    return float(longest(loads, costs.aside) + costs.barrier)


def longest(loads: StepLoads, aside: bool) -> float:
    """Return the time of the slowest core or hottest link."""
    cores = np.maximum(loads.sending, loads.receiving) if aside else loads.sending + loads.receiving
    return float(max(cores.max(initial=0.0), loads.links.max(initial=0.0)))


@kernel
def _add_messages(
    rows: Rows, core: IntArray, routes: Links, counts: FloatArray, links: FloatArray, shared: bool
) -> None:
    """Add messages per step that cores send and take, ``counts`` (2, P), and that links carry (4 P,)."""
    seen, used = np.full(counts.shape[1], -1, np.int64), np.full(len(links), -1, np.int64)
    for i in range(len(rows.source)):
        p = core[rows.source[i]]
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            q = core[rows.targets[k]]
            amount = rows.weights[k]
            if rows.multicast[i]:
                if seen[q] == i:
                    continue
                seen[q] = i
                amount = rows.rate[i]
            counts[0, p] += amount
            counts[1, q] += amount
            add_copy(routes, p, q, amount, links, used, i if shared and rows.multicast[i] else -1)


@plain
def add_copy(
    routes: Links, p: int, q: int, amount: float, links: FloatArray, used: IntArray, message: int
) -> None:
    """Add a message's amount to the links of the machine's route from core ``p`` to ``q``.

    ``message`` >= 0: only to those that it does not take yet, marked with its number in ``used`` (4 P,). Routes of a core are
    a tree, so where one is taken, all before it are.
    """
    v = q
    while v != p:
        u, link = link_before(routes, p, q, v)
        if link < 0 or (message >= 0 and used[link] == message):
            return
        used[link] = message
        links[link] += amount
        v = u
