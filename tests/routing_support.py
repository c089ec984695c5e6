"""Small flows and machines for tests of routing, and channel dependencies written from the definition."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from nmsolve.hw.routing.dateline import closing_links, dateline_channels
from nmsolve.hw.routing.numbering import ChannelGraph, channel_graph
from nmsolve.hw.routing.order import required_order, route_order
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.check import routes_complaint
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import hang_up
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, IntArray


def mesh(rows: int, cols: int, **more) -> Machine:
    return Machine(f"mesh {rows}x{cols}", (1, 1), (rows, cols), **more)


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


def every_tree(problem: RoutingProblem, flow: int) -> list[tuple[int, ...]]:
    """Every set of links that is a tree of paths short enough, by joining all paths to each target."""
    graph, ends = links_of(problem.machine), link_ends(problem.machine)
    link = {(k // 4, int(ends[k])): k for k in range(len(ends)) if ends[k] >= 0}
    source = int(problem.flows.source[flow])
    paths = []
    for goal in problem.flows.of(flow).tolist():
        most = nx.shortest_path_length(graph, source, goal) + problem.detour
        some = nx.all_simple_paths(graph, source, goal, cutoff=most)
        paths.append([tuple(link[ab] for ab in itertools.pairwise(path)) for path in some])
    out = set()
    for choice in itertools.product(*paths):
        union = {c for path in choice for c in path}
        heads = [int(ends[c]) for c in union]
        if len(heads) == len(set(heads)):
            out.add(tuple(sorted(union)))
    return sorted(out)


def every_answer(problem: RoutingProblem):
    """Every legal choice of routes whose channels depend on each other in no cycle."""
    before, after = required_order(problem)
    for choice in itertools.product(*(every_tree(problem, f) for f in range(problem.flows.count))):
        routes = joined(problem, choice)
        if routes_complaint(problem, routes) is not None:
            continue
        graph = nx.DiGraph(zip(before.tolist(), after.tolist(), strict=True))
        graph.add_edges_from(zip(*(x.tolist() for x in route_order(routes)), strict=True))
        if nx.is_directed_acyclic_graph(graph):
            yield routes


def joined(problem: RoutingProblem, choice) -> Routes:
    """Routes from a set of links per flow, links in order of their distance from the source."""
    ends = link_ends(problem.machine)
    flow, channel = [], []
    for f, links in enumerate(choice):
        far, todo = {int(problem.flows.source[f])}, list(links)
        while todo:
            ready = [c for c in todo if c // 4 in far]
            assert ready
            flow += [f] * len(ready)
            channel += ready
            far |= {int(ends[c]) for c in ready}
            todo = [c for c in todo if c not in ready]
    return hang_up(problem, np.array(flow, np.int64), np.array(channel, np.int64))


def turn_dependencies(machine: Machine, turns: TurnSet, dateline: str | None = None) -> ChannelGraph:
    """Return which channel may wait for which if messages take any allowed turn over working links.

    ``dateline``: ``ring`` or ``crossings`` (:mod:`nmsolve.hw.routing.dateline`) with the virtual channels it needs, for
    routes that cross no dateline twice; None for one channel per link.
    """
    works, ends = link_works(machine), link_ends(machine)
    link = np.repeat(np.flatnonzero(works), 4)
    after = 4 * ends[link] + np.tile(np.arange(4), len(link) // 4)
    keep = works[after] & turns.allowed[ends[link], link % 4, after % 4]
    if dateline is None:
        return channel_graph(link[keep], after[keep], works)
    return _with_channels(machine, link[keep], after[keep], dateline)


def _with_channels(machine: Machine, before: AnyArray, after: AnyArray, dateline: str) -> ChannelGraph:
    """Return dependencies of links spread over the virtual channels; those that no message can enter are not in use."""
    count, closing = dateline_channels(machine, dateline), closing_links(machine)
    out: list[IntArray] = []
    turned = before % 4 // 2 != after % 4 // 2
    for v in range(count):
        kept = np.where(turned, 0, v) if dateline == "ring" else np.full(len(before), v)
        w = np.where(closing[after], 1 if dateline == "ring" else kept + 1, kept)
        again = closing[after] & (kept == 1) if dateline == "ring" else w == count  # crossed once more
        possible = ~again & ((v > 0) | ~closing[before])  # a dateline is never crossed on channel 0
        out.append(np.stack([before * count + v, after * count + w], 1)[possible])
    pairs = np.concatenate(out)
    lane = np.arange(count)[None, :]
    usable = link_works(machine)[:, None] & ((lane > 0) | ~closing[:, None])
    return channel_graph(pairs[:, 0], pairs[:, 1], usable.reshape(-1))
