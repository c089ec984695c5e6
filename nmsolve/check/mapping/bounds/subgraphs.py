"""Re-check of the subgraph bound: shares against traffic, every set searched again, every star on every core.

No code is shared with the finder. A set's claimed cost is confirmed by showing that no placement is cheaper: a
depth-first search that looks only for placements below the claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.check.mapping.bounds.free_grid import MOST_CELLS, Effort, connected_parts, least_cost
from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    below,
    both_ways,
    distances,
    expect,
    lowered,
    parallel,
    room_of,
    usable_cores,
    whole_numbers,
)
from nmsolve.check.mapping.bounds.rounding import floor_products
from nmsolve.check.mapping.distances import core_distances, line_costs, step_cost
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Cells that a search prices in a second, about.
CELLS_A_SECOND = MOST_CELLS / 600
#: Most nodes of a set.
MAX_SET = 20
#: Whole numbers stay below this, so that sums of floats and of integers are exact.
_LARGEST = 2.0**53


def recheck_subgraphs(
    problem: MappingProblem, certificate: Mapping[str, Any], seconds: float = math.inf
) -> float:
    """Return the value that the certificate proves, in units of the objective; nan if ``seconds`` are too few.

    Raises
    ------
    CertificateError : it proves nothing
    """
    _applicable(problem)
    unit, scale = (_positive(certificate, name) for name in ("unit", "scale"))
    d = floor_products(distances(problem, down=True), scale)
    given = both_ways(problem)
    traffic = csr_array((floor_products(given.data, unit), given.indices, given.indptr), shape=given.shape)
    if not d.max(initial=0.0) * max(1.0, traffic.sum()) < _LARGEST:
        raise CertificateError("'unit' or 'scale' is too large: sums would not be exact")
    room = _capacity(problem, certificate, traffic)
    sets = _sets(problem, certificate)
    stars = _triples(problem, certificate, "star")
    shared = _both(problem.n, *(np.concatenate([s[i] for s in (*sets[0], stars)]) for i in range(3)))
    if (shared - room).max() > 0:
        raise CertificateError("the shares of a pair add up to more than it has")
    total = _star_value(problem, certificate, stars, d)
    lx, ly, step = least_links(problem)
    lx, ly, step = (floor(Fraction(x) * Fraction(scale)) for x in (lx, ly, step))
    grid = np.array([lx, ly, problem.machine.rows, problem.machine.cols], np.int64)
    effort = Effort(int(min(MOST_CELLS, seconds * CELLS_A_SECOND)))
    for at, ((u, v, share), nodes, claim) in enumerate(zip(*sets, strict=True)):
        try:
            total += _set_value(at, u, v, share, nodes, claim, grid, effort) + step * int(share.sum())
        except TimeoutError as error:
            if seconds * CELLS_A_SECOND < MOST_CELLS:
                return math.nan
            text = (
                f"the searches of all sets together may price {MOST_CELLS:,} cells; set {at} is beyond that"
            )
            raise CertificateError(text) from error
    return lowered(
        problem, below(Fraction(total) / (Fraction(unit) * Fraction(scale))), parallel(problem) + 2
    )


def _applicable(problem: MappingProblem) -> None:
    expect(problem, "pairs")
    m = problem.machine
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("the bound is for one node per core")
    if m.torus or m.distance_matrix is not None or problem.aim.distance == "apart":
        raise CertificateError("distances on this machine need not be those of a grid")
    if not core_distances(problem).symmetric:
        raise CertificateError("distances are asymmetric, metric rows need not hold")


def least_links(problem: MappingProblem) -> tuple[float, float, float]:
    """Return the least cost of a link in x and in y (the other one's where there is a single line), and the constant step."""
    quantity = problem.aim.quantity
    lines = [line_costs(problem.machine, quantity, axis) for axis in (1, 0)]
    every = np.concatenate(lines)
    if len(every) == 0:
        raise CertificateError("the machine has a single core")
    lx, ly = (float(line.min()) if len(line) else float(every.min()) for line in lines)
    if min(lx, ly) <= 0:
        raise CertificateError("links cost nothing")
    return lx, ly, step_cost(problem.machine, quantity)


def _positive(certificate: Mapping[str, Any], name: str) -> float:
    value = certificate.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 < value < _LARGEST):
        raise CertificateError(f"{name!r} is {value!r}, expected a number > 0")
    return float(value)


def _nodes(
    problem: MappingProblem, certificate: Mapping[str, Any], name: str, length: int | None = None
) -> IntArray:
    out = whole_numbers(certificate, name, length, 0)
    if len(out) and out.max() >= problem.n:
        raise CertificateError(f"{name!r} names a node that does not exist")
    return out


def _triples(
    problem: MappingProblem, certificate: Mapping[str, Any], name: str
) -> tuple[IntArray, IntArray, IntArray]:
    """Return (u, v, whole value >= 0) of the fields ``name_u``, ``name_v``, ``name``."""
    u = _nodes(problem, certificate, f"{name}_u")
    v, value = _nodes(problem, certificate, f"{name}_v", len(u)), whole_numbers(certificate, name, len(u), 0)
    if (u == v).any():
        raise CertificateError(f"{name!r} joins a node with itself")
    if sum(value.tolist()) >= _LARGEST / 8:
        raise CertificateError(f"{name!r} is too large: sums would not be exact")
    return u, v, value


