"""Messages as the tree bounds see them: pairs that are paid once if parted, and nets that pull their terminals together.

A message with terminals T (its sender and its targets) on lambda different cores costs at least ``apart * (lambda - 1)``
per unit of rate (:func:`nmsolve.solvers.mapping.bounds.parts.least_apart`). For *any* numbers q_v, with
a_p = sum of q over the terminals on core p, ``1 >= 2 a_p - a_p^2`` on every core that holds one, so

``lambda - 1 >= 2 sum_v q_v - 1 - sum_p a_p^2``,

with equality for q_v = 1 / (terminals on v's core). Two terminals need no q: lambda - 1 says whether they are parted. Of
three at most two pairs are parted by two cores and three by three: lambda - 1 >= half the number of parted pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.model.compiled import compiled, kernel
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.ascent import laplacian_of
from nmsolve.solvers.mapping.bounds.chebyshev import chebyshev_step
from nmsolve.solvers.mapping.bounds.nets import message_rows

#: Messages with up to this many terminals are written as pairs.
AS_PAIRS = 3

#: Most eigenvalues computed, on graphs of up to MANY_NODES nodes and beyond; further parts count with the last.
MANY, FEW, MANY_NODES = 64, 40, 5000


@dataclass(frozen=True)
class Nets:
    """The messages of a problem.

    Attributes
    ----------
    n : number of nodes
    indptr, terminals, rate : nets of more than ``AS_PAIRS`` terminals (sender first) as CSR, rate > 0
    laplacian : (n, n) of the pairs
    """

    n: int
    indptr: IntArray
    terminals: Int32Array
    rate: FloatArray
    laplacian: csr_array

    @property
    def size(self) -> IntArray:
        """Terminals of every net."""
        return np.diff(self.indptr)


def nets_of(problem: MappingProblem) -> Nets:
    """The messages that the problem's net objective charges; rows without multicast become one pair per edge."""
    graph = problem.graph
    degree = np.diff(graph.indptr)
    message = message_rows(problem) & (graph.rate > 0) & (degree > 0)
    long = message & (degree + 1 > AS_PAIRS)
    row = np.repeat(np.arange(graph.rows), degree)
    ends = [np.column_stack([graph.edge_source, graph.targets])[~message_rows(problem)[row]]]
    weight = [graph.weights[~message_rows(problem)[row]]]
    for i, share in ((message & (degree == 1), 1.0), (message & (degree == 2), 0.5)):
        ends.append(np.column_stack([graph.edge_source, graph.targets])[i[row]])
        weight.append(share * graph.rate[row[i[row]]])
    triple = message & (degree == 2)
    ends.append(graph.targets[triple[row]].reshape(-1, 2))
    weight.append(0.5 * graph.rate[triple])
    pair, w = np.concatenate(ends).astype(np.int64), np.concatenate(weight)
    both = np.concatenate([pair, pair[:, ::-1]])
    laplacian = laplacian_of(problem.n, both[:, 0], both[:, 1], np.tile(w, 2))
    indptr = np.concatenate([[0], np.cumsum(degree[long] + 1)])
    terminals = np.empty(indptr[-1], np.int32)
    sender = np.zeros(len(terminals), bool)
    sender[indptr[:-1]] = True
    terminals[sender] = graph.source[long]
    terminals[~sender] = graph.targets[long[row]]
    return Nets(problem.n, indptr, terminals, graph.rate[long], laplacian)


