"""Re-check of the slots bound: the sum over pairs formed again message by message, then one decomposition and sorts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh, helmert

from nmsolve.hw.cost import core_distance, uses_links, uses_nets
from nmsolve.hw.energy import line_values
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    both_ways,
    distances,
    fits_with,
    numbers,
    usable_cores,
)
from nmsolve.solvers.mapping.recheck.trees import messages, one_more_core

#: Most places: a wrong certificate must not ask for more memory than there is.
MAX_PLACES = 2048


def recheck_slots(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The slots bound at the given multipliers, rows and prices."""
    if uses_links(problem):
        raise CertificateError("the bound is for sums over pairs or messages")
    limit = problem.capacity.max(axis=0)
    room = 1 if problem.one_per_core else fits_with(problem.sizes, limit, np.zeros_like(limit))
    if room < 1 or room * len(usable_cores(problem)) < problem.n:
        raise CertificateError("the nodes do not fit")
    constant, traffic, apart, flat = _sum(problem, certificate, room)
    k = len(apart) * room
    if k > MAX_PLACES or k < 3:
        raise CertificateError(f"{k} places (3 to {MAX_PLACES} can be re-checked)")
    core_of = np.arange(k) // room
    d = apart[core_of][:, core_of]
    w = np.zeros((k, k))
    w[: problem.n, : problem.n] = traffic
    value = _placement_value(w, d, room, flat, certificate)
    return constant + value - 1e-12 * (abs(constant) + abs(value))


def _sum(
    problem: MappingProblem, certificate: Mapping[str, Any], room: int
) -> tuple[float, FloatArray, FloatArray, bool]:
    """Constant, (n, n) symmetric traffic, (k, k) distances of cores that matter, and whether they are L1 distances."""
    if uses_nets(problem):
        return (_spans if problem.one_per_core else _pulled)(problem, certificate, room)
    traffic = both_ways(problem).toarray()
    np.fill_diagonal(traffic, 0.0)
    flat = core_distance(problem).separable
    if problem.objective == "cut":
        return 0.0, traffic, 1.0 - np.eye(_cores(problem, room)), flat
    d = distances(problem).copy()
    np.fill_diagonal(d, 0.0)
    return 0.0, traffic, d, flat


def _cores(problem: MappingProblem, room: int) -> int:
    """Of cores that are all alike, two whose nodes fit together can be merged: so many are enough."""
    enough = 1
    while (
        enough * room < 2 * problem.n - room
    ):  # n nodes on c cores, any two of them above room: c room < 2 n
        enough += 1
    return min(len(usable_cores(problem)), enough)


def _pulled(
    problem: MappingProblem, certificate: Mapping[str, Any], room: int
) -> tuple[float, FloatArray, FloatArray, bool]:
    pairs, nets, rate = messages(problem)
    pull = numbers(certificate, "pulls", nets.nnz)
    traffic, constant, apart = pairs.toarray(), 0.0, one_more_core(problem)
    for i in range(len(rate)):
        part = slice(nets.indptr[i], nets.indptr[i + 1])
        ends, q = nets.indices[part], pull[part]
        traffic[np.ix_(ends, ends)] += 2 * rate[i] * np.outer(q, q)
        constant -= apart * float(rate[i]) * float(q.sum() - 1) ** 2
    np.fill_diagonal(traffic, 0.0)
    return constant, traffic, apart * (1.0 - np.eye(_cores(problem, room))), True


