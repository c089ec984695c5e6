"""What every re-check needs, recomputed plainly: traffic, distances, room on a core, fields of a certificate.

Everything here is exact where the data are whole numbers, and otherwise comes with a bound on its rounding errors: distances
and traffic can be had rounded down, and :func:`lowered` takes off what a sum of numbers >= 0 can be too large by.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, gcd
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.check.mapping.distances import core_distances, line_costs, step_cost
from nmsolve.model.errors import CertificateError as CertificateError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Distances of all pairs of cores are held in memory here (about 1 GB at this size).
MAX_CORES = 6000
#: Numbers beyond this prove nothing, and products of them would overflow.
LARGEST_NUMBER = 1e60
#: Twice the unit roundoff: one operation on floats is wrong by less than this part of its result.
EPS = float(np.finfo(float).eps)
#: Whole numbers up to this are exact as floats, and so are their sums.
EXACT = 2.0**53


def expect(problem: MappingProblem, charged: str = "sums", fewest: int = 2) -> None:
    """Raise CertificateError unless the objective is charged as a bound assumes, on ``fewest`` usable cores or more.

    ``charged``: ``pairs`` (edge by edge), ``nets`` (messages by their route tree) or ``sums`` (either).
    """
    if problem.uses_links:
        raise CertificateError("the bound is for sums over pairs or messages")
    if charged == "pairs" and problem.uses_nets:
        raise CertificateError("messages are charged by their route tree, the bound is for sums over pairs")
    if charged == "nets" and not problem.uses_nets:
        raise CertificateError("the bound is for messages that are charged by their route tree")
    usable = int(problem.machine.usable.sum())
    if usable < fewest:
        raise CertificateError(f"{usable} usable cores, expected at least {fewest}")


def numbers(certificate: Mapping[str, Any], name: str, length: int | None = None) -> FloatArray:
    """Return the field ``name`` as (length,) finite floats of moderate size; of any length if None. Raises CertificateError."""
    if name not in certificate:
        raise CertificateError(f"{name!r} is missing")
    stated = certificate[name]
    items = stated if isinstance(stated, list | tuple) else [stated]
    plain = all(isinstance(v, int | float | np.integer) and not isinstance(v, bool) for v in items)
    if not plain and not (isinstance(stated, np.ndarray) and stated.dtype.kind in "iuf"):
        raise CertificateError(f"{name!r} does not hold numbers")
    try:
        array = np.asarray(stated, np.float64)
    except OverflowError as error:
        raise CertificateError(f"{name!r} holds a number above {LARGEST_NUMBER:g}") from error
    if array.ndim != 1 or length not in (None, len(array)):
        raise CertificateError(f"{name!r} has shape {array.shape}, expected ({length or ''},)")
    if not np.isfinite(array).all():
        raise CertificateError(f"{name!r} holds a number that is not finite")
    if np.abs(array).max(initial=0.0) > LARGEST_NUMBER:
        raise CertificateError(f"{name!r} holds a number above {LARGEST_NUMBER:g}")
    return array


def whole_numbers(
    certificate: Mapping[str, Any],
    name: str,
    length: int | None = None,
    least: float = -EXACT,
    most: float = EXACT,
) -> IntArray:
    """Return the field ``name`` (length,) as int64.

    Raises
    ------
    CertificateError : it holds no such numbers, or one that is fractional, below ``least`` or of a size from
        ``most`` on
    """
    values = numbers(certificate, name, length)
    if (values % 1).any() or (values < least).any() or (np.abs(values) >= most).any():
        raise CertificateError(
            f"{name!r} must hold whole numbers: one is not whole, too large or below {least:g}"
        )
    return values.astype(np.int64)


def rho_of(certificate: Mapping[str, Any]) -> float:
    """Return the field ``rho``; below 0 the extreme part sizes would not be the worst ones. Raises CertificateError."""
    rho = float(numbers({"rho": [certificate.get("rho", np.nan)]}, "rho", 1)[0])
    if rho < 0:
        raise CertificateError(f"'rho' is {rho:.6g}, expected a number >= 0")
    return rho


def usable_cores(problem: MappingProblem) -> IntArray:
    """Return (k,) the numbers of the cores that may hold nodes."""
    out: IntArray = np.flatnonzero(problem.machine.usable).astype(np.int64)
    return out


def one_way_traffic(problem: MappingProblem) -> csr_array:
    """Return (n, n) traffic as stored, w_uv."""
    g = problem.graph
    return coo_array((g.weights, (g.edge_source, g.targets)), shape=(g.n, g.n)).tocsr()


def both_ways(problem: MappingProblem) -> csr_array:
    """Return (n, n) symmetric traffic w_uv + w_vu."""
    w = one_way_traffic(problem)
    return csr_array(w + w.T)


def all_distances(problem: MappingProblem, down: bool = False) -> FloatArray:
    """Return (k, k) distances between usable cores as they are; with ``down`` never above the exact ones.

    Raises
    ------
    CertificateError : beyond MAX_CORES
    """
    if problem.cores > MAX_CORES:
        raise CertificateError(f"{problem.cores} cores are more than the {MAX_CORES} that can be re-checked")
    cores = usable_cores(problem)
    form = core_distances(problem)
    if not down or whole_distances(problem):
        out: FloatArray = form.dense()[np.ix_(cores, cores)]
        return out
    if not form.separable:  # sums of at most as many numbers >= 0 as there are cores
        return np.asarray(form.matrix[np.ix_(cores, cores)] * (1.0 - (problem.cores + 8) * EPS))
    energy = problem.aim.quantity
    across, along = (_apart_on_axis(line_costs(problem.machine, energy, axis), lines)
                     for axis, lines in ((1, form.cols), (0, form.rows)))  # fmt: skip
    row, col = np.divmod(cores, form.cols)
    both = across[np.ix_(col, col)] + along[np.ix_(row, row)] + form.step * ~np.eye(len(cores), dtype=bool)
    return np.asarray(both * (1.0 - 4 * EPS))


def _apart_on_axis(values: FloatArray, lines: int) -> FloatArray:
    """Return (lines, lines) distances of rows or columns whose gaps are ``values`` (one more on a torus), from exact sums.

    Right to within 2 EPS of each: coordinates are kept to twice the precision of a float, so that dear gaps elsewhere do
    not blur cheap ones here.
    """
    at = [Fraction(0)]
    for v in values.tolist():
        at.append(at[-1] + Fraction(v))
    high = np.array([float(a) for a in at])
    low = np.array([float(a - Fraction(h)) for a, h in zip(at, high.tolist(), strict=True)])
    sign = np.sign(np.arange(lines)[:, None] - np.arange(lines)[None, :])
    ahead, rest = _difference(high[:lines, None], high[None, :lines])
    ahead, rest = sign * ahead, sign * (rest + (low[:lines, None] - low[None, :lines]))
    out = ahead + rest
    if len(values) == lines:
        back, more = _difference(high[-1], ahead)
        out = np.minimum(out, back + (more + (low[-1] - rest)))
    np.fill_diagonal(out, 0.0)
    return np.asarray(np.maximum(0.0, out - 2.0**-90 * high[-1] * (out > 0)))


def _difference(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a - b, and what rounding took from it (Knuth); exact together."""
    out = a - b
    part = out - a
    return out, (a - (out - part)) - (b + part)