@dataclass(frozen=True)
class Pulled:
    """``A = L + diag(shift) + rho e e' / n - 2 sum_i rate_i q_i q_i'`` for the nets i; an ``Operator`` of :mod:`.chebyshev`."""

    nets: Nets
    pull: FloatArray
    shift: FloatArray
    rho: float

    def __matmul__(self, x: FloatArray) -> FloatArray:
        out: FloatArray = self.nets.laplacian @ x + self.shift[:, None] * x + self.rho * x.mean(axis=0)
        add_pull(self.nets.indptr, self.nets.terminals, self.pull, -2.0 * self.nets.rate, x, out)
        return out

    def step(self, now: FloatArray, before: FloatArray, out: FloatArray, centre: float, scale: float) -> None:
        """As in :class:`~.chebyshev.Operator`."""
        nets, kind = self.nets, now.dtype.type
        data, pull, rate = self._single if kind is np.float32 else (nets.laplacian.data, self.pull, nets.rate)
        sparse = (nets.laplacian.indptr, nets.laplacian.indices, data)
        diagonal, level = (self.shift - centre).astype(kind), self.rho * now.mean(axis=0)
        chebyshev_step(*sparse, diagonal, level.astype(kind), kind(scale), now, before, out)
        add_pull(nets.indptr, nets.terminals, pull, kind(-2.0 * scale) * rate, now, out)

    @cached_property
    def _single(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Weights of pairs, pulls and rates, half as wide."""
        wide = (self.nets.laplacian.data, self.pull, self.nets.rate)
        return tuple(values.astype(np.float32) for values in wide)  # type: ignore[return-value]

    def dense(self) -> FloatArray:
        """The matrix itself."""
        n = self.nets.n
        pull = csr_array((self.pull, self.nets.terminals, self.nets.indptr), shape=(len(self.nets.rate), n))
        gram = pull.T @ diags_array(2 * self.nets.rate) @ pull
        out: FloatArray = (self.nets.laplacian - gram).toarray() + np.diag(self.shift) + self.rho / n
        return out

    def ceiling(self) -> float:
        """Gershgorin's bound of the rest; the pull only lowers eigenvalues."""
        rest = float((2 * self.nets.laplacian.diagonal() + self.shift).max())
        return rest + max(0.0, self.rho)

    def growth(self, last: Self) -> float:
        """Unknown: pulls change in no particular direction."""
        return float("inf")


@dataclass(frozen=True)
class Fixed:
    """What does not change during the ascent.

    Attributes
    ----------
    nets : the messages
    sigma : (parts,) sizes of the parts / 2, falling
    drift : what rho is paid for
    apart : cost of one more core in a message of rate 1
    lattice : the objective is a multiple of this; 0 if unknown
    """

    nets: Nets
    sigma: FloatArray
    drift: float
    apart: float
    lattice: float

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are computed."""
        return min(len(self.sigma), self.nets.n, MANY if self.nets.n <= MANY_NODES else FEW)

    @property
    def weights(self) -> FloatArray:
        """(rank,) what every computed eigenvalue counts; the last one also for all later ones."""
        out = self.sigma[: self.rank].copy()
        out[-1] += self.sigma[self.rank :].sum()
        return out

    def value(self, lam: FloatArray, pull: FloatArray, shift: FloatArray, rho: float) -> float:
        """Return the bound / apart for eigenvalues ``lam`` (rank,)."""
        _, total = pull_degrees(self.nets.n, self.nets.indptr, self.nets.terminals, pull, self.nets.rate)
        pulled = float((self.nets.rate * (2 * total - 1)).sum())
        return pulled + float(self.weights @ lam) - 0.5 * float(shift.sum()) - rho * self.drift


@compiled(fastmath={"contract", "reassoc", "nsz"})
def add_pull(
    indptr: IntArray,
    terminals: Int32Array,
    pull: FloatArray,
    rate: FloatArray,
    x: FloatArray,
    out: FloatArray,
) -> None:
    """``out += sum_i rate_i q_i (q_i' x)`` for x, out (n, b); q_i holds ``pull`` on the terminals of net i."""
    width = x.shape[1]
    total = np.empty(width, x.dtype)
    for i in range(rate.shape[0]):
        total[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            v, q = terminals[k], pull[k]
            for c in range(width):
                total[c] += q * x[v, c]
        for c in range(width):
            total[c] *= rate[i]
        for k in range(indptr[i], indptr[i + 1]):
            v, q = terminals[k], pull[k]
            for c in range(width):
                out[v, c] += q * total[c]


@compiled(fastmath={"contract", "reassoc", "nsz"})
def pull_gradient(
    indptr: IntArray,
    terminals: Int32Array,
    pull: FloatArray,
    rate: FloatArray,
    y: FloatArray,
    out: FloatArray,
) -> None:
    """``out[k] = 2 rate_i (1 - 2 y_v . sum_u q_u y_u)``: how the bound changes with the pull of terminal k = (i, v).

    ``y`` (n, b): the relaxed codes of the nodes, eigenvectors times the roots of the part sizes.
    """
    width = y.shape[1]
    total = np.empty(width)
    for i in range(rate.shape[0]):
        total[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            v, q = terminals[k], pull[k]
            for c in range(width):
                total[c] += q * y[v, c]
        for k in range(indptr[i], indptr[i + 1]):
            v, product = terminals[k], 0.0
            for c in range(width):
                product += total[c] * y[v, c]
            out[k] = 2.0 * rate[i] * (1.0 - 2.0 * product)


@kernel
def pull_degrees(
    n: int, indptr: IntArray, terminals: Int32Array, pull: FloatArray, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Row sums (n,) of ``2 sum_i rate_i q_i q_i'``, and (nets,) the sum of every net's pulls."""
    degree, total = np.zeros(n), np.zeros(rate.shape[0])
    for i in range(rate.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            total[i] += pull[k]
        for k in range(indptr[i], indptr[i + 1]):
            degree[terminals[k]] += 2.0 * rate[i] * pull[k] * total[i]
    return degree, total
