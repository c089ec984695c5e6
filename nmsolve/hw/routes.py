"""The routes messages take, and what they load onto every link.

A directed link is numbered ``4 * core + direction`` by the core it leaves; directions are 0 east, 1 west,
2 south, 3 north. Routes are XY (along the row first), on a torus the shorter way round (ties towards
growing numbers), with dead links the route trees of :mod:`nmsolve.hw.detours`.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from nmsolve.hw.cost import checked_core, machine_distance
from nmsolve.hw.detours import EAST, NORTH, SOUTH, WEST, route_trees
from nmsolve.hw.kernels import walk_routes
from nmsolve.hw.links import goes_up, links_of
from nmsolve.hw.summed import add_crossings, summed
from nmsolve.model.errors import InputError
from nmsolve.model.graph import READERS, Messages, Rows
from nmsolve.model.links import link_ends, link_works, require_links
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray, read_only

DIRECTIONS = ("east", "west", "south", "north")
#: Links whose crossings fit into the bits of one number.
_BITS = 62


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
    """Return False for a machine given by a distance matrix: nothing is known of its links."""
    return machine.distance_matrix is None


def route(machine: Machine, p: int, q: int) -> list[int]:
    """Return links (numbers, in order) of the route from core ``p`` to core ``q``; empty if they are the same.

    Raises
    ------
    InputError : no such core, no route, or a machine without links (distance matrix)
    """
    require_links(machine)
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


def link_loads(graph: Messages, machine: Machine, core: AnyArray, multicast: bool = True) -> FloatArray:
    """Return (4 * P,) traffic per step over every directed link; 0 where there is no link.

    A multicast row loads every link of its route tree once with its rate, any other edge every link of its
    route with its weight. With ``multicast=False`` every row is sent edge by edge.

    Raises
    ------
    InputError : a machine given by a distance matrix has no links; wrong mapping
    """
    walked = LinkLoads(graph, machine, core, multicast)
    for rows in graph.blocks(READERS):
        walked.add(rows)
    return walked.loads


def hottest_load(problem: MappingProblem, core: AnyArray) -> float:
    """Return the objective ``max-link`` of the mapping ``core`` (n,)."""
    return float(link_loads(problem.graph, problem.machine, core).max(initial=0.0))


def load_lattice(problem: MappingProblem) -> float:
    """1 if all loads are whole numbers, else 0."""
    return 1.0 if problem.graph.integral else 0.0


def working_links(machine: Machine) -> IntArray:
    """Return (links,) the numbers of the links that exist and are not dead."""
    return np.flatnonzero(link_works(machine))


def load_histogram(machine: Machine, loads: FloatArray, bins: int = 10) -> tuple[FloatArray, IntArray]:
    """Return ``bins`` equal steps from 0 to the largest load: edges (bins + 1,) and working links in each (bins,)."""
    used = loads[working_links(machine)]
    counts, edges = np.histogram(used, bins, (0.0, float(used.max(initial=0.0)) or 1.0))
    return edges, counts.astype(np.int64)


def hottest_links(
    graph: Messages,
    machine: Machine,
    core: AnyArray,
    count: int = 10,
    messages: int = 5,
    loads: FloatArray | None = None,
) -> list[HotLink]:
    """Return the ``count`` most loaded links (ties by number), each with the ``messages`` largest messages over it.

    Parameters
    ----------
    core : (n,) core of every node
    loads : (4 * P,) result of :func:`link_loads`, if it is known

    Raises
    ------
    InputError : a machine given by a distance matrix has no links; wrong mapping
    """
    loads = link_loads(graph, machine, core) if loads is None else loads
    order = np.argsort(-loads, kind="stable")[:count]
    order = order[loads[order] > 0]
    tops = _largest_messages(graph, machine, core, order, messages)
    ends = link_ends(machine)
    out = []
    for link, top in zip(order.tolist(), tops, strict=True):
        start, d = divmod(link, 4)
        out.append(HotLink(link, start, int(ends[link]), DIRECTIONS[d], float(loads[link]), top))
    return out


def _largest_messages(
    graph: Messages, machine: Machine, core: AnyArray, links: IntArray, most: int
) -> list[tuple[tuple[int, float], ...]]:
    """For each of ``links`` the (sender, traffic over it) of its ``most`` largest messages, largest first."""
    walked = LinkLoads(graph, machine, core)
    tops: list[list[tuple[int, float]]] = [[] for _ in links]
    for rows in graph.blocks(READERS):
        share = walked.add(rows, links)
        for j, top in enumerate(tops):
            over = np.flatnonzero(share[:, j] > 0)
            best = over[np.argsort(-share[over, j], kind="stable")[:most]].tolist()
            top += [(int(rows.source[i]), float(share[i, j])) for i in best]
            top.sort(key=itemgetter(1), reverse=True)
            del top[most:]
    return [tuple(top) for top in tops]


class LinkLoads:
    """Adds up the traffic of messages over the links; arguments as :func:`link_loads`.

    ``loads`` (4 * P,) is the traffic over every directed link so far.
    """

    def __init__(self, graph: Messages, machine: Machine, core: AnyArray, multicast: bool = True) -> None:
        require_links(machine)
        self.loads: FloatArray = np.zeros(4 * machine.size)
        self._core, self._multicast = checked_core(graph, machine, core), multicast
        self._cores, self._links = machine.size, links_of(machine)
        self._crossed: tuple[bytes, IntArray] | None = None

    def add(self, rows: Rows, links: IntArray | None = None) -> FloatArray:
        """Take more messages. Returns (rows, len(links)) the traffic of each over some links."""
        slots = np.zeros(0, np.int64) if links is None else links
        alone = summed(rows, self._core, self._cores) if self._multicast or not rows.multicast.any() else None
        if alone is None:
            return self._walk(rows, self._core, slots)
        self.add_summed(alone)
        share = np.zeros((len(rows.source), len(slots)))
        for first in range(0, len(slots), _BITS):  # one link per bit
            some = slots[first : first + _BITS]
            add_crossings(rows.fixed, self._core, self._crossings(some), share[:, first : first + len(some)])
        return share

    def add_summed(self, alone: Rows) -> None:
        """Take what :func:`~nmsolve.hw.summed.summed` made of messages."""
        self._walk(alone, np.arange(self._cores), np.zeros(0, np.int64))

    def _crossings(self, links: IntArray) -> IntArray:
        """Return (P, P) for every pair of cores, bit ``k`` set if the route from the first to the second crosses ``links[k]``."""
        key = links.tobytes()
        if self._crossed is not None and self._crossed[0] == key:
            return self._crossed[1]
        kept, cores = self.loads.copy(), np.arange(self._cores)
        out = np.zeros((self._cores, self._cores), np.int64)
        for p in cores:  # one message to each core, in turn from every core
            one = Rows(
                0, np.arange(len(cores) + 1), np.full(len(cores), p, np.int32), cores.astype(np.int32),
                np.ones(len(cores)), np.zeros(len(cores), bool), np.zeros(len(cores)),
            )  # fmt: skip
            out[p] = (self._walk(one, cores, links) > 0) @ (1 << np.arange(len(links)))
        np.copyto(self.loads, kept)
        self._crossed = key, out
        return out

    def _walk(self, rows: Rows, core: IntArray, slots: IntArray) -> FloatArray:
        slot = np.full(len(self.loads), -1, np.int64)
        slot[slots] = np.arange(len(slots))
        share = np.zeros((len(rows.source), len(slots)))
        by_union = rows.multicast if self._multicast else np.zeros(len(rows.source), bool)
        walk_routes(rows.fixed, read_only(by_union), read_only(core), self._links, slot, self.loads, share)
        return share
