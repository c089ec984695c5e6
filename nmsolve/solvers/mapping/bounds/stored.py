"""The Laplacian of a graph on disk: multiplied with blocks of vectors by passes over its connections.

Every connection is looked at once per product and serves both of its ends, so the file is read as it is, whatever it lists.
Connections stay in memory where there is room for them (8 bytes each), numbered so that neighbours lie near each other;
otherwise every product reads the file. Vectors are few and long: products change one block in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import compiled, plain
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray, frozen
from nmsolve.solvers.mapping.bounds.chebyshev import StoppedError
from nmsolve.solvers.mapping.bounds.nets import ChargedEdges
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop

#: Bytes of a connection that is held, and connections between two looks at the clock.
EDGE_BYTES, PIECE = 8, 1 << 18
#: Rows that are multiplied at once where vectors of a block are combined.
CHUNK = 4096
#: Steps of Lanczos for the largest eigenvalue, and by how much its estimate is raised.
LANCZOS, RAISED = 16, 1.05


#: What connections are read from.
Connections = LogicGraph | ChargedEdges


class Piece(NamedTuple):
    """Connections of some nodes: ``source[i]`` and ``targets[indptr[i]:indptr[i + 1]]`` exchange ``weights`` (float32)."""

    indptr: IntArray
    source: Int32Array
    targets: Int32Array
    weights: AnyArray


def held_bytes(graph: Connections) -> int:
    """Return the bytes that all connections of a graph take in memory, and what sorting them takes."""
    return EDGE_BYTES * graph.m + 40 * (graph.n + 1)


@dataclass(frozen=True, eq=False)
class StoredLaplacian:
    """The Laplacian of the symmetric traffic of ``graph``; weights are rounded to single precision.

    Attributes
    ----------
    workers : threads that decode ahead
    order : (n,) the graph's number of every node here
    held : all connections, or None: they are read in every product
    degree : (n,) float64, the diagonal
    """

    graph: Connections
    workers: int
    should_stop: ShouldStop
    order: IntArray
    held: Piece | None
    degree: FloatArray

    @classmethod
    def of(
        cls, graph: Connections, workers: int, memory: float, core: IntArray | None, should_stop: ShouldStop
    ) -> StoredLaplacian:
        """Read the graph once or twice; ``memory`` (bytes) is what connections may take.

        ``core`` (n,) : a mapping; nodes of the same core are numbered together. Raises StoppedError.
        """
        held = held_bytes(graph) <= memory
        order = np.arange(graph.n) if core is None or not held else np.argsort(core, kind="stable")
        degree, room = np.zeros(graph.n), np.zeros(graph.n + 1, np.int64)
        for piece in _read(graph, workers, should_stop):
            _degrees(*piece, degree, room)
        if not held:
            return cls(graph, workers, should_stop, order, None, degree)
        place = np.empty(graph.n, np.int32)
        place[order] = np.arange(graph.n, dtype=np.int32)
        indptr = np.zeros(graph.n + 1, np.int64)
        np.cumsum(room[1:][order], out=indptr[1:])
        end = indptr[:-1].copy()
        targets, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        for piece in _read(graph, workers, should_stop):
            _place(*piece, place, end, targets, weights)
        source = np.arange(graph.n, dtype=np.int32)
        whole = Piece(frozen(indptr), frozen(source), frozen(targets), weights)
        return cls(graph, workers, should_stop, order, whole, degree[order])

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.graph.n, self.graph.n

    def diagonal(self) -> FloatArray:
        """(n,) the diagonal."""
        return self.degree

    def pieces(self) -> Iterator[Piece]:
        """Yield all connections once. Raises StoppedError."""
        if self.held is None:
            yield from _read(self.graph, self.workers, self.should_stop)
            return
        whole = self.held
        cuts = np.searchsorted(whole.indptr, np.arange(0, whole.indptr[-1], PIECE))
        for first, end in zip(cuts, [*cuts[1:], self.graph.n], strict=True):
            if self.should_stop():
                raise StoppedError
            yield Piece(whole.indptr[first : end + 1], whole.source[first:end], whole.targets, whole.weights)

    def subtract(self, scale: float, now: AnyArray, out: AnyArray) -> None:
        """Take ``scale`` times the traffic times ``now`` from ``out``, both (n, b), of one precision. StoppedError."""
        for piece in self.pieces():
            _exchange(*piece, now.dtype.type(scale), now, out)

    def between(self, part: IntArray, parts: int) -> FloatArray:
        """Return (parts, parts) the symmetric traffic between parts of nodes, ``part`` (n,). Raises StoppedError."""
        out = np.zeros((parts, parts))
        for piece in self.pieces():
            _between(*piece, part, out)
        return out + out.T


@dataclass(frozen=True, eq=False)
class StoredShifted:
    """``A = L + diag(shift) + rho e e' / n`` for a Laplacian L on disk."""

    laplacian: StoredLaplacian
    shift: FloatArray
    rho: float

    def step(self, now: AnyArray, out: AnyArray, centre: float, scale: float) -> None:
        """``out = scale * (A - centre) now - out``, both (n, b) of one precision. Raises StoppedError."""
        kind = now.dtype.type
        diagonal = (self.laplacian.degree + self.shift - centre).astype(kind)
        level = (self.rho * _means(now)).astype(kind)
        _diagonal(diagonal, level, kind(scale), now, out)
        self.laplacian.subtract(scale, now, out)

    def times(self, x: AnyArray, out: AnyArray) -> None:
        """``out = A x``. Raises StoppedError."""
        out[:] = 0
        self.step(x, out, 0.0, 1.0)

    def filtered(
        self, x: AnyArray, other: AnyArray, low: float, high: float, degree: int
    ) -> tuple[AnyArray, AnyArray]:
        """Return ``T_degree((A - centre) / half) x`` and the other of the two blocks; both are overwritten.

        [low, high] is mapped to [-1, 1]. Raises StoppedError.
        """
        half, centre = (high - low) / 2, (high + low) / 2
        other[:] = 0
        self.step(x, other, centre, 1 / half)
        before, now = x, other
        for _ in range(degree - 1):
            self.step(now, before, centre, 2 / half)
            before, now = now, before
        return now, before

    def largest(self, seed: int) -> float:
        """Return a little above the largest eigenvalue, by Lanczos; an estimate is enough here. Raises StoppedError."""
        now = np.random.default_rng(seed).standard_normal((len(self.shift), 1))
        now /= np.linalg.norm(now)
        before, beta = np.zeros_like(now), 0.0
        alphas, betas = [], []
        for _ in range(LANCZOS):
            after = beta * before
            self.step(now, after, 0.0, 1.0)
            alphas.append(float((after * now).sum()))
            after -= alphas[-1] * now
            beta = float(np.linalg.norm(after))
            if beta == 0.0:
                break
            betas.append(beta)
            before, now = now, after / beta
        beside = betas[: len(alphas) - 1]
        top = float(np.linalg.eigvalsh(np.diag(alphas) + np.diag(beside, 1) + np.diag(beside, -1))[-1])
        return min(top + (RAISED - 1) * abs(top) + 1e-9, self.ceiling())

    def ceiling(self) -> float:
        """Gershgorin's bound."""
        return float((2 * self.laplacian.degree + self.shift).max()) + max(0.0, self.rho)

    def growth(self, last: StoredShifted) -> float:
        """Return how far the largest eigenvalue may be above that of ``last`` (Weyl)."""
        return max(0.0, float((self.shift - last.shift).max())) + max(0.0, self.rho - last.rho)


