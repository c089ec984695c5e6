"""Re-checks of the eigenvalue bounds, with their own decompositions and, for large graphs, their own random vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigvalsh, helmert
from scipy.sparse import coo_array, csr_array, diags_array

from nmsolve.hw.cost import CoreDistance, core_distance, uses_nets
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    both_ways,
    distances,
    expect,
    fits_with,
    least_apart,
    numbers,
    rho_of,
    room_of,
    usable_cores,
)

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

#: Graphs up to this size are decomposed densely; beyond, eigenvalues are confirmed with random vectors.
DENSE = 3000
#: Four standard normal numbers are all smaller than this with probability < 5e-13.
SMALL = 1e-3
#: Work limit of the size enumeration; the value is part of the bound's definition (docs/bounds.md).
SIZE_WORK = 6e8


def recheck_projection(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The projection bound at the given diagonal shift: two dense decompositions and two sorts."""
    expect(problem, "pairs")
    if not problem.one_per_core or room_of(problem) > 1:
        raise CertificateError("the projection bound holds only for one node per core")
    d = distances(problem)
    k = len(d)
    shift = numbers(certificate, "shift", k)
    step = core_distance(problem).step
    d = d - step
    np.fill_diagonal(d, 0.0)
    traffic = both_ways(problem)
    s = np.zeros((k, k))
    s[: problem.n, : problem.n] = traffic.toarray()
    s[np.arange(k), np.arange(k)] += shift
    v = helmert(k)
    lam = eigvalsh(v @ s @ v.T)
    mu = eigvalsh(v @ d @ v.T)[::-1]
    load, reach = s.sum(axis=1), d.sum(axis=1)
    linear = 2 / k * float(np.sort(load) @ np.sort(reach)[::-1])
    flat = float(load.sum()) * float(reach.sum()) / k**2
    noise = 8 * k * np.finfo(float).eps
    margin = noise * (np.abs(lam).sum() * np.abs(mu).max(initial=0) + np.linalg.norm(s) * np.abs(mu).sum())
    doubled = float(lam @ mu) + linear - flat - float(margin) - noise * (abs(linear) + abs(flat))
    return step * float(traffic.sum()) / 2 + doubled / 2


