"""Re-check of the split bound: two enclosed spectra, one sort per node, a minimum per node; rows validated one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    both_ways,
    distances,
    expect,
    lowered,
    numbers,
    parallel,
    room_of,
    usable_cores,
    whole_numbers,
)
from nmsolve.check.mapping.bounds.rounding import ROUNDOFF, SAFE, dot_down, down, gamma, sum_down
from nmsolve.check.mapping.bounds.spectral import moderate, projection_value
from nmsolve.check.mapping.distances import Distances, core_distances
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Nodes and sizes of rows are smaller.
LARGEST_NUMBERED = 2.0**31
#: Cliques of more nodes have no row.
LARGEST = 10
#: Of rows with equally many members (signed, 1-based): right-hand sides and orientations (+1 a clique, -1 not).
#: Raises CertificateError where the distances need not obey a row.
Sides = Callable[[IntArray], tuple[FloatArray, FloatArray]]


def recheck_split(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the split bound at the given multipliers, rows and prices.

    Raises
    ------
    CertificateError : several nodes per core, or a field that is missing or wrong
    """
    expect(problem, "pairs")
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("the split bound holds only for one node per core")
    form = core_distances(problem)
    d = np.maximum(distances(problem, down=True) - form.step, 0.0)
    np.fill_diagonal(d, 0.0)
    traffic = both_ways(problem)
    w = np.zeros_like(d)
    w[: problem.n, : problem.n] = traffic.toarray()
    allowed = np.ones(d.shape, bool)
    allowed[: problem.n] = problem.domains[problem.domain_of][:, usable_cores(problem)]
    value = placement_value(w, d, allowed, certificate, lambda table: _right_sides(table, form, d))
    value = sum_down([down(form.step * sum_down(traffic.data) / 2), value])
    return lowered(problem, value, parallel(problem) + 4)


def placement_value(
    w: FloatArray, d: FloatArray, allowed: BoolArray, certificate: Mapping[str, Any], sides: Sides
) -> float:
    """Return the split bound of symmetric traffic ``w`` (k, k) on places with distances ``d``, less rounding errors.

    ``allowed`` (k, k): node may be on place; ``sides``: what rows of one size are worth, see :data:`Sides`.
    """
    k = len(d)
    traffic, far = float(np.abs(w).sum()), float(d.max())
    m = moderate(numbers(certificate, "multipliers", k * k), "multipliers", traffic).reshape(k, k)
    price = moderate(numbers(certificate, "price", k), "price", traffic * max(1.0, far))
    rows, paid, mass = _rows(certificate, k, sides, traffic)
    s = 0.5 * (m + m.T)
    load, reach = s.sum(axis=0), d.sum(axis=0)
    near = np.sort(d + np.diag(np.full(k, -1.0)), axis=1)[:, 1:]
    least = price.tolist()
    for u in range(k):
        left = np.delete(w[u] - m[u] - rows[u], u)
        cost = near @ np.sort(left)[::-1] + 2 * load[u] / k * reach - price
        if allowed[u].any():
            least.append(float(cost[allowed[u]].min()))
    # Rounding. Each of w, m and the rows enters a cost times at most the largest distance, after at most 4k + the number of
    # rows roundings; a price is subtracted once for each node; half the sum of m and its transpose is rounded once.
    terms = 4 * k + len(certificate.get("sizes", ())) + 60
    rounding = gamma(terms) * far * (traffic + 8 * float(np.abs(m).sum()) + 4 * mass)
    rounding += 8 * ROUNDOFF * k * float(np.abs(price).max())
    return down(sum_down([projection_value(s, d, linear=False), *least, paid, -SAFE * rounding]) / 2)


