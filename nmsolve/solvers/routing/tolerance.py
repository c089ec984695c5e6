"""Which flows survive any single dead link without a new turn set, and which links nothing can replace."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from nmsolve.heuristics.routing.forest import two_way
from nmsolve.hw.routing.order import following
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Tolerance:
    """M1.7's term for fault tolerance.

    Attributes
    ----------
    survives : (F,) bool: whichever single link of its route dies, in both directions, every target of the flow still has
        a way from the source over allowed turns
    stuck : (4 * P,) flows with a way over this link that are left without one if it dies
    """

    survives: BoolArray
    stuck: IntArray

    @property
    def flows(self) -> int:
        """Number of flows that survive any single dead link: the value of the term, to be maximised."""
        return int(self.survives.sum())


def tolerance(problem: RoutingProblem, routes: Routes, number: IntArray) -> Tolerance:
    """How many flows adaptive routers could lead round any single dead link (both directions die).

    Allowed are the turns of ``problem.turns``; if there are none, all steps along which ``number`` (4 * P * V,) grows. Ways may
    be of any length.
    """
    v = problem.channels
    ok = np.zeros((4 * problem.machine.size * v, 4 * v), bool)
    before, after = following(problem)
    if problem.turns is not None:
        fine = problem.turns.allowed[after // v // 4, before // v % 4, after // v % 4]
    else:
        fine = (number[before] >= 0) & (number[before] < number[after])
    ok[before[fine], after[fine] % (4 * v)] = True
    stuck = np.zeros(4 * problem.machine.size, np.int64)
    ends = link_ends(problem.machine)
    alive = np.repeat(link_works(problem.machine), v)
    flows = problem.flows
    survives = _survivors(
        np.array(flows.source), np.array(flows.indptr), np.array(flows.targets), np.array(routes.indptr), np.array(routes.links),
        np.array(routes.parent), ends, alive, ok, v, stuck,
    )  # fmt: skip
    return Tolerance(survives, stuck)


def fatal_links(machine: Machine, flows: Flows) -> dict[tuple[int, int], int]:
    """Links without which some flow has no way at all, whatever the turns: (core, core) -> number of flows cut off."""
    ends, link = link_ends(machine), np.flatnonzero(two_way(machine))
    graph: nx.Graph[int] = nx.Graph(zip((link // 4).tolist(), ends[link].tolist(), strict=True))
    out = {}
    source = np.repeat(flows.source, np.diff(flows.indptr))
    flow = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    for a, b in sorted(tuple(sorted(pair)) for pair in nx.bridges(graph)):
        graph.remove_edge(a, b)
        side = np.zeros(machine.size, bool)
        side[list(nx.node_connected_component(graph, a))] = True
        graph.add_edge(a, b)
        cut = len(np.unique(flow[side[source] != side[flows.targets]]))
        if cut:
            out[a, b] = cut
    return out


@kernel
def _survivors(
    source: IntArray, indptr: IntArray, targets: IntArray, first: IntArray, links: IntArray, parent: IntArray,
    ends: IntArray, alive: BoolArray, ok: BoolArray, v: int, stuck: IntArray,
) -> BoolArray:  # fmt: skip
    """(F,) flows that survive; counts the others by link."""
    flows = len(source)
    out = np.ones(flows, np.bool_)
    seen, queue = np.full(len(alive), -1, np.int64), np.empty(len(alive), np.int64)
    below, tick = np.full(len(ends) // 4, -1, np.int64), 0
    for f in range(flows):
        for i in range(first[f], first[f + 1]):
            gone = links[i]
            back = 4 * ends[gone] + (gone % 4 ^ 1)
            below[ends[gone]] = i
            for k in range(i + 1, first[f + 1]):  # cores behind the dead link
                if parent[k] >= first[f] and below[links[k] // 4] == i and parent[k] >= i:
                    below[ends[links[k]]] = i
            for t in range(indptr[f], indptr[f + 1]):
                if below[targets[t]] != i:
                    continue
                tick += 1
                if not _reaches(source[f], targets[t], gone, back, ends, alive, ok, v, seen, queue, tick):
                    out[f] = False
                    stuck[gone] += 1
                    break
    return out


@plain
def _reaches(
    source: int, target: int, gone: int, back: int, ends: IntArray, alive: BoolArray, ok: BoolArray, v: int,
    seen: IntArray, queue: IntArray, tick: int,
) -> bool:  # fmt: skip
    """True if allowed steps lead from ``source`` to ``target`` without links ``gone`` and ``back``."""
    tail, head, ways = 0, 0, 4 * v
    for c in range(ways * source, ways * source + ways):
        if alive[c] and c // v != gone and c // v != back:
            seen[c], queue[tail] = tick, c
            tail += 1
    while head < tail:
        c = queue[head]
        head += 1
        core = ends[c // v]
        if core == target:
            return True
        for j in range(ways):
            e = core * ways + j
            if ok[c, j] and seen[e] != tick and e // v != gone and e // v != back:
                seen[e], queue[tail] = tick, e
                tail += 1
    return False
