"""The logic graph: what talks to what, and how much room each node takes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen, read_only

#: Threads that decode ahead where all messages of a graph on disk are looked at; no result depends on it.
READERS = min(4, os.cpu_count() or 1)
#: Edges that are looked at at once where that takes memory.
PIECE = 2**17
#: Most edges whose symmetric traffic is made where something else will do; it takes 24 bytes per edge.
MOST_EDGES = 20_000_000
#: Fewer edges than this are sorted without SciPy, whose import takes longer.
FEW_EDGES = 100_000


class Rows(NamedTuple):
    """Consecutive messages of a graph, as :meth:`LogicGraph.blocks` hands them out.

    ``first`` is the number of the first one; ``indptr`` (k + 1,) starts at 0 and cuts ``targets`` and ``weights`` into
    rows; ``source``, ``multicast`` and ``rate`` (k,) are those of the rows. Types as in :class:`LogicGraph`. Kernels take it
    whole.
    """

    first: int
    indptr: IntArray
    source: Int32Array
    targets: Int32Array
    weights: FloatArray
    multicast: BoolArray
    rate: FloatArray

    @property
    def fixed(self) -> Rows:
        """The same messages in read-only arrays: the one form that kernels are compiled for."""
        return Rows(
            self.first, read_only(self.indptr), read_only(self.source), read_only(self.targets), read_only(self.weights),
            read_only(self.multicast), read_only(self.rate),
        )  # fmt: skip


class NodeKinds(NamedTuple):
    """Kinds of nodes: neuron models, or populations with parameters of their own (``kinds_per_core`` of machines).

    ``names`` in the order in which nodes first have them; ``of`` (n,) int32 is the number of each node's kind.
    """

    names: tuple[str | int, ...]
    of: Int32Array


def node_kinds(values: Sequence[str | int]) -> NodeKinds:
    """Return the kinds of nodes, one value for each."""
    number: dict[str | int, int] = {}
    of = np.fromiter((number.setdefault(v, len(number)) for v in values), np.int32, len(values))
    return NodeKinds(tuple(number), frozen(of))


class Nodes(TypedDict, total=False):
    """What may be said of the nodes of a graph that is built; types as in :class:`LogicGraph`.

    ``resources`` are ``("neurons",)`` if not given, ``sizes`` 1 of each resource, ``name`` is ``"graph"``.
    """

    resources: tuple[str, ...]
    sizes: IntArray | None
    ids: tuple[str | int, ...] | None
    name: str
    meta: dict[str, object] | None
    kinds: NodeKinds | None


def _whole(n: int, nodes: Nodes) -> dict[str, Any]:
    """Return ``nodes`` as fields of :class:`LogicGraph`, with what was not given."""
    resources, sizes = nodes.get("resources", ("neurons",)), nodes.get("sizes")
    sizes = np.ones((n, len(resources)), np.int64) if sizes is None else sizes
    return {
        **nodes, "resources": resources, "sizes": np.ascontiguousarray(sizes, np.int64), "meta": nodes.get("meta") or {},
    }  # fmt: skip


class Messages(Protocol):
    """What evaluators need of a graph: its messages, block by block, between nodes ``0..n - 1``."""

    @property
    def n(self) -> int:
        """Number of nodes."""

    @property
    def name(self) -> str:
        """For people."""

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """All messages in order; every call starts again."""


@dataclass(frozen=True, eq=False)
class LogicGraph:
    """A directed, weighted graph of logical nodes, stored as *messages* (compressed sparse rows).

    Row ``i`` is a message: it leaves node ``source[i]`` and reaches ``targets[indptr[i]:indptr[i+1]]``.
    In an ordinary graph there is exactly one row per node, in node order (``source == arange(n)``);
    a hypergraph file (hMETIS) has one row per net. A *multicast* row (M1.1) is one message to all its
    targets; any other row is one message per edge.

    Self-loops are dropped and parallel edges of one row are summed by :meth:`from_edges`: a message that
    stays inside its node never enters the network.

    Attributes
    ----------
    n : number of nodes
    indptr : (rows + 1,) int64
    targets : (m,) int32 node indices, strictly increasing inside a row
    weights : (m,) float64 >= 0, traffic per inference or time step
    source : (rows,) int32
    multicast : (rows,) bool
    rate : (rows,) float64 >= 0, messages per step of a multicast row; for other rows the largest weight
        of the row (used by connectivity, which counts a row once per destination core)
    resources : names of what a core must hold, e.g. ``("neurons", "synapses")``
    sizes : (n, len(resources)) int64 >= 0
    ids : node ids as the user wrote them (str or int), length n, or None for 0..n-1
    directed : False if the input format was undirected; each edge is then stored once, from the lower index
    name : for people
    meta : what a file said about its machine: ``mesh`` [rows, cols], ``capacity`` {resource: int}
    kinds : what kind of neuron each node is, or None if that is not said
    """

    n: int
    indptr: IntArray
    targets: Int32Array
    weights: FloatArray
    source: Int32Array
    multicast: BoolArray
    rate: FloatArray
    resources: tuple[str, ...]
    sizes: IntArray
    ids: tuple[str | int, ...] | None = None
    directed: bool = True
    name: str = "graph"
    meta: dict[str, object] = field(default_factory=dict)
    kinds: NodeKinds | None = None

    def __post_init__(self) -> None:
        self._check()
        for a in self._arrays:
            frozen(a)

    @property
    def _arrays(self) -> tuple[AnyArray, ...]:
        return self.indptr, self.targets, self.weights, self.source, self.multicast, self.rate, self.sizes

    def _check(self) -> None:
        if self.n < 1:
            raise InputError("the graph has no nodes", self.name, "at least one node")
        try:  # what cannot be written must not be found out after a search
            names = (*(self.ids or ()), *(self.kinds.names if self.kinds else ()))
            "".join((self.name, *self.resources, *(v for v in names if isinstance(v, str)))).encode()
        except UnicodeEncodeError as error:
            found = str(error.object)[error.start : error.end]
            raise InputError(f"a name contains {found!r}, not valid text", self.name, "UTF-8") from None
        if self.kinds is not None:
            check_kinds(self.kinds, self.n, self.name)
        if self.sizes.shape != (self.n, len(self.resources)):
            raise InputError(
                f"sizes have shape {self.sizes.shape}", self.name, f"({self.n}, {len(self.resources)})"
            )
        if self.sizes.size and self.sizes.min() < 0:
            u, r = (int(v) for v in np.argwhere(self.sizes < 0)[0])
            raise InputError(
                f"node {self.node_id(u)!r} has size {self.sizes[u, r]} {self.resources[r]}", self.name, ">= 0"
            )
        if len(self.targets) and (self.targets.min() < 0 or self.targets.max() >= self.n):
            raise InputError("an edge leads to an unknown node", self.name, f"indices 0..{self.n - 1}")
        for what, values in (("weight", self.weights), ("rate", self.rate)):
            if len(values) and not (np.isfinite(values).all() and values.min() >= 0):
                bad = values[~(np.isfinite(values) & (values >= 0))][0]
                raise InputError(f"a {what} is {bad}", self.name, "a finite number >= 0")

    @classmethod
    def from_edges(
        cls,
        n: int,
        source: Sequence[int] | IntArray,
        target: Sequence[int] | IntArray,
        weight: Sequence[float] | FloatArray | None = None,
        *,
        directed: bool = True,
        multicast: BoolArray | None = None,
        rate: FloatArray | None = None,
        **nodes: Unpack[Nodes],
    ) -> LogicGraph:
        """Build an ordinary graph (one row per node) from an edge list.

        Undirected edges are stored from the lower to the higher index and must be given once each; giving
        both directions sums them.

        Parameters
        ----------
        n : number of nodes
        source, target, weight : (m,) edges; weight 1 if not given
        multicast, rate : (n,) per node; no multicast, and the largest outgoing weight, if not given
        nodes : their resources, sizes and names, as in :class:`Nodes`

        Raises
        ------
        InputError : an index out of range, a negative or non-finite number, wrong shapes
        """
        name = nodes.get("name", "graph")
        src, dst = np.asarray(source, np.int64), np.asarray(target, np.int64)
        w = np.ones(len(src)) if weight is None else np.asarray(weight, np.float64)
        if not len(src) == len(dst) == len(w):
            raise InputError(
                f"{len(src)} sources, {len(dst)} targets, {len(w)} weights", name, "equal lengths"
            )
        if len(src) and (min(src.min(), dst.min()) < 0 or max(src.max(), dst.max()) >= n):
            raise InputError("an edge names an unknown node", name, f"indices 0..{n - 1}")
        if len(w) and not (np.isfinite(w).all() and w.min() >= 0):
            k = int(np.flatnonzero(~(np.isfinite(w) & (w >= 0)))[0])
            raise InputError(
                f"edge {k} ({src[k]} -> {dst[k]}) has weight {w[k]}", name, "a finite number >= 0"
            )
        if not directed:
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        keep = src != dst
        indptr, targets, weights = compress_rows(n, src[keep], dst[keep], w[keep])
        if rate is None:
            rate = row_max(indptr, weights)
        return cls(
            n=n,
            indptr=indptr,
            targets=targets,
            weights=weights,
            source=np.arange(n, dtype=np.int32),
            multicast=np.zeros(n, bool) if multicast is None else np.ascontiguousarray(multicast, bool),
            rate=np.ascontiguousarray(rate, np.float64),
            directed=directed,
            **_whole(n, nodes),
        )

    @classmethod
    def from_nets(
        cls,
        n: int,
        indptr: IntArray,
        pins: IntArray,
        weight: FloatArray | None = None,
        **nodes: Unpack[Nodes],
    ) -> LogicGraph:
        """Build a hypergraph: row ``i`` is a net whose first pin sends one message to all the others.

        ``pins[indptr[i]:indptr[i+1]]`` are the net's nodes, ``weight[i]`` its rate (1 if not given); shapes (nets + 1,), (pins,)
        and (nets,). InputError for an unknown node or a net without pins.
        """
        name, nets = nodes.get("name", "graph"), len(indptr) - 1
        w = np.ones(nets) if weight is None else np.asarray(weight, np.float64)
        pins = np.asarray(pins, np.int64)
        length = np.diff(indptr)
        if len(pins) and (pins.min() < 0 or pins.max() >= n):
            raise InputError("a net names an unknown node", name, f"indices 0..{n - 1}")
        if len(length) and length.min() < 1:
            raise InputError(f"net {int(np.argmin(length))} has no pin", name, "at least one pin per net")
        first = pins[indptr[:-1]]
        row = np.repeat(np.arange(nets), length)
        keep = pins != first[row]
        ptr, targets, _ = compress_rows(nets, row[keep], pins[keep], np.ones(int(keep.sum())), n)
        return cls(
            n=n,
            indptr=ptr,
            targets=targets,
            weights=np.repeat(w, np.diff(ptr)),
            source=first.astype(np.int32),
            multicast=np.ones(nets, bool),
            rate=w,
            directed=False,
            **_whole(n, nodes),
        )

    def node_id(self, u: int) -> str | int:
        """Return the user's id of node ``u``."""
        return u if self.ids is None else self.ids[u]

    @cached_property
    def index_of(self) -> dict[str | int, int]:
        """Node id -> node index."""
        return {v: i for i, v in enumerate(range(self.n) if self.ids is None else self.ids)}

    @property
    def rows(self) -> int:
        """Number of messages (equal to ``n`` in an ordinary graph)."""
        return len(self.source)

    @property
    def m(self) -> int:
        """Number of stored edges (source, target pairs)."""
        return len(self.targets)

    @property
    def on_disk(self) -> bool:
        """True if only :meth:`blocks` gives the messages: ``indptr``, ``targets`` and ``weights`` are not in memory."""
        return False

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """Yield all messages in order, block by block: here one block, without a copy.

        What only ever looks at messages this way also works on a graph on disk; ``workers`` threads then
        decode ahead.
        """
        del workers  # nothing to decode
        yield Rows(0, self.indptr, self.source, self.targets, self.weights, self.multicast, self.rate)

    @cached_property
    def edge_source(self) -> Int32Array:
        """(m,) int32: the sending node of every stored edge."""
        return frozen(np.repeat(self.source, np.diff(self.indptr)).astype(np.int32))

    @cached_property
    def one_row_per_node(self) -> bool:
        """True for ordinary graphs, False for hypergraphs."""
        return self.rows == self.n and bool((self.source == np.arange(self.n)).all())

    @cached_property
    def integral(self) -> bool:
        """True if all weights and rates are whole numbers (objectives are then whole on whole distances)."""
        return bool((self.weights == np.rint(self.weights)).all() and (self.rate == np.rint(self.rate)).all())

    @cached_property
    def traffic(self) -> tuple[IntArray, Int32Array, FloatArray]:
        """Symmetric traffic ``w_uv + w_vu`` as CSR ``(indptr, indices, weights)``, each pair stored twice.

        ``sum(weights) / 2`` is the total traffic between different nodes.
        """
        from nmsolve.model.symmetric import symmetric_rows

        both = symmetric_rows(self.indptr, self.targets, self.weights) if self.one_row_per_node else None
        if both is None:
            src, dst = self.edge_source.astype(np.int64), self.targets.astype(np.int64)
            ends = np.concatenate([src, dst]), np.concatenate([dst, src])
            both = compress_rows(self.n, *ends, np.tile(self.weights, 2))
        ptr, ind, w = both
        return frozen(ptr), frozen(ind), frozen(w)

    @cached_property
    def hash(self) -> str:
        """Content hash (hex, 16 digits) of everything that decides what a mapping is worth."""
        digests = [array_digest(a) for a in self._arrays]
        return combined_hash(self.n, self.directed, self.resources, self.ids, digests, self.kinds)