def distances(problem: MappingProblem, down: bool = False) -> FloatArray:
    """Return (k, k) distances between usable cores; symmetric: the mean of both ways if traffic is symmetric, else the lesser.

    With ``down`` never above the exact ones.
    """
    d = all_distances(problem, down)
    if (d == d.T).all():
        return d
    w = None if problem.graph.on_disk else one_way_traffic(problem)
    if w is not None and abs(w - w.T).sum() == 0:
        mean = (d + d.T) / 2
        return mean if not down or whole_distances(problem) else np.asarray(mean * (1.0 - 2 * EPS))
    return np.minimum(d, d.T)


def whole_distances(problem: MappingProblem) -> bool:
    """Return True if what links, steps and given distances cost are whole numbers that floats add up exactly."""
    if problem.aim.distance == "apart":
        return True
    machine = problem.machine
    quantity = problem.aim.quantity
    step = step_cost(machine, quantity)
    if machine.distance_matrix is not None:
        given = core_distances(problem).matrix
        return bool((given == np.rint(given)).all() and given.max() < EXACT / 4) and step == np.rint(step)
    links = np.concatenate([line_costs(machine, quantity, axis) for axis in (0, 1)])
    longest = float(links.max(initial=0.0)) * machine.size + step
    return bool((links == np.rint(links)).all()) and step == np.rint(step) and longest < EXACT / 4


def whole_data(problem: MappingProblem) -> bool:
    """Return True if weights, rates and distances are whole numbers, and no mapping costs more than floats count exactly."""
    graph = problem.graph
    pairs = not (problem.uses_nets or problem.uses_links or graph.on_disk)
    whole = bool((graph.weights == np.rint(graph.weights)).all()) if pairs else graph.integral
    if not (whole and whole_distances(problem)):
        return False
    if problem.uses_links or graph.on_disk:  # sums of every message's weights are not available on disk
        return True
    d = core_distances(problem)
    far = float(d.matrix.max()) if not d.separable else float(d.x[-1] + d.y[-1] + d.step)
    sent = float(graph.weights.sum()) + float(graph.rate @ np.diff(graph.indptr))
    return 2 * sent * max(1.0, far) < EXACT


def distance_error(problem: MappingProblem) -> float:
    """No distance of :func:`distances` (rounded to nearest) differs from the exact one by more."""
    if whole_distances(problem):
        return 0.0
    d, machine = core_distances(problem), problem.machine
    if not d.separable:
        return (machine.size + 8) * EPS * float(d.matrix.max())
    quantity = problem.aim.quantity
    span = sum(float(line_costs(machine, quantity, axis).sum()) for axis in (0, 1))
    return (machine.rows + machine.cols + 8) * EPS * (span + d.step)


