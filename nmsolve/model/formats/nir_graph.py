"""Neuromorphic Intermediate Representation ``.nir`` (Pedersen et al., Nature Communications 15:8122, 2024).

Populations of neurons, and the input, become nodes, one per element; what is between them (weights, convolutions,
pooling, and what acts on single elements) becomes connections, one wherever a weight is not zero.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes
from nmsolve.model.formats.hdf5 import damage, opened, package
from nmsolve.model.formats.nir_layers import MATRICES, Shape, matrix, shape_behind
from nmsolve.model.graph import LogicGraph

NEURONS = ("IF", "LIF", "CubaLIF", "CubaLI", "LI", "I")
#: What acts on every element alone, and so passes connections on.
PASSING = ("Scale", "Delay", "Threshold", "Flatten", "Input", "Output")


def load(path: Path) -> LogicGraph:
    """Read a NIR graph: directed, every neuron multicasts once per step, each connection weighs 1.

    Ids are ``node/number`` with the element's number in row-major order; a node's ``synapses`` are the connections that
    end there. Nodes inside a subgraph are called ``subgraph.node``. Weights that are 0 are not connections. The output is no
    neuron. Read into memory, not streamed.

    Raises
    ------
    InputError : the package nir is not installed; a damaged file, a kind of node that is not known here, shapes that do
        not fit, a cycle without neurons
    """
    package("nir", "nir", path)
    populations, ends = one_reply(partial(_read, path), path)
    n, receivers = sum(size for _, size in populations), ends["target"]
    return LogicGraph.from_edges(
        n, ends["source"], receivers,
        multicast=np.ones(n, bool), rate=np.ones(n), resources=("neurons", "synapses"),
        sizes=np.stack([np.ones(n, np.int64), np.bincount(receivers, minlength=n)], axis=1),
        ids=tuple(f"{name}/{i}" for name, size in populations for i in range(size)), name=path.stem,
    )  # fmt: skip


def _read(path: Path) -> Reply:
    """Name and size of every population, and numbers of the neurons at both ends of every connection."""
    nir = package("nir", "nir", path)
    with opened(path, "nir"):
        pass  # no data set promises more than there is, or lies elsewhere
    with damage(path):
        content = nir.read(path, type_check=False)
        graph = _Flat(str(path), believed_nodes(path.stat().st_size))
        graph.add(content, "")
        return _expanded(graph)


@dataclass
class _Flat:
    """The graph without subgraphs: nodes by name, and the names of those before each.

    ``most`` is how many neurons are believed; ``inputs`` are the inputs of the whole graph, whose elements send like
    neurons.
    """

    path: str
    most: int
    nodes: dict[str, Any] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def add(self, graph: Any, prefix: str) -> None:
        """Add a graph, and the graphs in it."""
        enter: dict[str, list[str]] = {}
        leave: dict[str, list[str]] = {}
        for name, node in graph.nodes.items():
            full = prefix + name
            if type(node).__name__ == "NIRGraph":
                self.add(node, f"{full}.")
                inside = [(f"{full}.{k}", type(v).__name__) for k, v in node.nodes.items()]
                enter[name] = [k for k, kind in inside if kind == "Input"]
                leave[name] = [k for k, kind in inside if kind == "Output"]
                continue
            if type(node).__name__ not in (*NEURONS, *PASSING, *MATRICES):
                raise self.wrong(
                    full, f"has the kind {type(node).__name__}", ", ".join((*NEURONS, *PASSING, *MATRICES))
                )
            self.nodes[full], self.before[full] = node, []
            enter[name] = leave[name] = [full]
            if not prefix and type(node).__name__ == "Input":
                self.inputs.add(full)
        for a, b in dict.fromkeys(tuple(edge) for edge in graph.edges):
            if a not in leave or b not in enter:
                raise InputError(f"an edge joins {a!r} and {b!r}", self.path, "two nodes of the graph")
            for to in enter[b]:
                self.before[to] += leave[a]

    def sends(self, name: str) -> bool:
        """Return whether its elements are nodes of the logic graph."""
        return name in self.inputs or type(self.nodes[name]).__name__ in NEURONS

    def wrong(self, name: str, what: str, expected: str) -> InputError:
        """Return an error at a node."""
        return InputError(f"node {name!r} {what}", self.path, expected)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """What a layer does not take becomes an error at its node."""
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:
            raise self.wrong(name, f"does not fit ({error})", "a layer that fits its input") from None

    def shape(self, name: str, asked: tuple[str, ...] = ()) -> Shape:
        """Return the shape of what a node gives out; from its own parameters if they say, else from what comes in."""
        if name not in self.shapes:
            if name in asked:
                raise self.wrong(
                    name, "is on a cycle of nodes without a shape", "neurons with one value per element"
                )
            own = (self.nodes[name].output_type or {}).get("output")
            shape = () if own is None else tuple(int(v) for v in np.atleast_1d(own))
            known = shape and (int(np.prod(shape)) > 1 or not self.before[name])
            if type(self.nodes[name]).__name__ in MATRICES or not known:
                if not self.before[name]:
                    raise self.wrong(name, "has no shape and nothing before it", "an input with a shape")
                incoming = self.shape(self.before[name][0], (*asked, name))
                with self.at(name):
                    shape = shape_behind(self.nodes[name], incoming)
            if min(shape) < 1:
                raise self.wrong(name, f"has shape {shape}", "numbers >= 1")
            self.shapes[name] = shape
        return self.shapes[name]

    def size(self, name: str) -> int:
        """Return the number of elements."""
        return int(np.prod(self.shape(name), dtype=object))


def _expanded(graph: _Flat) -> Reply:
    """Return one node per element of every population, and what is connected."""
    populations = [node for node in graph.nodes if graph.sends(node)]
    between = _order(graph, [node for node in graph.nodes if not graph.sends(node)])
    first, n = {}, 0
    for p in populations:
        first[p] = n
        n += graph.size(p)
    if not 1 <= n <= graph.most:
        raise InputError(
            f"there are {n} neurons", graph.path, f"from 1 to {graph.most} in a file of this size"
        )
    matrices = {}
    for node in between:
        if graph.before[node] and type(graph.nodes[node]).__name__ in MATRICES:
            with graph.at(node):
                matrices[node] = matrix(graph.nodes[node], graph.shape(graph.before[node][0]))
    source, target = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for p in populations:
        reach: dict[str, sparse.csr_array] = {p: sparse.eye_array(graph.size(p), dtype=bool, format="csr")}
        for node in between:
            if (into := _into(graph, node, reach)) is not None:
                if node in matrices:
                    with graph.at(node):
                        into = matrices[node] @ into
                reach[node] = into
        for q in populations:
            if (into := _into(graph, q, reach)) is not None:
                ends = into.tocoo()
                source.append(ends.col.astype(np.int64) + first[p])
                target.append(ends.row.astype(np.int64) + first[q])
    sizes = [(str(p), graph.size(p)) for p in populations]
    return Reply(sizes, {"source": np.concatenate(source), "target": np.concatenate(target)})


def _order(graph: _Flat, between: list[str]) -> list[str]:
    """Return the nodes without neurons, each after those before it."""
    inside = set(between)
    try:
        sorter = graphlib.TopologicalSorter({b: [a for a in graph.before[b] if a in inside] for b in between})
        return list(sorter.static_order())
    except graphlib.CycleError as error:
        names = ", ".join(error.args[1][:4])
        raise InputError(
            f"the nodes {names} form a cycle without neurons", graph.path, "a neuron in it"
        ) from None


def _into(graph: _Flat, node: str, reach: dict[str, sparse.csr_array]) -> sparse.csr_array | None:
    """Return which elements of the population come in where, or None; what comes from several nodes is added up."""
    out = None
    for before in graph.before[node]:
        if before in reach:
            out = reach[before] if out is None else _either(graph, node, out, reach[before])
    if (
        out is not None
        and type(graph.nodes[node]).__name__ not in MATRICES
        and out.shape[0] != graph.size(node)
    ):
        raise graph.wrong(node, f"has {graph.size(node)} elements, {out.shape[0]} come in", "equal numbers")
    return out


def _either(graph: _Flat, node: str, a: sparse.csr_array, b: sparse.csr_array) -> sparse.csr_array:
    if a.shape != b.shape:
        raise graph.wrong(node, f"gets {a.shape[0]} and {b.shape[0]} elements", "equal numbers")
    out: sparse.csr_array = a + b
    return out