def check_kinds(kinds: NodeKinds, n: int, where: str) -> None:
    """Raise InputError unless ``kinds`` says of each of ``n`` nodes one of its names, which are all different and used."""
    if kinds.of.shape != (n,):
        raise InputError(f"kinds of {len(kinds.of)} nodes", where, f"{n}, one per node")
    used = np.unique(kinds.of)
    if len(set(kinds.names)) != len(kinds.names) or not np.array_equal(used, np.arange(len(kinds.names))):
        raise InputError(
            "kinds that repeat, or that no node has", where, "different names, each of some node"
        )


def pieces(graph: Messages, most: int = PIECE) -> Iterator[tuple[Rows, IntArray]]:
    """Yield chunks of rows with at most ``most`` edges (a longer row is a chunk of its own).

    Beside each chunk comes (edges,) the number of every edge's row in the chunk.
    """
    for block in graph.blocks(READERS):
        first, end = 0, len(block.source)
        while first < end:
            last = int(np.searchsorted(block.indptr, block.indptr[first] + most, side="right")) - 1
            last = min(max(last, first + 1), end)
            own, edges = slice(first, last), slice(int(block.indptr[first]), int(block.indptr[last]))
            rows = Rows(
                block.first + first, block.indptr[first : last + 1] - edges.start, block.source[own],
                block.targets[edges], block.weights[edges], block.multicast[own], block.rate[own],
            )  # fmt: skip
            yield rows, np.repeat(np.arange(last - first), np.diff(rows.indptr))
            first = last


