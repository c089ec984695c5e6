"""The network file of SANA-FE: neurons that fire at the rates of the graph's messages, edges, and the core of every neuron.

SANA-FE has no neuron that fires at a given rate and takes input as well, so every neuron integrates a constant bias and synapses
carry no weight. A neuron fires when its potential exceeds ``THRESHOLD``, which is then taken off. SANA-FE cuts potentials to
whole 64ths in every step; biases are multiples of that, so a neuron fires ``floor((phase + steps * bias) / THRESHOLD)`` times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from nmsolve.model.formats.sanafe_own import VERSION
from nmsolve.model.formats.sanafe_text import SECTION
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.tiles import tile_and_place
from nmsolve.model.types import FloatArray, IntArray

#: Potential at which a neuron fires.
THRESHOLD = 2**14
#: SANA-FE's smallest difference of potentials.
GRID = 1 / 64
#: Phases that fill [0, 1) evenly, so that neurons of one rate do not all fire in the same step.
GOLDEN = (5**0.5 - 1) / 2


class Senders:
    """The neurons that send the messages: the node itself, or, from its second sender on, a neuron ``more.j`` of its own.

    SANA-FE sends a message of a neuron to every core that holds a target of it, at the neuron's one rate. A multicast message
    has one sender. The edges of other rows are messages of their own: a sender for every distinct weight, and where several
    edges of one weight go to the same core as many.

    Attributes
    ----------
    node : (n + extra,) the node whose core a neuron is on
    rate : (n + extra,) messages per step
    of_edge : (m,) neuron that sends over every edge, in order of the graph's edges
    """

    def __init__(self, graph: LogicGraph, core: IntArray) -> None:
        owner, rate, of_edge, count = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0, np.int64)], 0
        for rows in graph.blocks():
            row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
            weight = np.where(rows.multicast[row], rows.rate[row], rows.weights)
            again = _earlier(row, weight, core[rows.targets])
            again[rows.multicast[row] | (weight == 0)] = 0
            order = np.lexsort((again, weight, row))
            new = np.ones(len(row), bool)
            for key in (row, weight, again):
                same = key[order[1:]] == key[order[:-1]]
                new[1:] = ~same if key is row else new[1:] | ~same
            sender = np.empty(len(row), np.int64)
            sender[order] = count + np.cumsum(new) - 1
            owner.append(rows.source[row[order[new]]].astype(np.int64))
            rate.append(weight[order[new]])
            of_edge.append(sender)
            count += int(new.sum())
        owners, rates = np.concatenate(owner), np.concatenate(rate)
        own = np.zeros(count, bool)
        own[np.unique(owners, return_index=True)[1]] = True
        neuron = np.where(own, owners, graph.n + np.cumsum(~own) - 1)
        self.node: IntArray = np.concatenate([np.arange(graph.n), owners[~own]])
        self.rate: FloatArray = np.zeros(len(self.node))
        self.rate[neuron] = rates
        self.of_edge: IntArray = neuron[np.concatenate(of_edge)]
        self._nodes = graph.n

    def names(self) -> list[str]:
        """Return ``nodes.i`` or ``more.j`` for every neuron."""
        extra = len(self.node) - self._nodes
        return [f"nodes.{i}" for i in range(self._nodes)] + [f"more.{j}" for j in range(extra)]


def _earlier(row: IntArray, weight: FloatArray, goal: IntArray) -> IntArray:
    """Return (E,) how many edges before each have the same row, weight and core."""
    order = np.lexsort((goal, weight, row))
    first = np.ones(len(row), bool)
    if len(row) > 1:
        a, b = order[1:], order[:-1]
        first[1:] = (row[a] != row[b]) | (weight[a] != weight[b]) | (goal[a] != goal[b])
    place = np.arange(len(row))
    out = np.empty(len(row), np.int64)
    out[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return out


def drive(rate: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return (k,) bias and first potential of neurons that send ``rate`` messages in ``steps`` steps of SANA-FE."""
    bias = np.rint(rate / steps * THRESHOLD / GRID) * GRID
    phase = np.floor((np.arange(len(rate)) * GOLDEN) % 1.0 * THRESHOLD / GRID) * GRID
    return bias, np.where(bias > 0, phase + GRID, 0.0)


def network(
    graph: LogicGraph, machine: Machine, core: IntArray, senders: Senders, steps: int
) -> Iterator[str]:
    """Yield the text of the file for a mapping (n,), in flow style, an entry per line."""
    bias, potential = drive(senders.rate, steps)
    names, n = senders.names(), graph.n
    common = {"soma": {"threshold": float(THRESHOLD), "leak_decay": 1.0, "reset_mode": "soft"}}
    title = json.dumps("".join(c if c.isalnum() else "_" for c in graph.name) or "network")
    yield f'{{"network": {{"name": {title},\n"groups": [\n'
    for group, first, last in (("nodes", 0, n), ("more", n, len(names))):
        if first == last:
            continue
        yield f'{"," if first else ""}{{"name": "{group}", "attributes": [{json.dumps(common)}], "neurons": [\n'
        yield ",\n".join(
            f'{{"{i - first}": [{{"soma": {{"bias": {bias[i]!s}, "potential": {potential[i]!s}}}}}]}}'
            for i in range(first, last)
        )
        yield "\n]}\n"
    yield '],\n"edges": [\n'
    between, done = "", 0
    for rows in graph.blocks():
        mine = senders.of_edge[done : done + len(rows.targets)]
        done += len(mine)
        if len(mine):
            pairs = zip(mine.tolist(), rows.targets.tolist(), strict=True)
            yield between + ",\n".join(
                f'{{"{names[s]} -> nodes.{t}": [{{"weight": 0.0}}]}}' for s, t in pairs
            )
            between = ",\n"
    yield '\n]},\n"mappings": [\n'
    where = (part.tolist() for part in tile_and_place(machine, core[senders.node]))
    yield ",\n".join(
        f'{{"{name}": [{{"core": "{t}.{k}"}}]}}' for name, t, k in zip(names, *where, strict=True)
    )
    yield f'\n],\n"{SECTION}": {json.dumps(section(graph, senders))}}}\n'


def section(graph: LogicGraph, senders: Senders) -> dict[str, object]:
    """Return what our reader needs besides to find the same graph (:mod:`nmsolve.model.formats.sanafe_own`)."""
    rates, multicast = senders.rate.copy(), np.zeros(len(senders.rate), bool)
    silent = np.ones(len(senders.rate), bool)
    silent[senders.of_edge] = False
    weights, done = [np.zeros(0)], 0
    for rows in graph.blocks():
        length = np.diff(rows.indptr)
        of_edge = senders.of_edge[done : done + len(rows.targets)]
        done += len(of_edge)
        multicast[of_edge] = np.repeat(rows.multicast, length)
        weights.append(rows.weights)
        alone = (length == 0) & silent[rows.source]
        multicast[rows.source[alone]], rates[rows.source[alone]] = rows.multicast[alone], rows.rate[alone]
    weight = np.concatenate(weights)
    kinds = graph.kinds
    return {
        "version": VERSION, "name": graph.name, "directed": graph.directed, "resources": list(graph.resources),
        "sizes": graph.sizes.T.tolist(), "more": senders.node[graph.n :].tolist(), "rates": rates.tolist(),
        "multicast": multicast.tolist(), "ids": None if graph.ids is None else list(graph.ids),
        "kinds": None if kinds is None else {"names": list(kinds.names), "of": kinds.of.tolist()},
        "weights": None if (weight == rates[senders.of_edge]).all() else weight.tolist(),
    }  # fmt: skip