def _spans(
    problem: MappingProblem, certificate: Mapping[str, Any], room: int
) -> tuple[float, FloatArray, FloatArray, bool]:
    graph, machine = problem.graph, problem.machine
    if problem.objective == "connectivity" or machine.distance_matrix is not None:
        raise CertificateError("with one node per core the bound is for route trees on a mesh or torus")
    healthy = replace(problem, machine=replace(machine, faulty_links=()))
    step = core_distance(healthy).step
    d = core_distance(healthy).dense()[np.ix_(usable_cores(problem), usable_cores(problem))] - step
    np.fill_diagonal(d, 0.0)
    quantity = "energy" if problem.objective == "energy" else "hops"
    least = min(float(v) for axis in (0, 1) for v in line_values(machine, quantity, axis))
    trees = [i for i in range(graph.rows) if graph.multicast[i] and graph.indptr[i] < graph.indptr[i + 1]]
    theta = numbers(certificate, "theta", len(trees))
    if len(theta) and not (theta.min() >= 0 and theta.max() <= 1):
        raise CertificateError("'theta' must lie in 0..1")
    share = dict(zip(trees, theta.tolist(), strict=True))
    traffic, constant = np.zeros((graph.n, graph.n)), 0.0
    for i in range(graph.rows):
        ends = [int(graph.source[i]), *graph.targets[graph.indptr[i] : graph.indptr[i + 1]].tolist()]
        if not graph.multicast[i]:
            for v, w in zip(ends[1:], graph.weights[graph.indptr[i] : graph.indptr[i + 1]], strict=True):
                traffic[ends[0], v] += w
                traffic[v, ends[0]] += w
                constant += step * float(w)
        elif len(ends) > 1:
            t, rate = len(ends), float(graph.rate[i])
            across = (t // 2) * ((t + 1) // 2)
            traffic[np.ix_(ends, ends)] += rate * share[i] / across
            constant += rate * ((t - 1) * (step + least) - share[i] * least * comb(t + 1, 3) / across)
    np.fill_diagonal(traffic, 0.0)
    return constant, traffic, d, True


def _placement_value(
    w: FloatArray, d: FloatArray, room: int, flat: bool, certificate: Mapping[str, Any]
) -> float:
    """The split bound of traffic w on places with distances d (docs/bounds.md, "split"), less rounding errors."""
    k = len(d)
    m = numbers(certificate, "multipliers", k * k).reshape(k, k)
    price = numbers(certificate, "price", k)
    rows, paid, mass = _rows(certificate, d, room, flat)
    s = 0.5 * (m + m.T)
    load, reach = s.sum(axis=0), d.sum(axis=0)
    v = helmert(k)
    lam, mu = eigvalsh(v @ s @ v.T), eigvalsh(v @ d @ v.T)
    linear = float(price.sum())
    near = np.sort(d + np.diag(np.full(k, -1.0)), axis=1)[:, 1:]
    for u in range(k):
        left = np.delete(w[u] - m[u] - rows[u], u)
        linear += float((near @ np.sort(left)[::-1] + 2 * load[u] / k * reach - price).min())
    flat_part = float(load.sum()) * float(reach.sum()) / k**2
    size = np.abs(lam).sum() * np.abs(mu).max() + np.linalg.norm(s) * np.abs(mu).sum()
    size += float(d.max()) * (w.sum() + 3 * np.abs(m).sum() + mass) + np.abs(price).sum() + abs(paid)
    noise = 8 * k * np.finfo(float).eps * float(size)
    return (float(lam @ mu[::-1]) + linear - flat_part + paid - noise) / 2


def _rows(
    certificate: Mapping[str, Any], d: FloatArray, room: int, flat: bool
) -> tuple[FloatArray, float, float]:
    """(k, k) sum of tau times the rows, what they are worth together, and the sum of their absolute coefficients."""
    k = len(d)
    size, member = _whole(certificate, "sizes"), _whole(certificate, "members")
    tau = numbers(certificate, "tau", len(size))
    if len(size) and not (size.min() >= 3 and size.max() <= k):
        raise CertificateError(f"'sizes' must lie in 3..{k}")
    if size.sum() != len(member):
        raise CertificateError(f"'members' has {len(member)} entries, 'sizes' add up to {size.sum()}")
    if len(member) and not (np.abs(member).min() >= 1 and np.abs(member).max() <= k):
        raise CertificateError(f"'members' must lie in 1..{k}, negative for sign -")
    if tau.min(initial=0.0) < 0:
        raise CertificateError(f"'tau' holds {tau.min():.6g}; multipliers of rows must be >= 0")
    detour = 0.0 if flat else _least_detour(d)
    together = {c: _clique(c, d, room) for c in np.unique(size).tolist()}
    total, paid, mass, at = np.zeros((k, k)), 0.0, 0.0, 0
    for count, weight in zip(size.tolist(), tau.tolist(), strict=True):
        row = member[at : at + count]
        at += count
        node, sign = np.abs(row) - 1, np.sign(row).astype(np.float64)
        if len(np.unique(node)) < count:
            raise CertificateError("'members' names a node twice in one row")
        if (sign > 0).all():
            paid, way = paid + weight * together[count], 1.0
        elif sign.sum() == 1 and (flat or count == 3):
            paid, way = paid + weight * detour * (count == 3), -1.0
        else:
            raise CertificateError("'members' has a row that the distances need not obey")
        total[np.ix_(node, node)] += 0.5 * weight * way * np.outer(sign, sign)
        mass += weight * count * count
    np.fill_diagonal(total, 0.0)
    return total, paid, mass


def _clique(count: int, d: FloatArray, room: int) -> float:
    """No set of so many places has a smaller sum of distances: as few pairs parted as can be, at the least distance."""
    held = np.bincount(np.arange(count) // room)
    parted = comb(count, 2) - sum(comb(int(h), 2) for h in held)
    across = d[~np.kron(np.eye(len(d) // room, dtype=bool), np.ones((room, room), bool))]
    least = parted * float(across.min(initial=np.inf)) if parted else 0.0
    if count == 3 and room == 1:
        far = np.where(np.eye(len(d), dtype=bool), np.inf, d)
        least = max(least, min(float((far + far[p][:, None] + far[p][None, :]).min()) for p in range(len(d))))
    return least


def _least_detour(d: FloatArray) -> float:
    """Least of d_pa + d_pb - d_ab over three different places; negative if the triangle inequality fails."""
    far = np.where(np.eye(len(d), dtype=bool), np.inf, d)
    short = np.where(np.eye(len(d), dtype=bool), -np.inf, d)
    return float(min((far[p][:, None] + far[p][None, :] - short).min() for p in range(len(d))))


def _whole(certificate: Mapping[str, Any], name: str) -> IntArray:
    """The field as whole numbers. Raises CertificateError."""
    stated = certificate.get(name)
    values = numbers(certificate, name, len(stated) if isinstance(stated, list | np.ndarray) else 0)
    if (values != np.rint(values)).any() or np.abs(values).max(initial=0.0) > 2**31:
        raise CertificateError(f"{name!r} must hold whole numbers")
    return values.astype(np.int64)
