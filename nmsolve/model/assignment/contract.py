"""Networks made smaller without changing what they cost: nodes that another node determines are merged into it.

Where the tables between two nodes leave one strategy of v for every strategy of u, v is u's. Its costs, tables and demands become
those of u; a table between nodes of one class is a cost. Such pairs are what graphs of operators mostly consist of: of the 34,932
nodes of the contest's instance A, 285 remain. Nodes with one strategy left are one node. Every solution of the small network is
one of the network, with the same cost and the same bytes in every memory, and no solution that is allowed is lost.

What was done is a list of steps, which a re-check repeats: a strategy of u that goes with none of v is dropped, or v is merged
into u. Tables that are a sum of two costs become these costs at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.model.assignment import contract_kernels as kernels
from nmsolve.model.assignment.contract_kernels import Maps, Tables
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.types import BoolArray, IntArray, starts

#: Kinds of steps.
DROP, MERGE = 0, 1
#: Entries by which tables may grow in a round, beside as many as there are.
ROOM = 1_000_000


@dataclass(frozen=True, eq=False)
class Contracted:
    """A small network and what it stands for.

    Attributes
    ----------
    network : the small one; its nodes are the classes, ascending by root; two of them have one pair at most, the smaller first
    root : (classes,) node of every class that determines the others
    owner : (N,) class of every node of the network as stated
    map_ptr, maps : what node i does for strategy k of its class: ``maps[map_ptr[i] + k]``
    steps : (K, 3) :data:`DROP` or :data:`MERGE`, node v, node u: strategies of v's class that go with none of u's are dropped,
        or v's class is merged into that of u
    """

    network: CostNetwork
    root: IntArray
    owner: IntArray
    map_ptr: IntArray
    maps: IntArray
    steps: IntArray

    def lift(self, strategy: IntArray) -> IntArray:
        """Return the strategies (N,) of the network as stated."""
        lifted: IntArray = self.maps[self.map_ptr[:-1] + strategy[self.owner]]
        return lifted

    def lower(self, strategy: IntArray) -> IntArray | None:
        """Return the strategies (classes,) of a solution (N,), None if it takes something that is forbidden."""
        ptr = self.network.ptr
        sizes, number = np.diff(ptr), _within(ptr)
        choice = self.maps[np.repeat(self.map_ptr[self.root], sizes) + number]
        same = choice == np.repeat(strategy[self.root], sizes)
        out = np.zeros(len(self.root), np.int64)
        out[np.repeat(np.arange(len(self.root)), sizes)[same]] = number[same]
        return out if (self.lift(out) == strategy).all() else None


def _within(ptr: IntArray) -> IntArray:
    """Return the number of every choice among those of its node."""
    return np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr))


class _State(NamedTuple):
    """A network of classes, their ``root`` nodes, and what they stand for."""

    net: Tables
    root: IntArray
    maps: Maps


_KNOWN: WeakKeyDictionary[CostNetwork, tuple[Contracted | None, IntArray]] = WeakKeyDictionary()


def contracted(network: CostNetwork) -> Contracted | None:
    """Return the small network, made once for each; None if a node has no strategy left, so that there is no solution."""
    return _known(network)[0]


def contraction_steps(network: CostNetwork) -> IntArray:
    """Return the steps (K, 3) of the contraction, also where they show that there is no solution."""
    return _known(network)[1]


def _known(network: CostNetwork) -> tuple[Contracted | None, IntArray]:
    found = _KNOWN.get(network)
    if found is None:
        found = _KNOWN[network] = _contract(network)
    return found


def _contract(network: CostNetwork) -> tuple[Contracted | None, IntArray]:
    every = np.arange(network.count)
    net = Tables(
        network.ptr, np.minimum(network.cost, FORBIDDEN), network.ends, network.table_ptr, network.table
    )
    state = _State(net, every, Maps(network.ptr, _within(network.ptr), every))
    steps: list[IntArray] = []
    while True:
        alive: BoolArray = state.net.cost < FORBIDDEN
        log = np.empty((len(alive), 2), np.int64)
        pruned = log[: kernels.prune(state.net, alive, np.ones(len(state.root), bool), log)]
        left = np.add.reduceat(alive, state.net.ptr[:-1], dtype=np.int64)
        steps.append(np.column_stack([np.full(len(pruned), DROP), state.root[pruned]]))
        if not left.all():
            return None, np.concatenate(steps)
        parent, via, top = _forest(state.net, alive, left)
        hanging = np.flatnonzero(parent >= 0)
        merged = state.root[np.column_stack([hanging, parent[hanging]])]
        steps.append(np.column_stack([np.full(len(merged), MERGE), merged]))
        if not len(hanging) and alive.all():
            done = np.concatenate(steps)
            return _finished(network, state, done), done
        state = _next(state, alive, left, parent, via, top)


def _forest(net: Tables, alive: BoolArray, left: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (N,) parents, the pairs that say so, and roots; see :func:`.contract_kernels.forest`."""
    n, (u, v) = len(left), net.ends.T
    said = np.empty(len(u), np.int64)
    kernels.relations(net, alive, said)
    around = np.zeros(n)
    np.add.at(around, u, left[v])
    np.add.at(around, v, left[u])
    growth = np.stack([(left[u] - left[v]) * around[v], (left[v] - left[u]) * around[u]])
    parent, via, top = np.empty((3, n), np.int64)
    room = len(net.table) + ROOM
    growth = np.minimum(growth, FORBIDDEN).astype(np.int64)
    kernels.forest(net.ends, said, left == 1, growth, parent, via, top, room)
    return parent, via, top


