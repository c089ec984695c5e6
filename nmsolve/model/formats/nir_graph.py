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

import numpy as np
from scipy import sparse

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import believed_nodes
from nmsolve.model.formats.hdf5 import opened, package
from nmsolve.model.formats.nir_file import Graph, Node, read_graph
from nmsolve.model.formats.nir_layers import (
    MATRICES,
    Shape,
    matrix,
    own_shape,
    shape_behind,
    size_of,
    spreads,
    takes,
)
from nmsolve.model.formats.populations import Neurons, assembled
from nmsolve.model.graph import LogicGraph

NEURONS = ("IF", "LIF", "CubaLIF", "CubaLI", "LI", "I")


def load(path: Path) -> LogicGraph:
    """Read a NIR graph: directed, every neuron multicasts once per step, each connection weighs 1.

    Ids are ``node/number`` with the element's number in row-major order; a node's ``synapses`` are the connections that
    end there. Nodes inside a subgraph are called ``subgraph.node``. Weights that are 0 are not connections. The output is no
    neuron. Axes of time and batch in front of an input's shape are taken off with a warning, where that fits what it goes into.
    Read into memory, not streamed.

    Raises
    ------
    InputError : the package h5py is not installed; a damaged file, a kind of node that is not known here, shapes that do
        not fit, a cycle without neurons
    """
    package("h5py", "nir", path)
    populations, ends = one_reply(partial(_read, path), path)
    neurons = [Neurons(name, size) for name, size in populations]
    return assembled(path.stem, neurons, [(ends["source"], ends["target"])])


def _read(path: Path) -> Reply:
    """Name and size of every population, and numbers of the neurons at both ends of every connection."""
    with opened(path, "nir") as file:
        graph = _Flat(str(path), believed_nodes(path.stat().st_size))
        graph.add(read_graph(file, str(path)), "")
        for name in sorted(graph.inputs):
            graph.take_off_leading_axes(name)
        return _expanded(graph)