def products(*pairs: tuple[AnyArray, AnyArray]) -> list[FloatArray]:
    """Return ``x.T @ y`` of every pair of blocks (n, b), (n, c), summed in double precision."""
    out = [np.zeros((x.shape[1], y.shape[1])) for x, y in pairs]
    for first in range(0, len(pairs[0][0]), CHUNK):
        part = slice(first, first + CHUNK)
        for total, (x, y) in zip(out, pairs, strict=True):
            total += x[part].T.astype(np.float64) @ y[part].astype(np.float64)
    return out


def turned(x: AnyArray, turn: FloatArray) -> None:
    """Replace ``x`` (n, b) by ``x @ turn``, in place."""
    for first in range(0, len(x), CHUNK):
        part = slice(first, first + CHUNK)
        x[part] = x[part].astype(np.float64) @ turn


def _means(x: AnyArray) -> FloatArray:
    parts = [x[first : first + CHUNK].sum(axis=0, dtype=np.float64) for first in range(0, len(x), CHUNK)]
    return np.asarray(np.sum(parts, axis=0) / len(x))


def _read(graph: Connections, workers: int, should_stop: ShouldStop) -> Iterator[Piece]:
    for rows in graph.blocks(workers):
        if should_stop():
            raise StoppedError
        fixed = rows.fixed
        with np.errstate(over="ignore"):  # nothing is proved then
            weights = rows.weights.astype(np.float32)
        yield Piece(fixed.indptr, fixed.source, fixed.targets, weights)