def _both(n: int, u: IntArray, v: IntArray, value: IntArray) -> csr_array:
    """Return (n, n) symmetric sums, exact: all values together stay far below 2**53."""
    ends = (np.concatenate([u, v]), np.concatenate([v, u]))
    return csr_array(coo_array((np.tile(value.astype(np.float64), 2), ends), shape=(n, n)))


def _capacity(problem: MappingProblem, certificate: Mapping[str, Any], traffic: csr_array) -> csr_array:
    """Return traffic after the metric rows ``d(u, via) + d(via, v) >= d(u, v)`` have moved it."""
    u, v, value = _triples(problem, certificate, "metric")
    via = _nodes(problem, certificate, "metric_via", len(u))
    if (via == u).any() or (via == v).any():
        raise CertificateError("'metric_via' is one of the ends")
    given = _both(
        problem.n,
        np.concatenate([u, u, via]),
        np.concatenate([v, via, v]),
        np.concatenate([value, -value, -value]),
    )
    room = csr_array(traffic + given)
    if room.nnz and room.data.min() < 0:
        raise CertificateError("'metric' takes more from a pair than it has")
    return room


def _sets(
    problem: MappingProblem, certificate: Mapping[str, Any]
) -> tuple[list[tuple[IntArray, IntArray, IntArray]], list[IntArray], list[int]]:
    """Return shares (as positions in the set), nodes and claimed cost of every set; shares keep node numbers for the sums."""
    size = whole_numbers(certificate, "set_size", least=1)
    count = whole_numbers(certificate, "share_count", len(size), 0)
    claims = whole_numbers(certificate, "set_cost", len(size), 0)
    if len(size) and size.max() > MAX_SET:
        raise CertificateError(f"'set_size' is above {MAX_SET}")
    nodes = _nodes(problem, certificate, "set_nodes", int(size.sum()))
    u, v, value = _triples(problem, certificate, "share")
    if count.sum() != len(u):
        raise CertificateError("'share_count' does not add up to the number of shares")
    cut, part = np.cumsum(size)[:-1], np.cumsum(count)[:-1]
    groups = np.split(nodes, cut) if len(size) else []
    shares = list(zip(*(np.split(a, part) for a in (u, v, value)), strict=True)) if len(size) else []
    return shares, groups, claims.tolist()


def _set_value(
    at: int,
    u: IntArray,
    v: IntArray,
    share: IntArray,
    nodes: IntArray,
    claim: int,
    grid: IntArray,
    effort: Effort,
) -> int:
    """Return the claimed cost of a set if no placement on the free grid is cheaper. TimeoutError: its search takes too long."""
    if len(np.unique(nodes)) < len(nodes):
        raise CertificateError(f"'set_nodes' of set {at} names a node twice")
    if not (np.isin(u, nodes).all() and np.isin(v, nodes).all()):
        raise CertificateError(f"'share' of set {at} names a node outside it")
    order = {int(x): i for i, x in enumerate(nodes)}
    w = np.zeros((len(nodes), len(nodes)), np.int64)
    for a, b, s in zip(u.tolist(), v.tolist(), share.tolist(), strict=True):
        w[order[a], order[b]] += s
        w[order[b], order[a]] += s
    if len(nodes) * int(w.sum()) * int(grid[:2].max()) >= 2**60:
        raise CertificateError(f"'share' of set {at} is too large")
    if len(connected_parts(w, range(len(nodes)))) > 1:
        raise CertificateError(f"'share' of set {at} does not connect its nodes")
    least = least_cost(w, grid, claim, effort)
    if least < claim:
        raise CertificateError(f"'set_cost' of set {at} is {claim}, but a placement costs {least}")
    return claim


def _star_value(
    problem: MappingProblem,
    certificate: Mapping[str, Any],
    stars: tuple[IntArray, IntArray, IntArray],
    d: FloatArray,
) -> int:
    """Return ``sum_u min_p (least cost of u's star from core p - price_p) + sum_p price_p``."""
    k = len(usable_cores(problem))
    price = whole_numbers(certificate, "price", k)
    if problem.n < k and price.max(initial=0) > 0:
        raise CertificateError("'price' is positive although cores stay empty")
    u, v, value = stars
    if len(np.unique(u * problem.n + v)) < len(u):
        raise CertificateError("'star' names a pair twice at one end")
    off = np.sort(d[~np.eye(k, dtype=bool)].reshape(k, k - 1), axis=1).astype(np.int64)
    order = np.lexsort((-value, u))
    cut = np.searchsorted(u[order], np.arange(problem.n + 1))
    total: int = sum(price.tolist())  # in 64 bits thousands of prices near 2**53 would wrap round
    for node in range(problem.n):
        falling = value[order[cut[node] : cut[node + 1]]]
        if len(falling) > k - 1:
            raise CertificateError(f"'star' of node {node} has more partners than there are cores")
        total += int((off[:, : len(falling)] @ falling - price).min())
    return total