def array_digest(array: AnyArray) -> bytes:
    """Return the SHA-256 of an array of any shape."""
    return hashlib.sha256(np.ascontiguousarray(array).data).digest()


def combined_hash(
    n: int,
    directed: bool,
    resources: tuple[str, ...],
    ids: tuple[str | int, ...] | None,
    digests: Iterable[bytes],
    kinds: NodeKinds | None = None,
) -> str:
    """:attr:`LogicGraph.hash` from digests of indptr, targets, weights, source, multicast, rate and sizes.

    One digest each, so that it can be computed while the connections pass by (:mod:`nmsolve.model.store.writer`).
    """
    h = hashlib.sha256(repr((n, directed, resources, ids)).encode())
    for digest in digests:
        h.update(digest)
    if kinds is not None:
        h.update(repr(kinds.names).encode() + array_digest(kinds.of))
    return h.hexdigest()[:16]


def row_max(indptr: IntArray, weights: FloatArray) -> FloatArray:
    """Return (rows,) the largest weight of every row, 0 for empty rows."""
    out = np.zeros(len(indptr) - 1)
    full = np.diff(indptr) > 0
    if full.any():
        out[full] = np.maximum.reduceat(weights, indptr[:-1][full])
    return out


def compress_rows(
    rows: int, src: IntArray, dst: IntArray, w: FloatArray, cols: int | None = None
) -> tuple[IntArray, Int32Array, FloatArray]:
    """Convert an edge list (m,) to CSR (rows + 1,), (k,), (k,) with sorted rows and summed duplicates."""
    if len(src) < FEW_EDGES:
        key = src.astype(np.int64) * max(1, cols or rows) + dst
        order = np.argsort(key)
        if (np.diff(key[order]) > 0).all():  # no duplicates
            indptr: IntArray = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=rows))])
            return indptr, dst[order].astype(np.int32), w[order].astype(np.float64)
    from scipy.sparse import coo_array

    csr = coo_array((w, (src, dst)), shape=(rows, cols or rows)).tocsr()
    csr.sum_duplicates()
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data.astype(np.float64)
