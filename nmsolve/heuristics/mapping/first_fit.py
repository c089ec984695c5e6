"""The fallback: some feasible mapping, at once, whatever the constraints; neighbours in the graph stay close.

Nodes are taken in breadth-first order, cores along a snake through the board, so that what talks sits together. Nodes
with few allowed cores go first. A node that finds no room starts a chain of moves: it pushes another node out of a
core, which pushes a third one, until one finds room. For nodes of equal size without ``apart`` that search is exact
(an augmenting path); otherwise the nodes that failed go first in the next try.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, fits, put, room_of
from nmsolve.heuristics.rng import new_rng, shuffle
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Tries made even when time is up, and tries made at most.
LEAST_TRIES, MOST_TRIES = 3, 60
#: Work limit of one chain search, in looks at a node or core (about 0.1 s).
CHAIN_WORK = 5_000_000


class FirstFit:
    """Engine round :func:`first_fit`; one offer, nothing to tune."""

    name = "first-fit"
    finds = "mappings"
    refuses = takes(f"{ANY} axons kinds disk")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer the first mapping found.

        Raises
        ------
        NmsolveError : none was found (there may still be one)
        """
        core = first_mapping(problem, context.seed, context.should_stop)
        if core is None:
            raise NmsolveError("first-fit found no mapping within all capacities and side constraints")
        context.offer(core, "first fit")


def first_mapping(
    problem: MappingProblem, seed: int = 0, should_stop: Callable[[], bool] = lambda: True
) -> IntArray | None:
    """:func:`first_fit`, then brought within the limits on axon tables; None if that fails or should stop.

    The messages of a graph on disk are not at hand for that: there the first mapping must be within the limits.
    """
    from nmsolve.heuristics.mapping.axons.repair import within_axons

    core = first_fit(problem, seed, should_stop)
    if core is None or problem.axons is None:
        return core
    if problem.graph.on_disk:
        return None if axon_overflows(problem, core) else core
    return within_axons(problem, core, seed, should_stop)