def _rows(
    certificate: Mapping[str, Any], k: int, sides: Sides, traffic: float
) -> tuple[FloatArray, float, float]:
    """(k, k) sum of tau times the rows, what they are worth together at least, and the sum of the absolute coefficients."""
    size = whole_numbers(certificate, "sizes", most=LARGEST_NUMBERED)
    member = whole_numbers(certificate, "members", most=LARGEST_NUMBERED)
    tau = moderate(numbers(certificate, "tau", len(size)), "tau", traffic)
    if len(size) and not (size.min() >= 3 and size.max() <= k):
        raise CertificateError(f"'sizes' must be in 3..{k}")
    if size.sum() != len(member):
        raise CertificateError(f"'members' has {len(member)} entries, 'sizes' add up to {size.sum()}")
    if len(member) and not (np.abs(member).min() >= 1 and np.abs(member).max() <= k):
        raise CertificateError(f"'members' must be in 1..{k}, negative for sign -")
    if tau.min(initial=0.0) < 0:
        raise CertificateError(f"'tau' holds {tau.min():.6g}; multipliers of rows must be >= 0")
    total, paid, mass = np.zeros((k, k)), 0.0, 0.0
    start = np.cumsum(size) - size
    for count in np.unique(size).tolist():
        which = np.flatnonzero(size == count)
        table = member[start[which][:, None] + np.arange(count)]
        if (np.diff(np.sort(np.abs(table), axis=1), axis=1) == 0).any():
            raise CertificateError("'members' names a node twice in one row")
        right, way = sides(table)
        paid += dot_down(tau[which], right)
        paid -= 2 * ROUNDOFF * abs(paid)
        node, sign = np.abs(table) - 1, np.sign(table) * 1.0
        for i in range(count):
            for j in range(i):
                part = 0.5 * tau[which] * way * sign[:, i] * sign[:, j]
                np.add.at(total, (node[:, i], node[:, j]), part)
                np.add.at(total, (node[:, j], node[:, i]), part)
                mass += 2 * float(tau[which].sum())
    return total, paid, mass


def _right_sides(table: IntArray, form: Distances, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return right-hand sides and orientations of rows of one size; raises CertificateError where a row is not valid here."""
    count = table.shape[1]
    clique = (table > 0).all(axis=1)
    if not (clique | (np.sign(table).sum(axis=1) == 1)).all():
        raise CertificateError("'members' has a row whose signs neither are all + nor sum to 1")
    if not clique.all() and not form.separable and count > 3:
        raise CertificateError("'members' has hypermetric rows, which only a mesh or torus obeys")
    detour = 0.0 if clique.all() or form.separable else least_detour(d)
    together = _least_sum(count, form, d) if clique.any() else 0.0
    return np.where(clique, together, detour), np.where(clique, 1.0, -1.0)


def least_detour(d: FloatArray) -> float:
    """Return the least d_pa + d_pb - d_ab over three different cores of ``d`` (k, k); negative if it is no metric."""
    far = np.where(np.eye(len(d), dtype=bool), np.inf, d)
    short = np.where(np.eye(len(d), dtype=bool), -np.inf, d)
    return float(min((far[p][:, None] + far[p][None, :] - short).min() for p in range(len(d))))


def least_triangle(d: FloatArray) -> float:
    """Return the least sum of the three distances of three different cores of ``d`` (k, k)."""
    far = np.where(np.eye(len(d), dtype=bool), np.inf, d)
    return float(min((far + far[p][:, None] + far[p][None, :]).min() for p in range(len(d))))


def _least_sum(count: int, form: Distances, d: FloatArray) -> float:
    """No set of ``count`` different cores has a smaller sum of distances."""
    if count == 3:
        return least_triangle(d)
    if count > LARGEST or not form.separable or form.wrap_x > 0 or form.wrap_y > 0:
        raise CertificateError(
            f"'members' has a clique row of {count} nodes, for which no bound is known on this machine"
        )
    gap_x = float(np.diff(form.x).min()) if len(form.x) > 1 else 0.0
    gap_y = float(np.diff(form.y).min()) if len(form.y) > 1 else 0.0
    return least_sum(count, gap_x, gap_y, len(form.x), len(form.y))


@lru_cache(maxsize=64)
def least_sum(count: int, gap_x: float, gap_y: float, columns: int, lines: int) -> float:
    """No ``count`` different cores of a mesh have a smaller sum of distances: all ways to part them among its lines."""
    # numbers on lines, falling -> least sum of differences over all orders of the lines
    line: dict[tuple[int, ...], int] = {}
    for part in _compositions(count):
        key = tuple(sorted(part, reverse=True))
        passed, paid = 0, 0
        for members in part:
            passed += members
            paid += passed * (count - passed)
        line[key] = min(line.get(key, paid), paid)
    # Members on columns and lines exist if the first few lines hold no more than columns that are as tall allow (Gale, Ryser).
    sums = (
        gap_x * x + gap_y * y
        for across, x in line.items()
        for along, y in line.items()
        if len(across) <= columns
        and len(along) <= lines
        and all(sum(along[:k]) <= sum(min(c, k) for c in across) for k in range(1, len(along) + 1))
    )
    return min(sums, default=0.0)


def _compositions(total: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write ``total`` as an ordered sum of numbers >= 1."""
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        for rest in _compositions(total - first):
            yield (first, *rest)
