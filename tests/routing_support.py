"""Small flows and machines for tests of routing, and channel dependencies written from the definition."""

from __future__ import annotations

import networkx as nx
import numpy as np

from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes


def some_flows(machine: Machine, rng: np.random.Generator, count: int, most: int) -> Flows:
    """Flows with whole rates and up to ``most`` targets each."""
    source = rng.integers(0, machine.size, count)
    targets = []
    for p in source:
        others = np.delete(np.arange(machine.size), p)
        size = rng.integers(1, min(most, len(others)) + 1)
        targets.append(np.sort(rng.choice(others, size, replace=False)))
    return trees(source, targets, rng.integers(1, 9, count))


def trees(source, targets, rate) -> Flows:
    """Flows from lists."""
    return Flows(
        np.array(source, np.int32),
        np.cumsum([0, *(len(t) for t in targets)]),
        np.concatenate([np.asarray(t, np.int32) for t in targets]),
        np.array(rate, float),
    )


def all_pairs(cores: int) -> Flows:
    """Everyone to everyone else, once per step."""
    return Flows.of_matrix(np.ones((cores, cores)))


def links_of(machine: Machine) -> nx.DiGraph:
    """Cores and working links."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(machine.size))
    graph.add_edges_from(
        (p, q)
        for p in range(machine.size)
        for q in machine.neighbours(p)
        if (p, q) not in machine.faulty_links
    )
    return graph


def waits_for(routes: Routes) -> nx.DiGraph:
    """Channels in use; an edge where some message goes from one straight on to the other."""
    graph = nx.DiGraph()
    for f in range(routes.count):
        for k in range(routes.indptr[f], routes.indptr[f + 1]):
            graph.add_node(int(routes.channel[k]))
            if routes.parent[k] >= 0:
                graph.add_edge(int(routes.channel[routes.parent[k]]), int(routes.channel[k]))
    return graph


def shortest_turning(machine: Machine, allowed: np.ndarray, p: int, q: int) -> list[list[int]]:
    """All shortest routes (links) from ``p`` to ``q`` that take allowed turns only; empty if there is none."""
    ends, works = link_ends(machine), link_works(machine)
    paths = [[k] for k in range(4 * p, 4 * p + 4) if works[k]]
    for _ in range(4 * machine.size):
        done = [path for path in paths if ends[path[-1]] == q]
        if done or not paths:
            return done
        longer = {}
        for path in paths:
            core, before = int(ends[path[-1]]), path[-1] % 4
            for d in range(4):
                k = 4 * core + d
                if works[k] and allowed[core, before, d] and k not in path:
                    longer[(*path, k)] = None
        paths = [list(path) for path in longer]
    return []