def parallel(problem: MappingProblem) -> int:
    """No entry of the symmetric traffic is the sum of more stored edges than this."""
    return 2 * int(np.bincount(problem.graph.source).max(initial=1))


def lowered(problem: MappingProblem, value: float, roundings: int) -> float:
    """Return a sum of products of numbers >= 0, less what it can be too large by if every term went through this many roundings.

    Nothing is taken off where all data are whole numbers and the sum is small enough to be exact.
    """
    if value < EXACT and whole_data(problem):
        return value
    return value * (1.0 - (roundings + 2) * EPS)


def least_apart(problem: MappingProblem) -> float:
    """Return what a pair on two cores, or every further core of a message, costs at least per unit of traffic (rounded down).

    The least distance; for route trees the least link, as they may branch in cores that hold nothing.
    """
    machine = problem.machine
    if problem.aim.reach:
        return 1.0
    if problem.uses_nets and machine.distance_matrix is None:
        quantity = problem.aim.quantity
        least = step_cost(machine, quantity) + least_link(problem)
        return least if whole_distances(problem) else least * (1.0 - EPS)
    nets = problem.uses_nets  # messages go one way
    d = all_distances(problem, down=True) if nets else distances(problem, down=True)
    return float(d[~np.eye(len(d), dtype=bool)].min())


def least_link(problem: MappingProblem) -> float:
    """Return the cost of the cheapest link between two lines of the mesh."""
    quantity = problem.aim.quantity
    return min(float(v) for axis in (0, 1) for v in line_costs(problem.machine, quantity, axis))


def granularity(problem: MappingProblem) -> float:
    """Return a whole number that divides every value of the objective, 0 if none is known; the proof is in docs/bounds.md."""
    if problem.objective == "max-link":
        return 1.0 if problem.graph.integral else 0.0
    if problem.objective == "reward":  # whole where no exponent applies and every term counts once
        terms = problem.terms
        plain = terms.horizontal == terms.vertical == 1 and terms.hops == terms.faults == 0 and not terms.own
        return 1.0 if plain and problem.graph.integral and not problem.graph.multicast.any() else 0.0
    if problem.aim.formula:
        return 0.0
    if not whole_data(problem):
        return 0.0
    if problem.uses_nets or problem.graph.on_disk:
        return 1.0
    d, w = core_distances(problem), both_ways(problem).data
    if d.separable:
        return float(_divisor(w) * _divisor(np.concatenate([d.x, d.y, [d.wrap_x, d.wrap_y, d.step]])))
    values = distances(problem).ravel()
    given = d.matrix[np.ix_(usable_cores(problem), usable_cores(problem))]
    one_way = one_way_traffic(problem)
    if not (given == given.T).all() and (abs(one_way - one_way.T).sum() or (values % 1).any()):
        return 1.0
    return float(_divisor(w) * _divisor(values))


def below(value: Fraction) -> float:
    """Return the largest float that is not above ``value``."""
    near = float(value)
    return near if Fraction(near) <= value else float(np.nextafter(near, -np.inf))


def risen(value: float, step: float) -> float:
    """Return the least multiple >= 0 of ``step`` (whole; 0: none known) that is not below the lower bound ``value``."""
    if step <= 0 or not value < EXACT:
        return max(0.0, float(value))
    return float(max(0, ceil(Fraction(value) / Fraction(step))) * Fraction(step))


def _divisor(values: FloatArray) -> int:
    """Return the greatest common divisor of whole numbers; 0 for none."""
    return gcd(*(int(v) for v in np.unique(values)))


def slot_rows(d: FloatArray) -> FloatArray:
    """Return (k, k) distances of every core to itself (at most the nearest other), then to the others, rising."""
    k = len(d)
    off = d[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    off = np.sort(off, axis=1)
    own = np.diag(d) if k == 1 else np.minimum(np.diag(d), off[:, 0])
    return np.column_stack([own, off])


def limit_of(problem: MappingProblem) -> IntArray:
    """Return (R,) what the largest core holds of every resource."""
    limit: IntArray = problem.capacity.max(axis=0) if problem.cores else np.zeros(0, np.int64)
    return limit


def fits_with(sizes: IntArray, limit: IntArray, taken: IntArray) -> int:
    """Return how many of the nodes with ``sizes`` (m, R) fit on a core of ``limit`` (R,) where ``taken`` (R,) is used."""
    if sizes.shape[1] == 0:
        return len(sizes)
    filled = np.cumsum(np.sort(sizes, axis=0), axis=0) + taken
    return int((filled <= limit).sum(axis=0).min())


def room_of(problem: MappingProblem) -> int:
    """Return the most nodes a core can hold, counted with the smallest. Raises CertificateError if the nodes cannot fit."""
    limit = problem.capacity.max(axis=0)
    room = fits_with(problem.sizes, limit, np.zeros_like(limit))
    if room < 1 or room * len(usable_cores(problem)) < problem.n:
        raise CertificateError("the nodes do not fit, there is nothing to bound")
    return room
