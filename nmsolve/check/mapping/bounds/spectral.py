"""Re-checks of the eigenvalue bounds: every eigenvalue is enclosed or proved from below, every sum rounded downwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.check.mapping.bounds.eigenvalues import DECOMPOSED, projected, spectrum
from nmsolve.check.mapping.bounds.operator import Operator, confirmed, proved
from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    both_ways,
    distance_error,
    distances,
    expect,
    fits_with,
    least_apart,
    lowered,
    numbers,
    parallel,
    rho_of,
    room_of,
    usable_cores,
)
from nmsolve.check.mapping.bounds.rounding import (
    SAFE,
    dot_up,
    down,
    gamma,
    products,
    row_sums,
    sum_down,
    sum_up,
    up,
)
from nmsolve.check.mapping.bounds.stored import StoredTraffic, proved_from_disk, weighed
from nmsolve.check.mapping.distances import Distances, core_distances
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray

#: Work limit of the size enumeration; the value is part of the bound's definition (docs/bounds.md).
SIZE_WORK = 6e8
#: Multipliers beyond this multiple of the sum of all weights (distances count 1 at least) prove nothing anyone needs.
LARGEST_MULTIPLIER = 1e6


def moderate(values: FloatArray, name: str, scale: float) -> FloatArray:
    """Return the field's numbers ``values``, any shape, if none is far too large for ``scale``.

    Raises
    ------
    CertificateError : a number above LARGEST_MULTIPLIER times ``scale``
    """
    most = float(np.abs(values).max(initial=0.0))
    if most > LARGEST_MULTIPLIER * scale:
        raise CertificateError(
            f"{name!r} holds {most:.3g}, far too large for a sum of weights of {scale:.3g}"
        )
    return values


def recheck_projection(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the projection bound at the given diagonal shift: two enclosed spectra and two sorts.

    Raises
    ------
    CertificateError : several nodes per core, or a shift that is missing, of wrong shape or too large
    """
    expect(problem, "pairs")
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("the projection bound holds only for one node per core")
    d = distances(problem, down=True)
    k = len(d)
    traffic = both_ways(problem)
    shift = moderate(numbers(certificate, "shift", k), "shift", float(traffic.sum()))
    step = core_distances(problem).step
    d = np.maximum(d - step, 0.0)
    np.fill_diagonal(d, 0.0)
    s = np.zeros((k, k))
    s[: problem.n, : problem.n] = traffic.toarray()
    s[np.arange(k), np.arange(k)] += shift
    # the diagonal of s is free, so its rounding is of no account: the bound holds for the diagonal that came out
    value = sum_down([down(step * sum_down(traffic.data) / 2), down(projection_value(s, d) / 2)])
    return lowered(problem, value, parallel(problem) + 4)


def projection_value(s: FloatArray, d: FloatArray, linear: bool = True) -> float:
    """No more than ``trace(S X D X')`` is for any permutation matrix X; symmetric (k, k); D >= 0 with diagonal 0.

    Without ``linear`` its linear part, ``2/k <S e, D e>``, is left out: someone else pays it.
    """
    k = len(d)
    low, high = projected(s)
    near, far = projected(d)
    value = [sum_down(products(low, high, near[::-1], far[::-1])[0])]
    load, load_off = row_sums(s)
    reach, reach_off = row_sums(d)
    if linear:
        order, other = np.sort(load), np.sort(reach)[::-1]
        one, two = SAFE * float(load_off.max()), SAFE * float(reach_off.max())
        value.append(2 / k * sum_down(products(order - one, order + one, other - two, other + two)[0]))
        value[-1] = down(value[-1] - 1e-15 * abs(value[-1]))
    ends = [np.array([end(values.tolist())]) for values in (load, reach) for end in (sum_down, sum_up)]
    width = [SAFE * float(load_off.sum()), SAFE * float(reach_off.sum())]
    flat = float(
        products(ends[0] - width[0], ends[1] + width[0], ends[2] - width[1], ends[3] + width[1])[1][0]
    )
    value.append(-(flat + 1e-15 * abs(flat)) / k**2)
    value.append(-1e-15 * abs(value[-1]))
    return sum_down(value)


