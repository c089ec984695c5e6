"""Re-check of the parting bound of net objectives: one message at a time, its own matrix, eigenvalues proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.check.mapping.bounds.operator import Operator, proved
from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    expect,
    least_apart,
    lowered,
    numbers,
    parallel,
    rho_of,
    room_of,
)
from nmsolve.check.mapping.bounds.rounding import down, products, sum_down
from nmsolve.check.mapping.bounds.spectral import doubled_parts, moderate, rising
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray

#: Largest pull; the best are below 1.
MAX_PULL = 1e6


def recheck_tree_parts(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the bound at the given pulls, shift and rho, with the stated eigenvalue bounds as far as they are proved.

    Raises
    ------
    CertificateError : all nodes may fit on one core, or a field that is missing, wrong, or cannot be confirmed
    """
    expect(problem, "nets")
    room = room_of(problem)
    if room >= problem.n:
        raise CertificateError("all nodes may fit on one core: nothing needs to be cut")
    n = problem.n
    shift = numbers(certificate, "shift", n)
    rho = rho_of(certificate)
    lam = rising(certificate, n)
    pairs, nets, rate = messages(problem)
    pull = numbers(certificate, "pulls", nets.nnz)
    if np.abs(pull).max(initial=0.0) > MAX_PULL:
        raise CertificateError(f"'pulls' holds a number above {MAX_PULL:g}")
    nets = csr_array(
        (pull, nets.indices, nets.indptr), shape=nets.shape, copy=True
    )  # products sort it in place
    scale = float(pairs.sum()) + float(rate @ np.diff(nets.indptr))
    for values, name in ((shift, "shift"), (np.array([rho]), "rho"), (lam, "eigenvalues")):
        moderate(values, name, scale)
    low = proved(Operator(pairs, shift, rho, nets, rate), lam)
    # rate (2 sum q - 1), message by message
    across = products(*(np.repeat(rate, np.diff(nets.indptr)),) * 2, pull, pull)[0]
    value = sum_down([*(2 * across).tolist(), *(-rate).tolist(), doubled_parts(n, room, shift, rho, low) / 2])
    paid = down(least_apart(problem) * value) if np.isfinite(value) else -np.inf
    return lowered(problem, paid, parallel(problem) + 4)


def messages(problem: MappingProblem) -> tuple[csr_array, csr_array, FloatArray]:
    """Return symmetric weights of pairs that are paid once if parted; (nets, n) pattern of longer messages; their rates.

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
        if not problem.aim.reach and not graph.multicast[i]:
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