@plain
def _degrees(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: AnyArray,
    degree: FloatArray, count: IntArray,
) -> None:  # fmt: skip
    """Add every weight to ``degree`` (n,) of both ends, and 1 to ``count`` (n + 1,), shifted by one, of its source."""
    for i in range(len(indptr) - 1):
        u = source[i]
        for e in range(indptr[i], indptr[i + 1]):
            count[u + 1] += 1
            if targets[e] != u:
                degree[u] += weights[e]
                degree[targets[e]] += weights[e]


@plain
def _place(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: AnyArray,
    place: Int32Array, end: IntArray, out_targets: Int32Array, out_weights: AnyArray,
) -> None:  # fmt: skip
    """Append every connection to the row of its source; ``place`` (n,) are new numbers, ``end`` (n,) where rows end so far."""
    for i in range(len(indptr) - 1):
        u = place[source[i]]
        at = end[u]
        for e in range(indptr[i], indptr[i + 1]):
            out_targets[at] = place[targets[e]]
            out_weights[at] = weights[e]
            at += 1
        end[u] = at


@plain
def _between(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: AnyArray,
    part: IntArray, out: FloatArray,
) -> None:  # fmt: skip
    """Add every weight to ``out`` (parts, parts) once, if it joins different parts."""
    for i in range(len(indptr) - 1):
        p = part[source[i]]
        for e in range(indptr[i], indptr[i + 1]):
            q = part[targets[e]]
            if p != q:
                out[p, q] += weights[e]


@plain
def _diagonal(diagonal: AnyArray, level: AnyArray, scale: float, now: AnyArray, out: AnyArray) -> None:
    """``out = scale * (diagonal * now + level) - out``; ``diagonal`` (n,), ``level`` (b,)."""
    for i in range(now.shape[0]):
        d = diagonal[i]
        for c in range(now.shape[1]):
            out[i, c] = scale * (d * now[i, c] + level[c]) - out[i, c]


@compiled(_nrt=False, fastmath={"contract", "reassoc", "nsz"})
def _exchange(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: AnyArray,
    scale: float, now: AnyArray, out: AnyArray,
) -> None:  # fmt: skip
    """Take ``scale`` x weight x ``now`` of the other end from ``out`` (n, b), at both ends of every connection."""
    width = now.shape[1]
    for i in range(len(indptr) - 1):
        u = source[i]
        for e in range(indptr[i], indptr[i + 1]):
            v = targets[e]
            if v == u:
                continue
            w = scale * weights[e]
            for c in range(width):
                out[u, c] -= w * now[v, c]
            for c in range(width):
                out[v, c] -= w * now[u, c]
