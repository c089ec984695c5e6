"""Best trees on small boards, for every set of cores at once.

A cheapest tree that joins a set of cores is a minimum spanning tree of the cores it passes. So the weight of spanning trees
is computed for every set of cores, and the least over all supersets is the answer: 2^cores * cores steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.detours import link_weights
from nmsolve.hw.energy import step_value
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Most cores.
MAX_CORES = 12


@dataclass(frozen=True, eq=False)
class Trees:
    """For every bit set of cores what a unit of traffic to it pays, and the cores its best tree passes.

    Attributes
    ----------
    cost : (2^P,) weight of a cheapest tree, plus the step once per core but the source's; inf where there is none
    passes : (2^P,) bit set of the cores of such a tree
    edges : (a, b, weight) of all pairs of linked cores, cheapest first
    """

    cost: FloatArray
    passes: IntArray
    edges: tuple[tuple[int, int, float], ...]


def refuses_trees(machine: Machine) -> str | None:
    """Return why there is no table for the machine, or None."""
    if machine.distance_matrix is not None:
        return "a machine given by a distance matrix has no links"
    if machine.size > MAX_CORES:
        return f"{machine.size} cores, tables of best trees take up to {MAX_CORES}"
    dead = set(machine.faulty_links)
    if any((b, a) not in dead for a, b in dead):
        return "a link is dead in one direction only"
    return None


def best_trees(machine: Machine, quantity: str) -> Trees:
    """Return tables for ``hops`` (link weights) or ``energy``; links cost the same both ways."""
    size = machine.size
    ends, weights = link_ends(machine), link_weights(machine, quantity)
    pairs = {(v // 4, int(ends[v])): float(weights[v]) for v in np.flatnonzero(np.isfinite(weights)).tolist()}
    edges = tuple(sorted(((a, b, w) for (a, b), w in pairs.items() if a < b), key=lambda e: e[2]))
    cost = np.array([_spanning(s, edges)[0] for s in range(1 << size)])
    passes = np.arange(1 << size)
    for p in range(size):
        without = np.flatnonzero(~(np.arange(1 << size) >> p) & 1)
        more = without | (1 << p)
        better = cost[more] < cost[without]
        cost[without[better]] = cost[more[better]]
        passes[without[better]] = passes[more[better]]
    cost[0], passes[0] = 0.0, 0
    step = step_value(machine, quantity)
    count = np.array([s.bit_count() for s in range(1 << size)])
    return Trees(cost + step * np.maximum(count - 1, 0), passes, edges)


def _spanning(cores: int, edges: tuple[tuple[int, int, float], ...]) -> tuple[float, list[tuple[int, int]]]:
    """Return the weight and edges of a minimum spanning tree of a bit set of cores (Kruskal); inf if it is not connected."""
    parts = [1 << p for p in range(cores.bit_length()) if cores >> p & 1]
    total, chosen = 0.0, []
    for a, b, w in edges:
        if not (cores >> a & 1 and cores >> b & 1):
            continue
        one = next(s for s in parts if s >> a & 1)
        if one >> b & 1:
            continue
        other = next(s for s in parts if s >> b & 1)
        parts = [s for s in parts if s not in (one, other)] + [one | other]
        total += w
        chosen.append((a, b))
    return (total if len(parts) <= 1 else np.inf), chosen


def tree_links(trees: Trees, root: int, goals: set[int]) -> set[tuple[int, int]]:
    """Directed links (from core, to core) of a cheapest tree from ``root`` to all ``goals``."""
    cores = 1 << root
    for p in goals:
        cores |= 1 << p
    _, edges = _spanning(int(trees.passes[cores]), trees.edges)
    out: set[tuple[int, int]] = set()
    reached = [root]
    for a in reached:
        for x, y in edges:
            for here, there in ((x, y), (y, x)):
                if here == a and there not in reached:
                    out.add((a, there))
                    reached.append(there)
    return out
