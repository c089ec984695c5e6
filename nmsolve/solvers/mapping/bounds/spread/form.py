"""A problem as the bound ``spread`` sees it: pairs or messages as a network, and how near k nodes can be to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.cost import whole_costs
from nmsolve.model.compiled import kernel
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    crowded,
    nearest,
    no_core,
    pair_form,
    room_per_core,
    usable_cores,
)
from nmsolve.solvers.mapping.bounds.spread.messages import (
    MAX_PAIRS,
    Messages,
    messages_of,
    pairs_of_messages,
)
from nmsolve.solvers.mapping.bounds.spread.rows import Network
from nmsolve.solvers.mapping.bounds.spread.sets import Grid, grid_of

#: Most usable cores: slots of every core are in memory.
MAX_CORES = 6000
#: Most of them where distances need not obey the triangle inequality.
MAX_GIVEN = 1024
#: Most nodes, and most groups of cores that are told apart by where they lie on the board.
MAX_NODES, GROUPS = 50_000, 24
#: Bytes, of the form and of what is as long as its parts while rows are weighed: per connection, per pair of terminals of
#: messages, per node; per distance of a block, and at most; of kernels that are loaded after these.
CONNECTION_BYTES, TERMINAL_BYTES, NODE_BYTES, DISTANCE_BYTES = 320, 160, 1500, 32
MOST_DISTANCES, KERNELS = 40 << 20, 48 << 20


def _given(problem: MappingProblem) -> str | None:
    """Distances are given or have detours, and between this many cores that what adds up of them takes too long."""
    machine, cores = problem.machine, usable_cores(problem)
    if cores > MAX_GIVEN and (machine.distance_matrix is not None or machine.faulty_links):
        return f"{cores} usable cores, at most {MAX_GIVEN} where distances are given or have detours"
    return None


def _messages(problem: MappingProblem) -> str | None:
    """Messages whose trees need not be as long as distances, or with too many pairs of terminals."""
    machine = problem.machine
    if not problem.uses_nets:
        return None
    if not problem.aim.reach and (machine.distance_matrix is not None or machine.faulty_links):
        return "messages, with given distances or detours"
    pairs = pairs_of_messages(problem)
    return f"up to {pairs} pairs of terminals, at most {MAX_PAIRS}" if pairs > MAX_PAIRS else None


#: Why the bound cannot take a problem, or None.
refuses_spread = takes(
    f"pairs trees reach {LIMITS}", at_most(MAX_CORES, usable_cores, "usable cores"),
    at_most(MAX_NODES, lambda problem: problem.n, "nodes"), no_core, crowded, _given,
    _messages,
)  # fmt: skip


@dataclass(frozen=True)
class SpreadForm:
    """What rows are made of.

    Attributes
    ----------
    n : nodes; ``room`` : the most that one core can hold
    indptr, node, edge : the network as CSR over nodes: neighbour and number of the pair, every pair twice
    weight : (M,) > 0 traffic of every pair, which come in order of their lower, then their higher node; of every message
    least : (G, n) the least sum of distances from a core of every group to k other nodes, k < n
    count : (G,) how many nodes the cores of every group can hold
    group : (cores,) the group of every usable core
    lattice : the objective is a multiple of this; 0 if unknown
    grid : below the machine's distances, where there is one
    messages : the messages of a net objective; without them traffic is charged pair by pair. Of these ``indptr``, ``edge`` are
        CSR over nodes, ``node`` the place among the terminals
    owner : (pairs,) the message of every pair; None without messages
    """

    n: int
    room: int
    indptr: IntArray
    node: IntArray
    edge: IntArray
    weight: FloatArray
    least: FloatArray
    count: FloatArray
    group: IntArray
    lattice: float
    grid: Grid | None
    messages: Messages | None = None
    owner: Int32Array | None = None

    def network(self, length: FloatArray) -> Network:
        """Return the network with these lengths (M,)."""
        if self.messages is None:
            return Network(self.indptr, self.node, self.edge, length)
        m = self.messages
        return Network(self.indptr, self.node, self.edge, length, self.node, m.start, m.node, m.first)

    def bearers(self, pairs: Int32Array) -> Int32Array:
        """Return what bears the traffic of these pairs: they themselves, or their messages."""
        return pairs if self.owner is None else self.owner[pairs]

    def ends(self) -> IntArray:
        """Return (pairs, 2) the lower and the higher node of every pair."""
        if self.messages is not None:
            return self.messages.ends()
        ends = np.empty((len(self.weight), 2), np.int64)
        at = np.repeat(np.arange(self.n), np.diff(self.indptr))
        up = at < self.node
        ends[self.edge[up]] = np.column_stack([at[up], self.node[up]])
        return ends


def spread_form(problem: MappingProblem) -> SpreadForm:
    """Bring a problem that :func:`refuses_spread` takes into :class:`SpreadForm`."""
    form, room = pair_form(problem), min(problem.n, room_per_core(problem))
    sums, count, group = _least_sums(form, room)
    if problem.uses_nets:
        m, lattice = messages_of(problem), float(whole_costs(problem, form.distance))
        indptr, edge, place = m.by_node(problem.n)
        return SpreadForm(
            form.n, room, indptr, place, edge, m.rate, sums, count, group, lattice, None, m, m.owner
        )
    rows, cols = form.rows(), form.indices.astype(np.int64)
    kept = (rows != cols) & (form.weights > 0)
    rows, cols, weight = rows[kept], cols[kept], form.weights[kept]
    low, high = np.minimum(rows, cols), np.maximum(rows, cols)
    _, first, edge = np.unique(low * form.n + high, return_index=True, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=form.n))])
    return SpreadForm(
        form.n, room, indptr.astype(np.int64), cols, edge.astype(np.int64), weight[first], sums, count, group, form.lattice,
        grid_of(problem),
    )  # fmt: skip


def _least_sums(form: PairForm, room: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return ``least``, ``count`` and ``group`` of :class:`SpreadForm`, from distances that obey the triangle inequality.

    Slots of thousands of cores are never there at once.
    """
    cores, slots = len(form.cores), -(-max(0, form.n - room) // room) + 1
    every = np.arange(cores)
    given = [] if form.distance.separable else [(every, _closed(form.block(every)))]
    far = [nearest(block, which, slots).sum(axis=1) for which, block in given or form.blocks()]
    group = _groups(np.concatenate(far))
    least = np.full((int(group.max()) + 1, min(slots, cores)), np.inf)
    for which, block in given or form.blocks():
        np.minimum.at(least, group[which], nearest(block, which, slots))
    count = room * np.bincount(group).astype(np.float64)
    beyond = np.maximum(np.arange(form.n - 1) - (room - 1), -1)
    each = least[:, np.where(beyond < 0, 0, 1 + beyond // room)]
    sums = np.concatenate([np.zeros((len(least), 1)), np.cumsum(each, axis=1)], axis=1)
    return np.ascontiguousarray(sums), count, group


def form_bytes(problem: MappingProblem) -> int:
    """Return the bytes that the bound takes, about, besides its rows and their certificate."""
    pairs = pairs_of_messages(problem) if problem.uses_nets else 0
    block = min(MOST_DISTANCES, DISTANCE_BYTES * usable_cores(problem) ** 2)
    each = CONNECTION_BYTES * problem.graph.m + TERMINAL_BYTES * pairs + NODE_BYTES * problem.n
    return max(KERNELS, block) + each


@kernel
def common_neighbours(indptr: IntArray, node: IntArray, edge: IntArray) -> FloatArray:
    """Return (M,) how many neighbours the two nodes of every pair have in common; of two lists the shorter one is read."""
    n = len(indptr) - 1
    out, seen = np.zeros(len(edge) // 2), np.full(n, -1, np.int64)
    for u in range(n):
        many = indptr[u + 1] - indptr[u]
        for k in range(indptr[u], indptr[u + 1]):
            seen[node[k]] = u
        for k in range(indptr[u], indptr[u + 1]):
            v = node[k]
            few = indptr[v + 1] - indptr[v]
            if few < many or (few == many and v < u):
                for j in range(indptr[v], indptr[v + 1]):
                    out[edge[k]] += seen[node[j]] == u
    return out


@kernel
def _closed(distance: FloatArray) -> FloatArray:
    """Return the largest distances (k, k) up to these that obey the triangle inequality: of shortest ways (Floyd 1962)."""
    d, k = distance.copy(), len(distance)
    for over in range(k):
        for p in range(k):
            for q in range(k):
                d[p, q] = min(d[p, q], d[p, over] + d[over, q])
    return d


def _groups(far: FloatArray) -> IntArray:
    """Return a group of every core by what all others are away (cores,): as many as there are values, at most GROUPS."""
    values, group = np.unique(far, return_inverse=True)
    if len(values) > GROUPS:
        rank = np.argsort(np.argsort(far, kind="stable"), kind="stable")
        group = rank * GROUPS // len(far)
    out: IntArray = group.astype(np.int64)
    return out