def recheck_joint(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The joint bound at the given multipliers, once the stated eigenvalue bounds are confirmed."""
    expect(problem, "pairs")
    room = room_of(problem)
    if problem.machine.distance_matrix is not None:
        raise CertificateError("the joint bound needs a mesh or torus")
    shift = numbers(certificate, "shift", problem.n)
    rho = rho_of(certificate)
    lam = rising(certificate, problem.n)
    count = len(lam)
    _confirm(both_ways(problem), shift, rho, lam)
    healthy = replace(problem, machine=replace(problem.machine, faulty_links=()))
    codes = _codes(core_distance(healthy), problem)
    lines = codes.shape[1]
    lam = np.concatenate([lam, np.full(max(0, lines - count), lam[-1])])[:lines]
    length = float((codes[0] ** 2).sum())
    least = np.inf
    for sizes in _extreme_sizes(problem.n, len(codes), room, lines):
        sigma = np.linalg.eigvalsh(np.einsum("vp,pi,pj->vij", sizes, codes, codes, optimize=True))[:, ::-1]
        drift = ((sizes @ codes) ** 2).sum(axis=1) / problem.n
        least = min(least, float((sigma @ lam - rho * drift).min()))
    return least - length * float(shift.sum()) - 1e-10 * length * float(np.abs(shift).sum())


def recheck_parts(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The parting bound at the given multipliers, once the stated eigenvalue bounds are confirmed."""
    expect(problem)
    room = room_of(problem)
    if room >= problem.n:
        raise CertificateError("all nodes may fit on one core, nothing need part")
    shift = numbers(certificate, "shift", problem.n)
    rho = rho_of(certificate)
    lam = rising(certificate, problem.n)
    apart = least_apart(problem)
    _confirm(_parting(problem), shift, rho, lam)
    sizes, left = [], problem.n
    while left > 0:
        sizes.append(float(min(room, left)))
        left -= room
    m = np.array(sizes) * apart / 2
    value = float(m @ np.append(lam, np.full(max(0, len(m) - len(lam)), lam[-1]))[: len(m)])
    value -= rho * float(m @ np.array(sizes)) / problem.n
    return value - apart / 2 * (float(shift.sum()) + 1e-10 * float(np.abs(shift).sum()))


def _parting(problem: MappingProblem) -> csr_array:
    """(n, n) symmetric traffic that is paid at least once where its ends are apart."""
    graph = problem.graph
    if not uses_nets(problem):
        return both_ways(problem)
    weight, limit = graph.weights.copy(), problem.capacity.max(axis=0)
    for i in range(graph.rows):
        part = slice(graph.indptr[i], graph.indptr[i + 1])
        if part.start < part.stop and (graph.multicast[i] or problem.objective == "connectivity"):
            beside = fits_with(problem.sizes[graph.targets[part]], limit, np.zeros_like(limit))
            weight[part] = graph.rate[i] / max(1, beside)
    w = coo_array((weight, (graph.edge_source, graph.targets)), shape=(graph.n, graph.n)).tocsr()
    return csr_array(w + w.T)


def rising(certificate: Mapping[str, Any], most: int) -> FloatArray:
    """The field ``eigenvalues``: at least one, at most ``most``, rising."""
    stated = certificate.get("eigenvalues")
    count = len(stated) if isinstance(stated, list | np.ndarray) else 0
    lam = numbers(certificate, "eigenvalues", count)
    if not 1 <= count <= most or (np.diff(lam) < 0).any():
        raise CertificateError("'eigenvalues' must be rising and at least one")
    return lam


def _codes(d: CoreDistance, problem: MappingProblem) -> FloatArray:
    """One row per usable core; squared distances of rows are the distances of cores; all rows equally long."""
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


def _confirm(s: csr_array, shift: FloatArray, rho: float, lam: FloatArray) -> None:
    """Raise CertificateError unless the i-th smallest eigenvalue of L + diag(shift) + rho ee'/n is >= lam[i]."""
    confirm(csr_array(diags_array(s.sum(axis=1) + shift) - s), rho, lam)


def confirm(a: csr_array | LinearOperator, rho: float, lam: FloatArray) -> None:
    """Raise CertificateError unless the i-th smallest eigenvalue of a + rho ee'/n is >= lam[i]."""
    n, count = a.shape[0], len(lam)
    if n <= DENSE:
        dense = np.asarray(a @ np.eye(n)) + rho / n
        true = eigvalsh(dense)[:count] + 8 * n * np.finfo(float).eps * np.linalg.norm(dense)
    else:
        true = _confirmed(a, rho, count)
    low = np.flatnonzero(lam > true + 1e-9 * np.abs(true))
    if len(low):
        i = int(low[0])
        raise CertificateError(
            f"'eigenvalues' entry {i} is {lam[i]:.10g}, only {true[i]:.10g} can be confirmed"
        )


def _confirmed(a: csr_array | LinearOperator, rho: float, count: int) -> FloatArray:
    """Lower bounds on the smallest eigenvalues of a large matrix (docs/bounds.md, "Eigenvalues that are safe")."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = a.shape[0]
    ones = np.full(n, 1 / np.sqrt(n))
    op = LinearOperator((n, n), matvec=lambda x: a @ x + rho * ones * (ones @ x), dtype=np.float64)
    start = np.random.default_rng(11).standard_normal(n)
    _, vectors = eigsh(op, count + 4, which="SA", tol=1e-4, v0=start, ncv=3 * count + 30)
    top = float(eigsh(op, 1, which="LA", tol=1e-2, v0=start)[0][0])
    basis = np.linalg.qr(vectors)[0]
    image = a @ basis + rho * np.outer(ones, ones @ basis)
    ritz, turn = np.linalg.eigh(basis.T @ image)
    residual = image @ turn - basis @ turn * ritz
    low, high = float(ritz[-1]), top + 0.03 * abs(top) + 1e-9
    half, middle = (high - low) / 2, (high + low) / 2
    gap = max(low - float(ritz[count - 1]), 1e-3 * float(np.abs(ritz).mean()), 5e-6 * half)
    degree = int(np.log(2 * np.sqrt(n) / SMALL) * np.sqrt(half / (2 * gap))) + 20
    old = np.random.default_rng(12).standard_normal((n, 4))
    old -= basis @ (basis.T @ old)
    new = np.zeros_like(old)
    for i in range(degree):
        image = (a @ (new if i else old) + rho * np.outer(ones, ones @ (new if i else old))) / half
        image -= (middle / half) * (new if i else old)
        image -= basis @ (basis.T @ image)
        old, new = (new, 2 * image - old) if i else (old, image)
        if np.abs(new[0]).max() > 1e120:
            degree = i + 1
            break
    growth = max(1.0, float(np.linalg.norm(new, axis=0).max()) / SMALL)
    floor = low - (np.cosh(np.arccosh(growth) / degree) - 1) * half
    # [[diag ritz, S'], [S, floor]] with residual = (orthonormal) S has no larger eigenvalues than a + rho ee'/n.
    _, stretch, turned = np.linalg.svd(residual, full_matrices=False)
    coupling = stretch[:, None] * turned
    whole = np.block([[np.diag(ritz), coupling.T], [coupling, floor * np.eye(len(ritz))]])
    return np.asarray(eigvalsh(whole)[:count], np.float64)