@dataclass
class _Flat:
    """The graph without subgraphs: nodes by name, and the names of those before each.

    ``most`` is how many neurons are believed; ``inputs`` are the inputs of the whole graph, whose elements send like
    neurons.
    """

    path: str
    most: int
    nodes: dict[str, Node] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def add(self, graph: Graph, prefix: str) -> None:
        """Add a graph, and the graphs in it."""
        enter: dict[str, list[str]] = {}
        leave: dict[str, list[str]] = {}
        for name, node in graph.nodes.items():
            full = prefix + name
            if isinstance(node, Graph):
                self.add(node, f"{full}.")
                kinds = {f"{full}.{k}": v.kind for k, v in node.nodes.items() if isinstance(v, Node)}
                enter[name] = [k for k, kind in kinds.items() if kind == "Input"]
                leave[name] = [k for k, kind in kinds.items() if kind == "Output"]
                continue
            if full in self.nodes:
                raise self.wrong(full, "is there twice", "names with dots that no node of a subgraph has")
            self.nodes[full], self.before[full] = node, []
            enter[name] = leave[name] = [full]
            if not prefix and node.kind == "Input":
                self.inputs.add(full)
        for a, b in graph.edges:
            if a not in leave or b not in enter:
                raise InputError(f"an edge joins {a!r} and {b!r}", self.path, "two nodes of the graph")
            self._require_ends(prefix, a, leave[a], "outputs")
            self._require_ends(prefix, b, enter[b], "inputs")
            for to in enter[b]:
                self.before[to] += leave[a]

    def _require_ends(self, prefix: str, name: str, ends: list[str], what: str) -> None:
        """Refuse an edge of a subgraph without such ends; of one with several, an edge goes to all of them."""
        if not ends:
            raise InputError(
                f"the graph {prefix + name!r} has no {what}, but an edge", self.path, f"{what} in it"
            )
        if len(ends) > 1:
            doubtful(
                f"the graph {prefix + name!r} has {len(ends)} {what}, which each edge joins", self.path, "one"
            )

    def sends(self, name: str) -> bool:
        """Return whether its elements are nodes of the logic graph."""
        return name in self.inputs or self.nodes[name].kind in NEURONS

    def take_off_leading_axes(self, name: str) -> None:
        """Find the shape of one step of an input: as much of its end as fits everything that it goes into."""
        with self.at(name):
            whole = own_shape(self.nodes[name])
            taken = [k for k in range(len(whole)) if self._admits(name, whole[k:], set())]
        if not taken or taken[0] == 0:
            return
        self.shapes[name] = whole[taken[0] :]
        doubtful(
            f"the first axes {whole[: taken[0]]} of the shape {whole} of input {name!r} are taken as time or batch",
            self.path, f"the shape of one step, {self.shapes[name]}",
        )  # fmt: skip

    def _admits(self, name: str, shape: Shape, seen: set[str]) -> bool:
        """Return whether what comes after a node takes ``shape``, as far as parameters tell."""
        for after in (k for k, names in self.before.items() if name in names and k not in seen):
            node = self.nodes[after]
            seen.add(after)
            with self.at(after):
                telling = node.kind in MATRICES or size_of(own_shape(node)) > 1
                if node.kind != "Output" and telling:
                    if not takes(node, shape):
                        return False
                elif not self._admits(after, shape_behind(node, shape), seen):
                    return False
        return True

    def wrong(self, name: str, what: str, expected: str) -> InputError:
        """Return an error at a node."""
        return InputError(f"node {name!r} {what}", self.path, expected)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """What a layer does not take becomes an error at its node."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            raise self.wrong(name, f"does not fit ({error})", "a layer that fits its input") from None

    def shape(self, name: str) -> Shape:
        """Return the shape of what a node gives out; from its own parameters if they say, else from what comes in."""
        found = self._shape(name, ())
        if found is None:
            what = (
                "has no shape and nothing before it"
                if not self.before[name]
                else "is on a cycle without a shape"
            )
            raise self.wrong(name, what, "an input with a shape, or neurons with one value per element")
        return found

    def _shape(self, name: str, asked: tuple[str, ...]) -> Shape | None:
        """Return the shape, None if it depends on a node in ``asked`` or on nothing."""
        if name in self.shapes:
            return self.shapes[name]
        node = self.nodes[name]
        with self.at(name):
            own = own_shape(node)
        shape: Shape | None = own if size_of(own) > 1 or (own and not self.before[name]) else None
        port = node.kind in ("Input", "Output")  # of a subgraph, or the end: it passes on what comes in
        if shape is None or 1 in own or port:
            before = (self._shape(k, (*asked, name)) for k in self.before[name] if k not in asked)
            incoming = next((found for found in before if found is not None), None)
            if incoming is not None and (port or spreads(own, incoming)):
                with self.at(name):
                    shape = shape_behind(node, incoming)
        if shape is None:
            return None
        if min(shape, default=1) < 1:
            raise self.wrong(name, f"has shape {shape}", "numbers >= 1")
        if port and size_of(own) != size_of(shape) and own[-len(shape) :] != shape:
            raise self.wrong(name, f"has shape {own}, {shape} comes in", "equal shapes")
        self.shapes[name] = shape
        return shape

    def size(self, name: str) -> int:
        """Return the number of elements."""
        return size_of(self.shape(name))


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
        if graph.before[node] and graph.nodes[node].kind in MATRICES:
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
    if out is not None and graph.nodes[node].kind not in MATRICES and out.shape[0] != graph.size(node):
        raise graph.wrong(node, f"has {graph.size(node)} elements, {out.shape[0]} come in", "equal numbers")
    return out


def _either(graph: _Flat, node: str, a: sparse.csr_array, b: sparse.csr_array) -> sparse.csr_array:
    if a.shape != b.shape:
        raise graph.wrong(node, f"gets {a.shape[0]} and {b.shape[0]} elements", "equal numbers")
    out: sparse.csr_array = a + b
    return out
