"""The routes messages take, and what they load onto every link.

A directed link is numbered ``4 * core + direction`` by the core it leaves; directions are 0 east, 1 west,
2 south, 3 north. Routes are XY (along the row first), on a torus the shorter way round (ties towards
growing numbers), with dead links the route trees of :mod:`nmsolve.hw.detours`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import CoreDistance, checked_core, machine_distance
from nmsolve.hw.detours import EAST, NORTH, SOUTH, WEST, link_ends, link_weights, route_trees
from nmsolve.hw.kernels import goes_up, walk_routes
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

DIRECTIONS = ("east", "west", "south", "north")


@dataclass(frozen=True)
class HotLink:
    """A heavily loaded link and the messages that load it.

    Attributes
    ----------
    link : link number; ``start``, ``end`` : its cores; ``direction`` : in words
    load : traffic over it per step
    messages : (sending node's index, traffic over this link) of its largest messages, largest first
    """

    link: int
    start: int
    end: int
    direction: str
    load: float
    messages: tuple[tuple[int, float], ...]


def has_routes(machine: Machine) -> bool:
    """False for a machine given by a distance matrix: nothing is known of its links."""
    return machine.distance_matrix is None


def route(machine: Machine, p: int, q: int) -> list[int]:
    """Links (numbers, in order) of the route from core ``p`` to core ``q``; empty if they are the same.

    Raises
    ------
    InputError : no such core, no route, or a machine without links (distance matrix)
    """
    _require_routes(machine)
    for core in (p, q):
        if not 0 <= core < machine.size:
            raise InputError(f"core {core} does not exist", machine.name, f"0..{machine.size - 1}")
    if machine.faulty_links:
        return _tree_route(machine, p, q)
    d = machine_distance(machine, "hops")
    cols = machine.cols
    (pr, pc), (qr, qc) = divmod(p, cols), divmod(q, cols)
    across = EAST if goes_up(d.x[pc], d.x[qc], d.wrap_x) else WEST
    along = SOUTH if goes_up(d.y[pr], d.y[qr], d.wrap_y) else NORTH
    links, r, c = [], pr, pc
    while c != qc:
        links.append(4 * (r * cols + c) + across)
        c = (c + (1 if across == EAST else -1)) % cols
    while r != qr:
        links.append(4 * (r * cols + c) + along)
        r = (r + (1 if along == SOUTH else -1)) % machine.rows
    return links


def _tree_route(machine: Machine, p: int, q: int) -> list[int]:
    before, ends = route_trees(machine).before, link_ends(machine)
    links, v = [], q
    while v != p:
        u = int(before[p, v])
        if u == v:
            raise InputError(
                f"faulty links leave no route from core {p} to core {q}", machine.name, "a route"
            )
        links.append(4 * u + int(np.flatnonzero(ends[4 * u : 4 * u + 4] == v)[0]))
        v = u
    return links[::-1]


def link_loads(graph: LogicGraph, machine: Machine, core: AnyArray, multicast: bool = True) -> FloatArray:
    """(4 * P,) traffic per step over every directed link; 0 where there is no link.

    A multicast row loads every link of its route tree once with its rate, any other edge every link of its
    route with its weight. With ``multicast=False`` every row is sent edge by edge.

    Raises
    ------
    InputError : a machine given by a distance matrix has no links; wrong mapping
    """
    slot = np.full(4 * machine.size, -1, np.int64)
    return _walk(graph, machine, core, multicast, slot, 0)[0]


def working_links(machine: Machine) -> IntArray:
    """Numbers of the links that exist and are not dead."""
    return np.flatnonzero(np.isfinite(link_weights(machine)))


def load_histogram(machine: Machine, loads: FloatArray, bins: int = 10) -> tuple[FloatArray, IntArray]:
    """``bins`` equal steps from 0 to the largest load: edges (bins + 1,) and working links in each (bins,)."""
    used = loads[working_links(machine)]
    counts, edges = np.histogram(used, bins, (0.0, float(used.max(initial=0.0)) or 1.0))
    return edges, counts.astype(np.int64)


def hottest_links(
    graph: LogicGraph, machine: Machine, core: AnyArray, count: int = 10, messages: int = 5
) -> list[HotLink]:
    """The ``count`` most loaded links (ties by number), each with the ``messages`` largest messages over it."""
    loads = link_loads(graph, machine, core)
    order = np.argsort(-loads, kind="stable")[:count]
    order = order[loads[order] > 0]
    slot = np.full(4 * machine.size, -1, np.int64)
    slot[order] = np.arange(len(order))
    share = _walk(graph, machine, core, True, slot, len(order))[1]
    ends = link_ends(machine)
    out = []
    for j, link in enumerate(order.tolist()):
        rows = np.argsort(-share[:, j], kind="stable")[:messages].tolist()
        top = tuple((int(graph.source[i]), float(share[i, j])) for i in rows if share[i, j] > 0)
        start, d = divmod(link, 4)
        out.append(HotLink(link, start, int(ends[link]), DIRECTIONS[d], float(loads[link]), top))
    return out


def _require_routes(machine: Machine) -> None:
    if not has_routes(machine):
        raise InputError(
            "the machine is given by a distance matrix", machine.name, "a mesh: only meshes have links"
        )


def _walk(
    graph: LogicGraph, machine: Machine, core: AnyArray, multicast: bool, slot: IntArray, slots: int
) -> tuple[FloatArray, FloatArray]:
    """Loads (4 * P,) and, per row, the traffic over the links that have a slot."""
    _require_routes(machine)
    loads = np.zeros(4 * machine.size)
    share = np.zeros((graph.rows, slots))
    before: Int32Array = np.zeros((0, 0), np.int32)
    distance: CoreDistance = machine_distance(machine, "hops")
    if machine.faulty_links:
        before = route_trees(machine).before
    by_union = graph.multicast if multicast else np.zeros(graph.rows, bool)
    walk_routes(
        graph.indptr, graph.source, graph.targets, graph.weights, graph.rate, by_union,
        checked_core(graph, machine, core), machine.cols, distance.x, distance.y, distance.wrap_x,
        distance.wrap_y, before, link_ends(machine), slot, loads, share,
    )  # fmt: skip
    return loads, share