def recheck_partition_placement(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The partition-placement bound at the given multipliers, with the stated eigenvalue bounds as far as they are proved.

    Raises
    ------
    CertificateError : no mesh or torus, or a field that is missing, wrong, or cannot be confirmed
    """
    expect(problem, "pairs")
    room = room_of(problem)
    if problem.machine.distance_matrix is not None:
        raise CertificateError("the bound `joint` needs a mesh or torus")
    traffic = _traffic(problem)
    shift, rho, lam = _multipliers(problem, certificate, traffic)
    healthy = replace(problem, machine=replace(problem.machine, faulty_links=()))
    codes = _codes(core_distances(healthy), problem)
    lines = codes.shape[1]
    lam = np.concatenate([lam, np.full(max(0, lines - len(lam)), lam[-1])])[:lines]
    length = float((codes[0] ** 2).sum())
    # square roots, products and sums of codes, all squared lengths being ``length``
    off = gamma(4 * (len(codes) + lines) + 40) * length
    least = np.inf
    for sizes in _extreme_sizes(problem.n, len(codes), room, lines):
        mass = np.abs(sizes).sum(axis=1)
        gram = np.einsum("vp,pi,pj->vij", sizes, codes, codes, optimize=True)
        near, far = spectrum((gram + np.swapaxes(gram, 1, 2)) / 2, off * mass)
        paid = products(lam, lam, near[:, ::-1], far[:, ::-1])[0]
        centre = off * mass**2 / problem.n
        drift = rho * (((sizes @ codes) ** 2).sum(axis=1) / problem.n + centre)
        value = (
            paid.sum(axis=1) - drift - gamma(lines + 8) * (np.abs(paid).sum(axis=1) + drift) - rho * centre
        )
        least = min(least, down(float(value.min())))
    total = np.array([sum_up(shift)])
    spent = float(products(total, total, np.array([length - off]), np.array([length + off]))[1][0])
    blurred = SAFE * distance_error(healthy) * float(traffic.sum()) / 2
    return lowered(problem, sum_down([least, -spent, -blurred]), parallel(problem) + 4)


def recheck_parts(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the parting bound at the given multipliers, with the stated eigenvalue bounds as far as they are proved.

    Raises
    ------
    CertificateError : all nodes may fit on one core, or a field that is missing, wrong, or cannot be confirmed
    """
    expect(problem)
    room = room_of(problem)
    if room >= problem.n:
        raise CertificateError("all nodes may fit on one core: nothing needs to be cut")
    apart = least_apart(problem)
    shift, rho, lam = _multipliers(problem, certificate, _parting(problem))
    doubled = doubled_parts(problem.n, room, shift, rho, lam)
    value = down(apart * doubled / 2) if np.isfinite(doubled) else -np.inf
    return lowered(problem, value, parallel(problem) + 4)


def doubled_parts(n: int, room: int, shift: FloatArray, rho: float, lam: FloatArray) -> float:
    """Return ``sum_i lambda_i m_i - sum shift - rho sum m^2 / n``, m full parts and one rest, rounded down.

    ``shift`` is (n,), ``lam`` (count,) rising; later eigenvalues count as its last.
    """
    full, rest = divmod(n, room)
    sizes = np.array([room] * full + [rest] * (rest > 0), np.float64)
    paid = np.append(lam, np.full(max(0, len(sizes) - len(lam)), lam[-1]))[: len(sizes)]
    drift = up(rho * dot_up(sizes, sizes))
    return sum_down([*products(paid, paid, sizes, sizes)[0].tolist(), *(-shift).tolist(), -up(drift / n)])


def _multipliers(
    problem: MappingProblem, certificate: Mapping[str, Any], pairs: csr_array | StoredTraffic
) -> tuple[FloatArray, float, FloatArray]:
    """Shift, rho and proved eigenvalue bounds of the Laplacian of ``pairs`` with them."""
    shift = numbers(certificate, "shift", problem.n)
    rho = rho_of(certificate)
    lam = rising(certificate, problem.n)
    for values, name in ((shift, "shift"), (np.array([rho]), "rho"), (lam, "eigenvalues")):
        moderate(values, name, float(pairs.sum()))
    if isinstance(pairs, StoredTraffic):
        return shift, rho, confirmed(lam, proved_from_disk(pairs, shift, rho, lam))
    return shift, rho, proved(Operator(pairs, shift, rho), lam)


def _traffic(problem: MappingProblem) -> csr_array | StoredTraffic:
    """Return (n, n) symmetric traffic; on disk only where the matrix is too large to decompose."""
    return _read(problem.graph) if problem.graph.on_disk else both_ways(problem)


def _read(graph: LogicGraph, each: FloatArray | None = None) -> csr_array | StoredTraffic:
    """Return the same of a graph on disk; ``each`` as of :class:`.stored.StoredTraffic`."""
    if graph.n > DECOMPOSED:
        return StoredTraffic.of(graph, each)
    w = np.zeros((graph.n, graph.n))
    for rows in weighed(graph, each):
        np.add.at(w, (np.repeat(rows.source, np.diff(rows.indptr)), rows.targets), rows.weights)
    return csr_array(w + w.T)


def _parting(problem: MappingProblem) -> csr_array | StoredTraffic:
    """Return (n, n) symmetric traffic that is paid at least once where its ends are apart."""
    graph = problem.graph
    if not problem.uses_nets:
        return _traffic(problem)
    each = _each(problem)
    if graph.on_disk:
        return _read(graph, each)
    many = np.diff(graph.indptr)
    weight = np.where(each.repeat(many) < 0, graph.weights, each.repeat(many))
    w = coo_array((weight, (graph.edge_source, graph.targets)), shape=(graph.n, graph.n)).tocsr()
    return csr_array(w + w.T)


def _each(problem: MappingProblem) -> FloatArray:
    """Return (messages,) what a target on another core costs a message at least, below 0 where edges are charged one by one."""
    graph, limit = problem.graph, problem.capacity.max(axis=0)
    out = np.full(graph.rows, -1.0)
    for rows in graph.blocks():
        for i, number in enumerate(range(rows.first, rows.first + len(rows.source))):
            targets = rows.targets[rows.indptr[i] : rows.indptr[i + 1]]
            if rows.multicast[i] or problem.aim.reach:
                beside = fits_with(problem.sizes[targets], limit, np.zeros_like(limit))
                out[number] = rows.rate[i] / max(1, beside)
    return out


def rising(certificate: Mapping[str, Any], most: int) -> FloatArray:
    """Return the field ``eigenvalues`` (count,), rising.

    Raises
    ------
    CertificateError : none, more than ``most``, or not rising
    """
    lam = numbers(certificate, "eigenvalues")
    if not 1 <= len(lam) <= most or (np.diff(lam) < 0).any():
        raise CertificateError("'eigenvalues' must hold at least one number, rising")
    return lam


def _codes(d: Distances, problem: MappingProblem) -> FloatArray:
    """Return one row per usable core; squared distances of rows are the distances of cores; all rows equally long."""
    cores = usable_cores(problem)
    columns: list[FloatArray] = []
    for at, wrap, index in ((d.x, d.wrap_x, cores % d.cols), (d.y, d.wrap_y, cores // d.cols)):
        if wrap <= 0:
            for left, right in pairwise(at):
                columns.append(np.where(at[index] >= right, 0.5, -0.5) * np.sqrt(right - left))
            continue
        # Half circles that start between two marks hold the same cores.
        marks = np.unique(np.append(at % (wrap / 2), [0.0, wrap / 2]))
        for left, right in pairwise(marks):
            behind = (at[index] - (left + right) / 2) % wrap < wrap / 2
            columns.append(np.where(behind, 0.5, -0.5) * np.sqrt(right - left))
    if d.step > 0:
        columns += list(np.sqrt(d.step / 2) * np.eye(len(cores)))
    return np.column_stack(columns) if columns else np.zeros((len(cores), 1))


def _extreme_sizes(n: int, cores: int, room: int, lines: int) -> list[FloatArray]:
    """Part sizes whose hull holds all admissible ones, in batches; see "Sizes" in docs/bounds.md."""
    limit = max(cores, int(SIZE_WORK / max(1, lines) ** 3))
    full, rest = divmod(n, room)
    out: list[FloatArray] = []
    batch: list[FloatArray] = []

    def put(sizes: FloatArray) -> None:
        batch.append(sizes)
        if len(batch) * lines**2 > 2_000_000:
            out.append(np.array(batch))
            batch.clear()

    if comb(cores, full) * (cores - full if rest else 1) <= limit:
        for chosen in combinations(range(cores), full):
            sizes = np.zeros(cores)
            sizes[list(chosen)] = room
            for p in np.flatnonzero(sizes == 0).tolist() if rest else [-1]:
                one = sizes.copy()
                one[p] += rest
                put(one)
    else:
        missing = cores * room - n
        fewest = [j for j in (1, 2, 3) if j * room <= missing and comb(cores, j) <= limit]
        emptied = max(fewest, default=1)
        for chosen in combinations(range(cores), emptied):
            sizes = np.full(cores, float(room))
            sizes[list(chosen)] -= missing / emptied
            put(sizes)
    return [*out, np.array(batch)] if batch else out
