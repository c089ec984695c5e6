"""Re-check of the slots bound: the sum over pairs formed again message by message, then that of the split bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any, NamedTuple

import numpy as np

from nmsolve.check.mapping.bounds.parts import (
    EPS,
    CertificateError,
    both_ways,
    distance_error,
    distances,
    expect,
    least_apart,
    least_link,
    numbers,
    parallel,
    room_of,
    usable_cores,
    whole_data,
    whole_distances,
)
from nmsolve.check.mapping.bounds.split import least_detour, least_triangle, placement_value
from nmsolve.check.mapping.bounds.trees import messages
from nmsolve.check.mapping.distances import core_distances
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most places: a wrong certificate must not ask for more memory than there is.
MAX_PLACES = 2048
#: Largest pull of a terminal; the best ones add up to about 1 for every message.
MAX_PULL = 1e6


class Sum(NamedTuple):
    """A sum over pairs of places that no mapping's cost is below, as floats, and what these can be wrong by.

    ``traffic`` (n, n) symmetric and ``apart`` (k, k) distances of the cores that matter, ``flat``: these are L1 distances;
    ``blur`` (traffic's entries together), ``offset`` (the constant) and ``distance_error`` (any distance) bound what rounding
    did.
    """

    constant: float
    traffic: FloatArray
    apart: FloatArray
    flat: bool
    blur: float
    offset: float
    distance_error: float


def recheck_slots(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the slots bound at the given multipliers, rows and prices.

    Raises
    ------
    CertificateError : too few or too many places, or a field that is missing or wrong
    """
    expect(problem)
    room = room_of(problem)
    total = _sum(problem, certificate, room)
    k = len(total.apart) * room
    if k > MAX_PLACES or k < 3:
        raise CertificateError(f"{k} places (3 to {MAX_PLACES} can be re-checked)")
    core_of = np.arange(k) // room
    d = total.apart[core_of][:, core_of]
    w = np.zeros((k, k))
    w[: problem.n, : problem.n] = total.traffic
    everywhere = np.ones((k, k), bool)
    value = placement_value(
        w, d, everywhere, certificate, lambda table: _right_sides(table, d, room, total.flat)
    )
    # The value is linear in traffic and in distances: what rounding moved times the most it can be multiplied with.
    tau, sizes = (np.asarray(certificate[name], np.float64) for name in ("tau", "sizes"))
    pulled = 3 * np.abs(numbers(certificate, "multipliers", k * k)).sum() + float(np.abs(tau) @ sizes**2)
    charge = (
        total.offset + total.blur * float(d.max()) + total.distance_error * float(np.abs(w).sum() + pulled)
    )
    return total.constant + value - charge - 4 * EPS * (abs(total.constant) + abs(value) + charge)


def _sum(problem: MappingProblem, certificate: Mapping[str, Any], room: int) -> Sum:
    """Return the sum over pairs that bounds the objective."""
    if problem.uses_nets:
        return (_spans if problem.one_per_core else _pulled)(problem, certificate, room)
    traffic = both_ways(problem).toarray()
    np.fill_diagonal(traffic, 0.0)
    flat = core_distances(problem).separable
    blur = 0.0 if whole_data(problem) else parallel(problem) * EPS * float(traffic.sum())
    if problem.aim.distance == "apart":
        return Sum(0.0, traffic, 1.0 - np.eye(_cores(problem, room)), flat, blur, 0.0, 0.0)
    d = distances(problem).copy()
    np.fill_diagonal(d, 0.0)
    return Sum(0.0, traffic, d, flat, blur, 0.0, distance_error(problem))


def _cores(problem: MappingProblem, room: int) -> int:
    """Of cores that are all alike, two whose nodes fit together can be merged: this many are enough."""
    # n nodes on c > 1 cores, any two of them together above room: c room < 2 n
    enough = 1
    while (enough + 1) * room < 2 * problem.n:
        enough += 1
    return min(len(usable_cores(problem)), enough)


def _pulled(problem: MappingProblem, certificate: Mapping[str, Any], room: int) -> Sum:
    pairs, nets, rate = messages(problem)
    pull = numbers(certificate, "pulls", nets.nnz)
    if np.abs(pull).max(initial=0.0) > MAX_PULL:
        raise CertificateError(f"'pulls' holds a number above {MAX_PULL:g}")
    traffic, constant, apart = pairs.toarray(), 0.0, least_apart(problem)
    mass, paid = float(traffic.sum()), 0.0
    for i in range(len(rate)):
        part = slice(nets.indptr[i], nets.indptr[i + 1])
        ends, q = nets.indices[part], pull[part]
        traffic[np.ix_(ends, ends)] += 2 * rate[i] * np.outer(q, q)
        constant -= apart * float(rate[i]) * float(q.sum() - 1) ** 2
        mass += 2 * float(rate[i]) * float(np.abs(q).sum()) ** 2
        paid += apart * float(rate[i]) * float(np.abs(q).sum() + 1) ** 2
    np.fill_diagonal(traffic, 0.0)
    roundings = len(rate) + parallel(problem) + int(np.diff(nets.indptr).max(initial=0)) + 8
    blur, offset = 2 * roundings * EPS * mass, 2 * roundings * EPS * paid
    return Sum(constant, traffic, apart * (1.0 - np.eye(_cores(problem, room))), True, blur, offset, 0.0)


def _spans(problem: MappingProblem, certificate: Mapping[str, Any], room: int) -> Sum:
    graph, machine = problem.graph, problem.machine
    if problem.aim.reach or machine.distance_matrix is not None:
        raise CertificateError("with one node per core the bound is for route trees on a mesh or torus")
    healthy = replace(problem, machine=replace(machine, faulty_links=()))
    step = core_distances(healthy).step
    d = core_distances(healthy).dense()[np.ix_(usable_cores(problem), usable_cores(problem))] - step
    np.fill_diagonal(d, 0.0)
    least = least_link(problem)
    trees = [i for i in range(graph.rows) if graph.multicast[i] and graph.indptr[i] < graph.indptr[i + 1]]
    theta = numbers(certificate, "theta", len(trees))
    if len(theta) and not (theta.min() >= 0 and theta.max() <= 1):
        raise CertificateError("'theta' must be in 0..1")
    share = dict(zip(trees, theta.tolist(), strict=True))
    traffic, constant, mass, paid = np.zeros((graph.n, graph.n)), 0.0, 0.0, 0.0
    for i in range(graph.rows):
        ends = [int(graph.source[i]), *graph.targets[graph.indptr[i] : graph.indptr[i + 1]].tolist()]
        if not graph.multicast[i]:
            for v, w in zip(ends[1:], graph.weights[graph.indptr[i] : graph.indptr[i + 1]], strict=True):
                traffic[ends[0], v] += w
                traffic[v, ends[0]] += w
                constant += step * float(w)
                mass += 2 * float(w)
                paid += step * float(w)
        elif len(ends) > 1:
            t, rate = len(ends), float(graph.rate[i])
            across = (t // 2) * ((t + 1) // 2)
            traffic[np.ix_(ends, ends)] += rate * share[i] / across
            constant += rate * ((t - 1) * (step + least) - share[i] * least * comb(t + 1, 3) / across)
            mass += rate * share[i] * t * t / across
            paid += rate * ((t - 1) * (step + least) + share[i] * least * comb(t + 1, 3) / across)
    np.fill_diagonal(traffic, 0.0)
    roundings = graph.rows + graph.m + 8
    far = distance_error(healthy) + (0.0 if whole_distances(healthy) else 2 * EPS * (float(d.max()) + step))
    return Sum(constant, traffic, d, True, roundings * EPS * mass, roundings * EPS * paid, far)


def _right_sides(table: IntArray, d: FloatArray, room: int, flat: bool) -> tuple[FloatArray, FloatArray]:
    """Return right-hand sides and orientations of rows of one size; raises CertificateError where a row is not valid here."""
    count = table.shape[1]
    clique = (table > 0).all(axis=1)
    if not (clique | ((np.sign(table).sum(axis=1) == 1) & (flat or count == 3))).all():
        raise CertificateError("'members' has a row that the distances need not obey")
    detour = 0.0 if flat or clique.all() else least_detour(d)
    together = _clique(count, d, room) if clique.any() else 0.0
    return np.where(clique, together, detour), np.where(clique, 1.0, -1.0)


def _clique(count: int, d: FloatArray, room: int) -> float:
    """No set of this many places has a smaller sum of distances: as few pairs parted as can be, at the least distance."""
    held = np.bincount(np.arange(count) // room)
    parted = comb(count, 2) - sum(comb(int(h), 2) for h in held)
    across = d[~np.kron(np.eye(len(d) // room, dtype=bool), np.ones((room, room), bool))]
    least = parted * float(across.min(initial=np.inf)) if parted else 0.0
    if count == 3 and room == 1:
        least = max(least, least_triangle(d))
    return least
