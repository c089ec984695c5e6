"""Re-check of the parting bound of net objectives: one message at a time, its own matrix and decompositions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    expect,
    least_apart,
    numbers,
    rho_of,
    room_of,
)
from nmsolve.solvers.mapping.recheck.spectral import DENSE, confirm, rising


def recheck_tree_parts(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """The bound at the given pulls, shift and rho, once the stated eigenvalue bounds are confirmed."""
    expect(problem, "nets")
    room = room_of(problem)
    if room >= problem.n:
        raise CertificateError("all nodes may fit on one core, nothing need part")
    n = problem.n
    shift = numbers(certificate, "shift", n)
    rho = rho_of(certificate)
    lam = rising(certificate, n)
    pairs, nets, rate = messages(problem)
    pull = numbers(certificate, "pulls", nets.nnz)
    nets = csr_array((pull, nets.indices, nets.indptr), shape=nets.shape)
    confirm(_matrix(pairs, nets, rate, shift), rho, lam)
    sizes = np.diff(np.minimum(np.arange(0, n + room, room), n)).astype(np.float64)
    paid = np.append(lam, np.full(max(0, len(sizes) - len(lam)), lam[-1]))[: len(sizes)]
    reach = np.asarray(nets.sum(axis=1)).ravel()
    value = float(rate @ (2 * reach - 1)) + float(sizes @ paid) / 2 - float(shift.sum()) / 2
    value -= rho * float(sizes @ sizes) / (2 * n)
    doubt = np.abs(shift).sum() + 2 * float(rate @ np.abs(reach)) + abs(value)
    return least_apart(problem) * (value - 1e-11 * float(doubt))


def _matrix(pairs: csr_array, nets: csr_array, rate: FloatArray, shift: FloatArray) -> Any:
    """Laplacian of the pairs + diag(shift) - 2 sum rate q q', as an array or, for large graphs, as an operator."""
    from scipy.sparse.linalg import aslinearoperator

    rest = csr_array(diags_array(pairs.sum(axis=1) + shift) - pairs)
    weighted = csr_array(diags_array(np.sqrt(2 * rate)) @ nets)
    if len(shift) <= DENSE:
        return csr_array(rest - weighted.T @ weighted)
    across = csr_array(weighted.T)
    return aslinearoperator(rest) - aslinearoperator(across) @ aslinearoperator(weighted)


def messages(problem: MappingProblem) -> tuple[csr_array, csr_array, FloatArray]:
    """Symmetric weights of pairs that are paid once if parted; (nets, n) pattern of longer messages; their rates.

    Entries of the pattern are in the order of the graph: the sender, then its targets.
    """
    graph = problem.graph
    a, b, w = [], [], []
    indptr, terminals, rate = [0], [], []
    for i in range(graph.rows):
        targets = graph.targets[graph.indptr[i] : graph.indptr[i + 1]].tolist()
        source, r = int(graph.source[i]), float(graph.rate[i])
        if not targets:
            continue
        if problem.objective != "connectivity" and not graph.multicast[i]:
            a += [source] * len(targets)
            b += targets
            w += graph.weights[graph.indptr[i] : graph.indptr[i + 1]].tolist()
        elif len(targets) == 1:
            a.append(source)
            b.append(targets[0])
            w.append(r)
        elif len(targets) == 2:
            a += [source, source, targets[0]]
            b += [targets[0], targets[1], targets[1]]
            w += [r / 2] * 3
        elif r > 0:
            terminals += [source, *targets]
            indptr.append(len(terminals))
            rate.append(r)
    one_way = coo_array(
        (np.array(w, float), (np.array(a, int), np.array(b, int))), shape=(graph.n, graph.n)
    ).tocsr()
    pattern = csr_array(
        (np.ones(len(terminals)), np.array(terminals, np.int32), np.array(indptr)), shape=(len(rate), graph.n)
    )
    return csr_array(one_way + one_way.T), pattern, np.array(rate, np.float64)
