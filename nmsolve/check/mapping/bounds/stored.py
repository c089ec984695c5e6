"""Eigenvalue bounds re-checked on graphs that stay on disk: products by passes over the file, eigenvalues proved from residuals.

With Q any n x w matrix close to orthonormal, theta any numbers and R = A Q - Q diag(theta): where A has no eigenvalue below beta
on the complement of Q, ``lambda_i(A) >= lambda_i([[diag theta, S'], [S, beta I]])`` for S'S >= R'R, less what Q lacks to
orthonormal and what rounding does to R (docs/bounds.md, "Eigenvalues in re-checks"). Beta comes from random vectors
(:mod:`.eigenvalues`), for A + tau QQ', which on the complement of Q is A. Shares no code with the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.check.mapping.bounds.eigenvalues import BLOCK, growth_of, spectrum
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.rounding import ROUNDOFF, SAFE, gamma
from nmsolve.model.compiled import kernel
from nmsolve.model.graph import READERS, LogicGraph, Rows
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Vectors beyond those that are stated; most that can be stated.
MORE, MOST_STATED = 10, 512
#: Random vectors of the proof, and a size: that all eight are smaller along one direction has probability < 2e-13.
AMONG = (8, 0.03)
#: Degree of a filter, how far one may raise the smallest eigenvectors (a power of e), and most filters.
DEGREE, RAISED, FILTERS = 25, 25.0, 16
#: Parts of the room between the last stated eigenvalue and the vectors' last that the complement's bound may take, in turn.
ROOMS = (0.75, 0.4, 0.1)
#: Most steps of the proof.
MOST_STEPS = 5_000


@dataclass(frozen=True, eq=False)
class StoredTraffic:
    """The symmetric traffic of a graph on disk.

    Attributes
    ----------
    each : (messages,) what every connection of a message weighs, below 0: what is stored; None: that for all
    rows : (n,) its row sums
    longest : most connections of one node, at both ends
    """

    graph: LogicGraph
    each: FloatArray | None
    rows: FloatArray
    longest: int

    @classmethod
    def of(cls, graph: LogicGraph, each: FloatArray | None = None) -> StoredTraffic:
        """Read the graph once."""
        rows, terms = np.zeros(graph.n), np.zeros(graph.n, np.int64)
        for fixed in weighed(graph, each):
            _ends(fixed.indptr, fixed.source, fixed.targets, fixed.weights, rows, terms)
        return cls(graph, each, rows, int(terms.max(initial=0)))

    def sum(self) -> float:
        """Sum of all entries."""
        return float(self.rows.sum())


def weighed(graph: LogicGraph, each: FloatArray | None) -> Iterator[Rows]:
    """Yield all messages, connections with the weights that count; ``each`` as of :class:`StoredTraffic`."""
    for block in graph.blocks(READERS):
        if each is not None:
            many = np.diff(block.indptr)
            own = each[block.first : block.first + len(many)].repeat(many)
            block = block._replace(weights=np.where(own < 0, block.weights, own))
        yield block.fixed


def needed(n: int, count: int) -> int:
    """Return the bytes that a re-check of ``count`` eigenvalues of ``n`` nodes takes, about."""
    return 8 * n * (3 * (count + MORE) + 5 * AMONG[0] + 8) + (64 << 20)


@dataclass(frozen=True)
class _Matrix:
    """``A = L + diag(shift) + rho ee'/n``, L the Laplacian of the traffic."""

    traffic: StoredTraffic
    shift: FloatArray
    rho: float

    @cached_property
    def diagonal(self) -> FloatArray:
        return self.traffic.rows + self.shift

    @property
    def mass(self) -> float:
        """At least the largest row sum of the matrix of absolute values of all terms."""
        return SAFE * float((2 * self.traffic.rows + np.abs(self.shift)).max() + self.rho)

    @property
    def error(self) -> float:
        """Bound on what rounding does to the product with a vector of length 1."""
        blocks = -(-len(self.shift) // BLOCK)
        return gamma(self.traffic.longest + 24) * self.mass + gamma(BLOCK + blocks + 24) * self.rho

    def apply(self, x: FloatArray) -> FloatArray:
        """Return the product with (n, b)."""
        out = self.diagonal[:, None] * x
        out += self.rho * (sum(part.sum(axis=0) for part in _parts(x)) / len(x))
        for fixed in weighed(self.traffic.graph, self.traffic.each):
            _take_off(fixed.indptr, fixed.source, fixed.targets, fixed.weights, x, out)
        return out


def proved_from_disk(traffic: StoredTraffic, shift: FloatArray, rho: float, stated: FloatArray) -> FloatArray:
    """Return (c,) lower bounds, with probability above 1 - 5e-13, on the smallest eigenvalues of the shifted Laplacian.

    ``shift`` (n,), ``stated`` (c,) rising: what is looked for. Raises CertificateError.
    """
    a, count = _Matrix(traffic, shift, rho), len(stated)
    if count > MOST_STATED:
        raise CertificateError(f"'eigenvalues' has {count} entries, at most {MOST_STATED} can be checked")
    high = _largest(a)
    x = np.random.default_rng(7).standard_normal((len(shift), min(len(shift), count + MORE)))
    theta, q, _ = _ritz(a, x)
    low = np.full(count, -np.inf)
    for room in ROOMS:
        theta, q = _smallest(a, theta, q, high, (stated, room))
        level = float(theta[-1])
        loss = room * (level - float(stated[-1]))
        if not (np.isfinite(high) and loss > 0 and high > level):
            raise CertificateError(
                f"'eigenvalues' entry {count - 1} is {stated[-1]:.10g}, only {level:.10g} can be confirmed"
            )
        floor = _complement(a, q, level, high, loss, level - float(theta[0]))
        low = np.maximum(low, _bordered(a, q, theta, floor)[:count])
        if (stated <= low).all():
            break
    return low


def _complement(a: _Matrix, q: FloatArray, level: float, high: float, loss: float, lift: float) -> float:
    """Return what the eigenvalues of A on the complement of ``q`` (n, w) are at least; about ``level - loss``."""
    n, half = len(q), (high - level) / 2
    blocks = -(-n // BLOCK)
    size = np.abs(q)
    lifted = SAFE * lift * float((size @ size.sum(axis=0)).max())
    error = a.error + gamma(BLOCK + blocks + q.shape[1] + 24) * lifted
    degree = int(np.log(2.5 * np.sqrt(n) / AMONG[1]) * np.sqrt(half / (2 * loss))) + 20
    if degree > MOST_STEPS:
        raise CertificateError("what is stated is too close to the eigenvalues to be confirmed from disk")

    def image(x: FloatArray) -> FloatArray:
        return a.apply(x) + q @ (lift * _product(q, x))

    growth = growth_of(image, n, level, half, degree, SAFE * error, AMONG)
    if growth is None:
        raise CertificateError("the eigenvalues cannot be confirmed for rounding")
    below = SAFE * (np.cosh(np.arccosh(growth) / degree) - 1) * half
    return float(level - below - 8 * ROUNDOFF * (abs(level) + half))


def _bordered(a: _Matrix, q: FloatArray, theta: FloatArray, floor: float) -> FloatArray:
    """Return (w,) lower bounds, rising, on the smallest eigenvalues; ``floor`` is beta of the module's text."""
    n, w = q.shape
    sums = gamma(BLOCK + -(-n // BLOCK) + 8)
    image = a.apply(q)
    length = SAFE * float(np.linalg.norm(q))
    skew = SAFE * (float(np.linalg.norm(_product(q, q) - np.eye(w))) + sums * length**2)
    most = float(np.abs(theta).max())
    # what was computed as A Q - Q diag(theta), with Q made orthonormal: how far that can be from the exact one
    off = a.error * length + (a.mass + most) * skew
    off += 4 * ROUNDOFF * (float(np.linalg.norm(image)) + most * length)
    image -= q * theta
    rest = SAFE * float(np.linalg.norm(image))
    inside = float(np.linalg.norm(_product(q, image))) + sums * length * rest + skew * rest
    if not (np.isfinite(off) and np.isfinite(inside) and skew < 0.25 and np.isfinite(floor)):
        raise CertificateError("the eigenvalues cannot be confirmed for rounding")
    gram = _product(image, image)
    gram = (gram + gram.T) / 2
    tolerance = sums * rest**2
    border = _root(gram, tolerance)
    whole = np.block([[np.diag(theta), border.T], [border, floor * np.eye(w)]])
    # twice, for the products of errors of second order
    return spectrum(whole, 2 * SAFE * (off + inside))[0][:w]


def _root(gram: FloatArray, tolerance: float) -> FloatArray:
    """Return S (w, w) such that S'S - ``gram`` - ``tolerance`` I has no eigenvalue below 0; ``gram`` is symmetric."""
    w, trace = len(gram), float(np.trace(gram))
    value, axes = np.linalg.eigh(gram)
    more = 4 * tolerance + 1e-10 * trace + 1e-290
    root: FloatArray = (axes * np.sqrt(np.maximum(value, 0.0) + more)).T
    found = root.T @ root
    gap = float(np.linalg.norm(found - gram - more * np.eye(w)))
    gap += gamma(w + 8) * (2 * trace + 2 * w * more + float(np.linalg.norm(root)) ** 2)
    if not SAFE * gap <= more - tolerance:
        raise CertificateError("the residuals cannot be confirmed for rounding")
    return root


def _smallest(
    a: _Matrix, theta: FloatArray, x: FloatArray, high: float, aim: tuple[FloatArray, float]
) -> tuple[FloatArray, FloatArray]:
    """Return Ritz values (w,), rising, and vectors (n, w) near the smallest eigenvectors: filters until they should suffice.

    ``theta``, ``x``: those to begin with; ``aim``: what is stated, and the part of the room that the complement's bound takes.
    """
    stated, room = aim
    for _ in range(FILTERS):
        low, least = float(theta[-1]), float(theta[0])
        if not high > low:
            break
        steep = max(float(np.arccosh(1 + 2 * (low - least) / (high - low))), 1e-300)
        x = _filtered(a, x, low, high, max(2, min(DEGREE, int(RAISED / steep))))
        theta, x, gram = _ritz(a, x)
        floor = float(theta[-1]) - room * float(theta[-1] - stated[-1])
        border = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram))).T
        seen = np.linalg.eigvalsh(np.block([[np.diag(theta), border.T], [border, floor * np.eye(len(gram))]]))
        if (seen[: len(stated)] > stated).all():
            break
    return theta, x


def _ritz(a: _Matrix, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Ritz values (w,), rising, their orthonormal vectors (n, w), and the products of their residuals (w, w)."""
    q = np.linalg.qr(x)[0]
    image = a.apply(q)
    inside = _product(q, image)
    theta, turn = np.linalg.eigh((inside + inside.T) / 2)
    q, image = q @ turn, image @ turn
    image -= q * theta
    gram = _product(image, image)
    return theta, q, (gram + gram.T) / 2


def _filtered(a: _Matrix, x: FloatArray, low: float, high: float, degree: int) -> FloatArray:
    """Return the Chebyshev polynomial of A on [low, high] times ``x``."""
    half, middle = (high - low) / 2, (high + low) / 2
    old, new = x, (a.apply(x) - middle * x) / half
    for _ in range(degree - 1):
        old, new = new, (2 / half) * (a.apply(new) - middle * new) - old
    return new


def _largest(a: _Matrix) -> float:
    """Return a little above the largest eigenvalue (Lanczos); one that is too small proves less, never too much."""
    now = np.random.default_rng(5).standard_normal((len(a.shift), 1))
    now /= np.linalg.norm(now)
    old, beta = np.zeros_like(now), 0.0
    diagonal, beside = list[float](), list[float]()
    for _ in range(16):
        after = a.apply(now) - beta * old
        diagonal.append(float((now * after).sum()))
        after -= diagonal[-1] * now
        beta = float(np.linalg.norm(after))
        if not beta > 0:
            break
        beside.append(beta)
        old, now = now, after / beta
    small = np.diag(diagonal) + np.diag(beside[: len(diagonal) - 1], -1)
    if not np.isfinite(small).all():
        raise CertificateError("the numbers are too large")
    top = float(np.linalg.eigvalsh(small)[-1])
    return top + 0.05 * abs(top)


def _parts(x: FloatArray) -> Iterator[FloatArray]:
    for first in range(0, len(x), BLOCK):
        yield x[first : first + BLOCK]


def _product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return ``x.T @ y``, summed in blocks of rows."""
    out = np.zeros((x.shape[1], y.shape[1]))
    for one, other in zip(_parts(x), _parts(y), strict=True):
        out += one.T @ other
    return out


@kernel
def _ends(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: FloatArray,
    rows: FloatArray, terms: IntArray,
) -> None:  # fmt: skip
    """Add every weight to ``rows`` (n,) and 1 to ``terms`` (n,) at both ends."""
    for i in range(len(source)):
        for e in range(indptr[i], indptr[i + 1]):
            if targets[e] != source[i]:
                for u in (source[i], targets[e]):
                    rows[u] += weights[e]
                    terms[u] += 1


@kernel
def _take_off(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: FloatArray,
    x: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Take weight times ``x`` (n, b) of the other end from ``out`` (n, b), at both ends of every connection."""
    for i in range(len(source)):
        mine, own = x[source[i]], out[source[i]]
        for e in range(indptr[i], indptr[i + 1]):
            if targets[e] == source[i]:
                continue
            there, other, w = x[targets[e]], out[targets[e]], weights[e]
            for c in range(x.shape[1]):
                own[c] -= w * there[c]
                other[c] -= w * mine[c]
