"""What every re-check needs, recomputed plainly: traffic, distances, room on a core, fields of a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.hw.cost import core_distance, uses_links, uses_nets
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Distances of all pairs of cores are held in memory here (about 1 GB at this size).
MAX_CORES = 6000
#: Numbers beyond this prove nothing, and products of them would overflow.
LARGEST_NUMBER = 1e60


class CertificateError(Exception):
    """A certificate that proves nothing; the text says which part is wrong."""


def expect(problem: MappingProblem, charged: str = "sums", fewest: int = 2) -> None:
    """Raise CertificateError unless the objective is charged as a bound assumes, on ``fewest`` usable cores or more.

    ``charged``: ``pairs`` (edge by edge), ``nets`` (messages by their route tree) or ``sums`` (either).
    """
    if uses_links(problem):
        raise CertificateError("the bound is for sums over pairs or messages")
    if charged == "pairs" and uses_nets(problem):
        raise CertificateError("messages are charged by their route tree, the bound is for sums over pairs")
    if charged == "nets" and not uses_nets(problem):
        raise CertificateError("the bound is for messages that are charged by their route tree")
    usable = int(problem.machine.usable.sum())
    if usable < fewest:
        raise CertificateError(f"{usable} usable cores, expected at least {fewest}")


def numbers(certificate: Mapping[str, Any], name: str, length: int) -> FloatArray:
    """The field ``name`` as (length,) finite floats of moderate size. Raises CertificateError."""
    if name not in certificate:
        raise CertificateError(f"{name!r} is missing")
    try:
        array = np.asarray(certificate[name], np.float64)
    except (TypeError, ValueError) as error:
        raise CertificateError(f"{name!r} does not hold numbers") from error
    if array.shape != (length,):
        raise CertificateError(f"{name!r} has shape {array.shape}, expected ({length},)")
    if not np.isfinite(array).all():
        raise CertificateError(f"{name!r} holds a number that is not finite")
    if np.abs(array).max(initial=0.0) > LARGEST_NUMBER:
        raise CertificateError(f"{name!r} holds a number above {LARGEST_NUMBER:g}")
    return array


def rho_of(certificate: Mapping[str, Any]) -> float:
    """The field ``rho``; below 0 the extreme part sizes would not be the worst ones. Raises CertificateError."""
    rho = float(numbers({"rho": [certificate.get("rho", np.nan)]}, "rho", 1)[0])
    if rho < 0:
        raise CertificateError(f"'rho' is {rho:.6g}, expected a number >= 0")
    return rho


def usable_cores(problem: MappingProblem) -> IntArray:
    """Core numbers that may hold nodes."""
    out: IntArray = np.flatnonzero(problem.machine.usable).astype(np.int64)
    return out


def one_way_traffic(problem: MappingProblem) -> csr_array:
    """(n, n) traffic as stored, w_uv."""
    g = problem.graph
    return coo_array((g.weights, (g.edge_source, g.targets)), shape=(g.n, g.n)).tocsr()


def both_ways(problem: MappingProblem) -> csr_array:
    """(n, n) symmetric traffic w_uv + w_vu."""
    w = one_way_traffic(problem)
    return csr_array(w + w.T)


def all_distances(problem: MappingProblem) -> FloatArray:
    """(k, k) distances between usable cores as they are. Raises CertificateError beyond MAX_CORES."""
    if problem.cores > MAX_CORES:
        raise CertificateError(f"{problem.cores} cores are more than the {MAX_CORES} that can be re-checked")
    cores = usable_cores(problem)
    out: FloatArray = core_distance(problem).dense()[np.ix_(cores, cores)]
    return out


def distances(problem: MappingProblem) -> FloatArray:
    """(k, k) distances between usable cores; symmetric: the mean of both ways if traffic is symmetric, else the lesser."""
    d = all_distances(problem)
    if (d == d.T).all():
        return d
    w = one_way_traffic(problem)
    if abs(w - w.T).sum() == 0:
        return (d + d.T) / 2
    return np.minimum(d, d.T)


def least_apart(problem: MappingProblem) -> float:
    """What a pair on two cores, or every further core of a message, costs at least per unit of traffic.

    The least distance; for route trees the least link, as they may branch in cores that hold nothing.
    """
    machine = problem.machine
    if problem.objective == "connectivity":
        return 1.0
    if uses_nets(problem) and machine.distance_matrix is None:
        quantity = "energy" if problem.objective == "energy" else "hops"
        return step_value(machine, quantity) + least_link(problem)
    d = all_distances(problem) if uses_nets(problem) else distances(problem)  # messages go one way
    return float(d[~np.eye(len(d), dtype=bool)].min())


def least_link(problem: MappingProblem) -> float:
    """Cost of the cheapest link between two lines of the mesh."""
    quantity = "energy" if problem.objective == "energy" else "hops"
    return min(float(v) for axis in (0, 1) for v in line_values(problem.machine, quantity, axis))


def granularity(problem: MappingProblem) -> float:
    """A step that divides every value of the objective, 0 if none is known."""
    if problem.objective == "max-link":
        return 1.0 if problem.graph.integral else 0.0
    if problem.objective == "reward":  # whole where nothing stands in the exponent and every term counts once
        plain = problem.terms.horizontal == problem.terms.vertical == 1 and not problem.graph.multicast.any()
        return 1.0 if plain and problem.graph.integral else 0.0
    d = core_distance(problem)
    if not (problem.graph.integral and d.integral):
        return 0.0
    if uses_nets(problem) or problem.graph.on_disk:
        return 1.0
    w = both_ways(problem).data
    if d.separable:
        values = np.concatenate([d.x, d.y, [d.wrap_x, d.wrap_y, d.step]])
    else:
        values = distances(problem).ravel()
        given = d.dense()
        one_way = one_way_traffic(problem)
        if not (given == given.T).all() and (abs(one_way - one_way.T).sum() or (values % 1).any()):
            return 1.0
    return float(_divisor(w) * _divisor(values))


def _divisor(values: FloatArray) -> int:
    """Greatest common divisor of whole numbers; 0 for none."""
    return gcd(*(int(v) for v in np.unique(values)))


def slot_rows(d: FloatArray) -> FloatArray:
    """(k, k) distances of every core to itself (at most the nearest other), then to the others, rising."""
    k = len(d)
    off = d[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    off = np.sort(off, axis=1)
    own = np.diag(d) if k == 1 else np.minimum(np.diag(d), off[:, 0])
    return np.column_stack([own, off])


def limit_of(problem: MappingProblem) -> IntArray:
    """(R,) what the largest core holds of every resource."""
    limit: IntArray = problem.capacity.max(axis=0) if problem.cores else np.zeros(0, np.int64)
    return limit


def fits_with(sizes: IntArray, limit: IntArray, taken: IntArray) -> int:
    """How many of the nodes with ``sizes`` (m, R) fit on a core of ``limit`` (R,) where ``taken`` (R,) is used."""
    if sizes.shape[1] == 0:
        return len(sizes)
    filled = np.cumsum(np.sort(sizes, axis=0), axis=0) + taken
    return int((filled <= limit).sum(axis=0).min())


def room_of(problem: MappingProblem) -> int:
    """The most nodes a core can hold, counted with the smallest. Raises CertificateError if the nodes cannot fit."""
    limit = problem.capacity.max(axis=0)
    room = fits_with(problem.sizes, limit, np.zeros_like(limit))
    if room < 1 or room * len(usable_cores(problem)) < problem.n:
        raise CertificateError("the nodes do not fit, there is nothing to bound")
    return room
