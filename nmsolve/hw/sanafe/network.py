"""The network file of SANA-FE: neurons that fire at the rates of the graph's messages, edges, and the core of every neuron.

SANA-FE has no neuron that fires at a given rate and takes input as well, so every neuron integrates a constant bias and synapses
carry no weight. A neuron fires when its potential exceeds ``THRESHOLD``, which is then taken off. SANA-FE cuts potentials to
whole 64ths in every step; biases are multiples of that, so a neuron fires ``floor((phase + steps * bias) / THRESHOLD)`` times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from nmsolve.hw.sanafe.architecture import tile_of
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Potential at which a neuron fires.
THRESHOLD = 2**14
#: SANA-FE's smallest difference of potentials.
GRID = 1 / 64
#: Phases that fill [0, 1) evenly, so that neurons of one rate do not all fire in the same step.
GOLDEN = (5**0.5 - 1) / 2


class Senders:
    """The neuron that sends each message: the node, or, from its second message on, a neuron ``more.j`` of its own.

    Attributes
    ----------
    node : (n + extra,) the node whose core a neuron is on
    rate : (n + extra,) messages per step
    of_row : (rows,) neuron of every row
    """

    def __init__(self, graph: LogicGraph) -> None:
        source = np.concatenate([np.zeros(0, np.int64), *(rows.source for rows in graph.blocks())]).astype(
            np.int64
        )
        rate = np.concatenate([np.zeros(0), *(rows.rate for rows in graph.blocks())])
        _, first = np.unique(source, return_index=True)
        own = np.zeros(len(source), bool)
        own[first] = True
        self.of_row: IntArray = np.where(own, source, graph.n + np.cumsum(~own) - 1)
        self.node: IntArray = np.concatenate([np.arange(graph.n), source[~own]])
        self.rate: FloatArray = np.zeros(len(self.node))
        self.rate[self.of_row] = rate
        self._nodes = graph.n

    def names(self) -> list[str]:
        """``nodes.i`` or ``more.j`` for every neuron."""
        extra = len(self.node) - self._nodes
        return [f"nodes.{i}" for i in range(self._nodes)] + [f"more.{j}" for j in range(extra)]


def drive(rate: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Bias and first potential of neurons that send ``rate`` messages per step of the graph, ``steps`` steps of SANA-FE."""
    bias = np.rint(rate / steps * THRESHOLD / GRID) * GRID
    phase = np.floor((np.arange(len(rate)) * GOLDEN) % 1.0 * THRESHOLD / GRID) * GRID
    return bias, np.where(bias > 0, phase + GRID, 0.0)


def network(
    graph: LogicGraph, machine: Machine, core: IntArray, senders: Senders, steps: int
) -> Iterator[str]:
    """The text of the file, piece by piece; flow style, an entry per line."""
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
    between = ""
    for rows in graph.blocks():
        row = np.repeat(senders.of_row[rows.first : rows.first + len(rows.source)], np.diff(rows.indptr))
        if len(row):
            pairs = zip(row.tolist(), rows.targets.tolist(), strict=True)
            yield between + ",\n".join(
                f'{{"{names[s]} -> nodes.{t}": [{{"weight": 0.0}}]}}' for s, t in pairs
            )
            between = ",\n"
    yield '\n]},\n"mappings": [\n'
    tile = tile_of(machine, core[senders.node]).tolist()
    yield ",\n".join(f'{{"{name}": [{{"core": "{t}.0"}}]}}' for name, t in zip(names, tile, strict=True))
    yield "\n]}\n"
