"""Slow, plain evaluation of mappings, written from the definitions, for tests to compare against."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine

ENERGY = {"message": 7.0, "router": 2.0, "link_x": 3.0, "link_y": 4.0, "crossing": 5.0}
#: ns; what the step time needs.
TIMES = {
    "latency_neuron_access": 1.0, "latency_neuron_update": 2.0, "latency_spike_out": 3.0, "latency_axon_out": 2.0,
    "latency_axon_in": 4.0, "latency_synaptic_op": 1.0, "latency_link_message": 5.0, "latency_barrier": 20.0,
}  # fmt: skip


def times(aside: bool) -> dict[str, Figure]:
    """Figures for the step time; ``aside``: cores receive while they send."""
    return {k: Figure(v, "ns") for k, v in TIMES.items()} | {"receives_while_sending": Figure(float(aside))}


#: mW and pJ; what the energy of a step needs beside that.
DRAW = {
    "power_chip": 6.0, "power_core": 0.5, "energy_neuron_access": 2.0, "energy_neuron_update": 1.0, "energy_spike_out": 4.0,
    "energy_synaptic_op": 0.5,
}  # fmt: skip


def draws(**others: float) -> dict[str, Figure]:
    """Figures for the energy of a step, some of them ``others``."""
    return {k: Figure(v, "mW" if k.startswith("power") else "pJ") for k, v in (DRAW | others).items()}


def link_cost(machine: Machine, quantity: str, p: int, q: int) -> float:
    """What the link between neighbours costs: decided by chips and direction, not by line tables."""
    crossing = machine.chip_of[p] != machine.chip_of[q]
    weight = machine.crossing_weight if crossing else machine.link_weight
    if quantity == "hops":
        return weight
    if not machine.energy:
        return 1 + 0.1 * weight
    e = {k: f.value for k, f in machine.energy.items()}
    same_row = p // machine.cols == q // machine.cols
    return e["router"] + (e["link_x"] if same_row else e["link_y"]) + (e["crossing"] if crossing else 0)


def step_cost(machine: Machine, quantity: str) -> float:
    """What a message to another core pays once."""
    if quantity == "hops":
        return 0.0
    return machine.energy["message"].value + machine.energy["router"].value if machine.energy else 1.0


def all_distances(machine: Machine, quantity: str) -> np.ndarray:
    """(P, P) shortest distances by Floyd and Warshall, without the step."""
    d = np.full((machine.size, machine.size), np.inf)
    np.fill_diagonal(d, 0)
    for p in range(machine.size):
        for q in machine.neighbours(p):
            if (p, q) not in machine.faulty_links:
                d[p, q] = link_cost(machine, quantity, p, q)
    for k in range(machine.size):
        d = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return d


def xy_route(machine: Machine, quantity: str, p: int, q: int) -> list[tuple[int, int]]:
    """Links (from, to) of the XY route, each axis the cheaper way round, ties towards growing numbers."""
    out = []
    at = p
    for axis, lines in ((1, machine.cols), (0, machine.rows)):
        goal = divmod(q, machine.cols)[axis]
        ways = []
        for sign in (1, -1):
            way, cost, here = [], 0.0, at
            while divmod(here, machine.cols)[axis] != goal:
                place = list(divmod(here, machine.cols))
                place[axis] += sign
                if machine.torus and lines > 2:
                    place[axis] %= lines
                if not 0 <= place[axis] < lines:
                    cost = np.inf
                    break
                there = place[0] * machine.cols + place[1]
                cost += link_cost(machine, quantity, here, there)
                way.append((here, there))
                here = there
            ways.append((cost, way))
        cost, way = ways[0] if ways[0][0] <= ways[1][0] + 1e-9 else ways[1]
        out += way
        at = way[-1][1] if way else at
    return out


def messages(graph: LogicGraph, core: np.ndarray):
    """(source core, target cores, weights, rate, multicast) of every row."""
    for i in range(graph.rows):
        k = slice(graph.indptr[i], graph.indptr[i + 1])
        yield (
            int(core[graph.source[i]]),
            [int(core[t]) for t in graph.targets[k]],
            graph.weights[k].tolist(),
            float(graph.rate[i]),
            bool(graph.multicast[i]),
        )


def objective(graph: LogicGraph, machine: Machine, core: np.ndarray, name: str, routes=None) -> float:
    """Any objective from its definition. ``routes(p, q)`` gives links (from, to); XY if not given."""
    if name in ("step-energy", "energy-delay"):
        energy, time = step_energy(graph, machine, core, routes)
        return energy * time if name == "energy-delay" else energy
    if name in ("reward", "step-time"):
        one = reward if name == "reward" else step_time
        return one(graph, machine, core, routes or (lambda p, q: xy_route(machine, "hops", p, q)))
    quantity = "energy" if name == "energy" else "hops"
    d, step = all_distances(machine, quantity), step_cost(machine, quantity)
    routes = routes or (lambda p, q: xy_route(machine, quantity, p, q))
    total = 0.0
    loads: dict[tuple[int, int], float] = {}
    for p, targets, weights, rate, multicast in messages(graph, core):
        remote = {q for q in targets if q != p}
        if name == "max-link":
            parts = (
                [({link for q in remote for link in routes(p, q)}, rate)]
                if multicast
                else [(routes(p, q), w) for q, w in zip(targets, weights, strict=True)]
            )
            for links, amount in parts:
                for link in links:
                    loads[link] = loads.get(link, 0.0) + amount
            continue
        if name == "connectivity":
            total += rate * len(remote)
        elif name == "cut":
            total += sum(w for q, w in zip(targets, weights, strict=True) if q != p)
        elif multicast and name in ("multicast-hops", "energy"):
            union = {link for q in remote for link in routes(p, q)}
            total += rate * (step * len(remote) + sum(link_cost(machine, quantity, *link) for link in union))
        else:
            total += sum(w * (d[p, q] + step) for q, w in zip(targets, weights, strict=True) if q != p)
    return max(loads.values(), default=0.0) if name == "max-link" else total


def step_time(graph: LogicGraph, machine: Machine, core: np.ndarray, routes) -> float:
    """The slowest core or hottest link, and the barrier, message by message (docs/objectives.md)."""
    ns = {k.removeprefix("latency_"): f.value for k, f in machine.figures.items()}
    sending, receiving = [0.0] * machine.size, [0.0] * machine.size
    carrying: dict[tuple[int, int], float] = {}
    once = ns.get("multicast_links", 0) > 0
    for u in range(graph.n):
        neurons = int(graph.sizes[u, graph.resources.index("neurons")]) if "neurons" in graph.resources else 1
        sending[core[u]] += neurons * (ns["neuron_access"] + ns["neuron_update"])
    for p, targets, weights, rate, multicast in messages(graph, core):
        sending[p] += rate * ns["spike_out"]
        copies = [(q, rate) for q in set(targets)] if multicast else list(zip(targets, weights, strict=True))
        for q, w in zip(targets, weights, strict=True):
            receiving[q] += (rate if multicast else w) * ns["synaptic_op"]
        for q, amount in copies:
            sending[p] += amount * ns["axon_out"]
            receiving[q] += amount * ns["axon_in"]
            if multicast and once:
                continue
            for link in routes(p, q):
                carrying[link] = carrying.get(link, 0.0) + amount * ns["link_message"]
        for link in {link for q in set(targets) for link in routes(p, q)} if multicast and once else ():
            carrying[link] = carrying.get(link, 0.0) + rate * ns["link_message"]
    join = max if ns["receives_while_sending"] else lambda a, b: a + b
    return max(*map(join, sending, receiving), *carrying.values(), 0.0) + ns["barrier"]


def step_energy(graph: LogicGraph, machine: Machine, core: np.ndarray, routes=None) -> tuple[float, float]:
    """What messages, neurons, firings and events cost, and what chips and used cores draw in a step; and how long that is."""
    f = {k: figure.value for k, figure in machine.figures.items()}
    time = objective(graph, machine, core, "step-time", routes)
    spent = objective(graph, machine, core, "energy", routes)
    for u in range(graph.n):
        neurons = int(graph.sizes[u, graph.resources.index("neurons")]) if "neurons" in graph.resources else 1
        spent += neurons * (f["energy_neuron_access"] + f["energy_neuron_update"])
    for _, targets, weights, rate, multicast in messages(graph, core):
        spent += rate * f["energy_spike_out"]
        spent += (rate * len(targets) if multicast else sum(weights)) * f["energy_synaptic_op"]
    chips = machine.chips[0] * machine.chips[1]
    return spent + time * (f["power_chip"] * chips + f["power_core"] * len({int(p) for p in core})), time


def reward(graph: LogicGraph, machine: Machine, core: np.ndarray, routes) -> float:
    """M1's reward, negated, message by message (docs/objectives.md)."""
    side = {(p, way): 0.0 for p in range(machine.size) for way in "EWSN"}
    trees: dict[tuple[int, frozenset[int]], set] = {}
    for p, targets, weights, rate, multicast in messages(graph, core):
        remote = {q for q in targets if q != p}
        sends = [(q, rate) for q in remote] if multicast else list(zip(targets, weights, strict=True))
        for q, amount in sends:
            for lines, ahead, back, a, b in (
                (machine.cols, "E", "W", p % machine.cols, q % machine.cols),
                (machine.rows, "S", "N", p // machine.cols, q // machine.cols),
            ):
                steps = b - a
                if machine.torus and lines > 2:
                    steps = min((b - a + k * lines for k in (-1, 0, 1)), key=lambda s: (abs(s), -s))
                if steps < 0:
                    ahead, back = back, ahead
                side[p, ahead] += amount * abs(steps)
                side[q, back] += amount * abs(steps)
        if multicast and len(remote) > 1 and rate > 0:
            trees[p, frozenset(remote)] = {link for q in remote for link in routes(p, q)}
    loss = sum(max(side[p, "E"], side[p, "W"]) + max(side[p, "S"], side[p, "N"]) for p in range(machine.size))
    channels = sum(map(len, trees.values()))
    if not channels or machine.faulty_links:
        return loss
    directions = 4 if machine.rows > 1 and machine.cols > 1 else 0  # XY: none from a column to a row
    return loss * np.exp(min(500.0, directions / channels))


@st.composite
def machines(draw, faults: bool = False) -> Machine:
    """Small boards: chips, torus, dearer crossings, with or without energy figures and dead links."""
    chips = draw(st.sampled_from([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2)]))
    cores = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    torus = draw(st.booleans())
    energy = {k: Figure(v) for k, v in ENERGY.items()} if draw(st.booleans()) else {}
    crossing, figures = draw(st.sampled_from([1.0, 3.0])), times(draw(st.booleans())) | draws()
    machine = Machine("m", chips, cores, torus, {}, 1.0, crossing, energy=energy, figures=figures)
    if not faults or machine.size < 4:
        return machine
    links = [(p, q) for p in range(machine.size) for q in machine.neighbours(p)]
    dead = draw(st.lists(st.sampled_from(links), max_size=4, unique=True))
    broken = replace(machine, faulty_links=tuple(dead))
    return broken if np.isfinite(all_distances(broken, "hops")).all() else machine


@st.composite
def graphs(draw, nets: bool = True) -> LogicGraph:
    """Small graphs with whole weights, some rows multicast; now and then a hypergraph."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 9))
    if nets and draw(st.integers(0, 3)) == 0:
        pins = [rng.choice(n, rng.integers(1, n + 1), replace=False) for _ in range(4)]
        indptr = np.concatenate([[0], np.cumsum([len(p) for p in pins])])
        return LogicGraph.from_nets(n, indptr, np.concatenate(pins), rng.integers(1, 6, 4).astype(float))
    m = int(rng.integers(1, 25))
    return LogicGraph.from_edges(
        n,
        rng.integers(0, n, m),
        rng.integers(0, n, m),
        rng.integers(1, 9, m).astype(float),
        multicast=rng.random(n) < 0.5,
    )