def first_fit(
    problem: MappingProblem, seed: int = 0, should_stop: Callable[[], bool] = lambda: True
) -> IntArray | None:
    """(n,) int64 core of every node, feasible except for axon tables; None if none was found.

    Parameters
    ----------
    should_stop : asked between tries; the first three tries are made in any case
    """
    order, rng = _first_order(problem), new_rng(seed)
    scan = snake(problem.machine)
    smallest = problem.sizes.min(axis=0)
    share = (problem.sizes / np.maximum(problem.capacity.max(axis=0), 1)).max(axis=1, initial=0.0)
    urgency = _urgency(problem)
    for attempt in range(MOST_TRIES):
        if attempt >= LEAST_TRIES and should_stop():
            return None
        room = room_of(problem)
        failed = [u for u in _fill(room, order, scan, smallest).tolist() if not make_room(room, u)]
        if not failed:
            return room.core
        if attempt == 0:  # large nodes first (of one kind after the other), then what failed before them
            by_kind = () if problem.kinds is None else (problem.kinds.of,)
            order = np.lexsort((-share, *by_kind, urgency))
        else:
            rest = order[~np.isin(order, failed)]
            if attempt % 4 == 3:
                shuffle(rng, rest[: len(rest) // 2])
            order = np.concatenate([np.asarray(failed, np.int64), rest])
    return None


def filled(problem: MappingProblem) -> IntArray | None:
    """(n,) int64 core of every node by the first try of :func:`first_fit`, without making room; None if a node finds none.

    It takes a moment, however tight the problem is: for an early answer before a search that does not start from it.
    """
    room, smallest = room_of(problem), problem.sizes.min(axis=0)
    left = _fill(room, _first_order(problem), snake(problem.machine), smallest)
    return None if len(left) else room.core


def snake(machine: Machine) -> IntArray:
    """Core numbers along a path that turns at the edges: through each chip, and from chip to chip.

    A matrix topology has no neighbours to walk to; its cores come in order.
    """
    if machine.distance_matrix is not None:
        return np.arange(machine.size)
    out = []
    for i in range(machine.chips[0]):
        for j in range(machine.chips[1])[:: 1 if i % 2 == 0 else -1]:
            block = np.arange(machine.size).reshape(machine.rows, machine.cols)
            block = block[
                i * machine.cores[0] : (i + 1) * machine.cores[0],
                j * machine.cores[1] : (j + 1) * machine.cores[1],
            ]
            block = block.copy()
            block[1::2] = block[1::2, ::-1]
            out.append(block.ravel())
    return np.concatenate(out)


def _urgency(problem: MappingProblem) -> IntArray:
    """(n,) how early a node must choose: few allowed cores, then apart from many, then the rest."""
    choices = problem.domains.sum(axis=1)[problem.domain_of]
    lonely = np.diff(problem.apart[0]) > 0
    everyone = int(problem.machine.usable.sum())
    out: IntArray = np.where(choices < everyone, choices, everyone + 1 - lonely).astype(np.int64)
    return out


def _first_order(problem: MappingProblem) -> IntArray:
    """Breadth-first order along the edges (the order of the file where these are on disk); nodes with restrictions first."""
    graph = problem.graph
    order = np.arange(problem.n)
    if graph.one_row_per_node and not graph.on_disk:
        order = _breadth_first(graph.indptr, graph.targets)
    out: IntArray = order[np.argsort(_urgency(problem)[order], kind="stable")]
    return out


def make_room(room: Room, u: int) -> bool:
    """Place node ``u`` by a shortest chain of moves of others; True if it worked."""
    return bool(_chain(room, u, CHAIN_WORK))


@kernel
def _breadth_first(indptr: IntArray, targets: Int32Array) -> IntArray:
    n = len(indptr) - 1
    order = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    head, tail = 0, 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            u = order[head]
            head += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = targets[e]
                if not seen[v]:
                    seen[v] = True
                    order[tail] = v
                    tail += 1
    return order


@kernel
def _fill(room: Room, order: IntArray, scan: IntArray, smallest: IntArray) -> IntArray:
    """Give every node the first core of ``scan`` that takes it; returns the nodes that found none.

    Cores at the start of ``scan`` too full for the smallest node are skipped for good.
    """
    stuck = np.empty(len(order), np.int64)
    count, start = 0, 0
    for u in order:
        while start < len(scan):
            full, p = False, scan[start]
            for r in range(len(smallest)):
                full = full or room.capacity[p, r] - room.load[p, r] < smallest[r]
            if not full:
                break
            start += 1
        place = -1
        for k in range(start, len(scan)):
            if fits(room, u, scan[k], -1):
                place = scan[k]
                break
        if place < 0:
            stuck[count] = u
            count += 1
            continue
        put(room, u, place)
    return stuck[:count]


@kernel
def _chain(room: Room, stuck: int, work: int) -> bool:
    """Place ``stuck`` by a shortest chain of moves; True if it worked (``room`` then changed).

    Breadth-first over nodes in search of a core. A core takes at most one node of a chain, so that all room and all
    ``apart`` rules can be judged in the present state: whatever else changes is a node leaving.
    """
    core, domains, domain_of = room.core, room.domains, room.domain_of
    n, cores = len(core), len(room.load)
    head, link = np.full(cores, -1, np.int64), np.full(n, -1, np.int64)
    for v in range(n):
        if core[v] >= 0:
            link[v] = head[core[v]]
            head[core[v]] = v
    parent, queue = np.full(n, -2, np.int64), np.empty(n, np.int64)
    entered = np.zeros(cores, np.bool_)
    queue[0], parent[stuck], done, tail = stuck, -1, 0, 1
    while done < tail and work > 0:
        v = queue[done]
        done += 1
        goal = -1
        for p in range(cores):
            work -= 1
            if p == core[v] or entered[p] or not domains[domain_of[v], p]:
                continue
            if fits(room, v, p, -1):
                goal = p
                break
        if goal >= 0:
            _unwind(room, v, goal, parent)
            return True
        for p in range(cores):
            if p == core[v] or entered[p] or not domains[domain_of[v], p]:
                continue
            w = head[p]
            while w >= 0:
                work -= 1
                if parent[w] == -2 and fits(room, v, p, w):
                    entered[p] = True
                    parent[w] = v
                    queue[tail] = w
                    tail += 1
                w = link[w]
    return False


@plain
def _unwind(room: Room, v: int, goal: int, parent: IntArray) -> None:
    """Move ``v`` to ``goal``, its pusher to where ``v`` was, and so on back to the node that had no core."""
    while v >= 0:
        old = room.core[v]
        put(room, v, goal)
        goal, v = old, parent[v]