def _next(
    state: _State, alive: BoolArray, left: IntArray, parent: IntArray, via: IntArray, top: IntArray
) -> _State:
    """Return the network of the new classes."""
    roots = np.flatnonzero(parent < 0)
    number = np.full(len(parent), -1)
    number[roots] = np.arange(len(roots))
    inner = _empty_maps(left[top], number[top])
    kernels.find_maps(state.net, alive, parent, via, inner)
    owner = inner.root[state.maps.root]
    maps = _empty_maps(left[roots][owner], owner)
    kernels.compose(state.maps, inner, maps)
    return _State(_summed(state.net, inner, _ptr(left[roots])), state.root[roots], maps)


def _empty_maps(sizes: IntArray, root: IntArray) -> Maps:
    ptr = _ptr(sizes)
    return Maps(ptr, np.empty(ptr[-1], np.int64), root)


def _summed(old: Tables, maps: Maps, ptr: IntArray) -> Tables:
    """Return the network of the roots, all costs and tables added up."""
    a, b = maps.root[old.ends].T
    outside = np.flatnonzero(a != b)
    key = np.minimum(a, b) * len(ptr) + np.maximum(a, b)
    group = np.full(len(a), -1)
    pairs, group[outside] = np.unique(key[outside], return_inverse=True)
    ends = np.column_stack([pairs // len(ptr), pairs % len(ptr)])
    sizes = np.diff(ptr)
    table_ptr = _ptr(sizes[ends[:, 0]] * sizes[ends[:, 1]])
    new = Tables(ptr, np.zeros(ptr[-1], np.int64), ends, table_ptr, np.zeros(table_ptr[-1], np.int64))
    kernels.add_costs(old, maps, new)
    kernels.add_tables(old, maps, group, a > b, new)
    return new


def _finished(network: CostNetwork, state: _State, steps: IntArray) -> Contracted:
    """Make two nodes one pair, fold sums of two costs into the nodes, and add the demands."""
    ptr = state.net.ptr
    net = _summed(state.net, Maps(ptr, _within(ptr), np.arange(len(state.root))), ptr)
    gone = np.zeros(len(net.ends), bool)
    kernels.fold(net, gone)
    sizes = np.diff(net.table_ptr)
    small = CostNetwork(
        network.name, net.ptr, net.cost, net.ends[~gone], _ptr(sizes[~gone]), net.table[np.repeat(~gone, sizes)],
        _demand(network, state), network.capacity, network.constant,
    )  # fmt: skip
    return Contracted(small, state.root, state.maps.root, state.maps.ptr, state.maps.values, steps)


def _demand(network: CostNetwork, state: _State) -> IntArray:
    """Return the demands of the classes' strategies; those of one choice and interval are one."""
    demand = network.demand[network.demand[:, 1] < network.demand[:, 2]]
    demand = demand[np.argsort(demand[:, 0], kind="stable")]
    first = np.searchsorted(demand[:, 0], np.arange(network.ptr[-1] + 1))
    out = np.empty((0, 5), np.int64)
    for _ in range(2):
        rows = kernels.spread_demand(demand, first, network.ptr, state.maps, state.net.ptr, out)
        out = out if len(out) else np.empty((rows, 5), np.int64)
    if not len(out):
        return out
    out = out[np.lexsort(out[:, [2, 1, 4, 0]].T)]
    begins = np.flatnonzero(np.r_[True, (np.diff(out[:, [0, 1, 2, 4]], axis=0) != 0).any(axis=1)])
    amount = np.add.reduceat(out[:, 3], begins)
    out = out[begins]
    out[:, 3] = amount
    return out


def _ptr(sizes: IntArray) -> IntArray:
    return starts(sizes)
