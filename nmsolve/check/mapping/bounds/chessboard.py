"""Re-check of the parting bound on a chessboard: colours, codes and part sizes from scratch, one board of parts at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.eigenvalues import spectrum
from nmsolve.check.mapping.bounds.operator import Operator, proved
from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    both_ways,
    distances,
    expect,
    lowered,
    numbers,
    parallel,
    rho_of,
    room_of,
    usable_cores,
)
from nmsolve.check.mapping.bounds.rounding import SAFE, down, gamma, products, sum_down, up
from nmsolve.check.mapping.bounds.spectral import moderate, rising
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray

#: Numbers of parts for which the bound is defined, and the cosine in its definition (docs/bounds.md).
FEWEST, MOST, COSINE = 3, 6, 0.25
#: Most eigenvalues that count one by one: what a certificate states beyond them is not looked at.
COUNTED = 64


def recheck_chessboard(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the bound at the given multipliers, with the stated eigenvalue bounds as far as they are proved.

    Raises
    ------
    CertificateError : no mesh or torus, too few or too many parts, or a field that is missing, wrong, or cannot be confirmed
    """
    expect(problem, "pairs")
    room, cores = room_of(problem), len(usable_cores(problem))
    parts = -(-problem.n // max(1, room))
    if problem.machine.distance_matrix is not None:
        raise CertificateError("the bound `chessboard` needs a mesh or torus")
    if not FEWEST <= parts <= min(MOST, cores):
        raise CertificateError(f"{parts} parts on {cores} cores, expected {FEWEST} to {MOST}")
    traffic = both_ways(problem)
    shift, rho, lam = (
        numbers(certificate, "shift", problem.n),
        rho_of(certificate),
        rising(certificate, problem.n),
    )
    for values, name in ((shift, "shift"), (np.array([rho]), "rho"), (lam, "eigenvalues")):
        moderate(values, name, float(traffic.sum()))
    low = proved(Operator(traffic, shift, rho), lam)[:COUNTED]
    apart, theta = _colours(problem)
    least = min(_least(problem.n, room, cores, codes, low, rho) for codes in _boards(parts, theta))
    value = sum_down([least, *(-shift / 2).tolist()])
    return lowered(problem, down(apart * value) if np.isfinite(value) else -np.inf, parallel(problem) + 4)


def _colours(problem: MappingProblem) -> tuple[float, float]:
    """Least distance of two cores, and by what part of it two cores of one colour are farther apart, both rounded down."""
    d, cores = np.array(distances(problem, down=True)), usable_cores(problem)
    colour = (cores // problem.machine.cols + cores % problem.machine.cols) % 2
    np.fill_diagonal(d, np.inf)
    apart = float(d.min())
    same = float(d[np.equal.outer(colour, colour)].min())
    if not 0 < apart < np.inf:
        raise CertificateError("different cores cost nothing")
    return apart, max(0.0, min(1.0, down(down(same - apart) / apart)))


def _boards(parts: int, theta: float) -> Iterator[list[FloatArray]]:
    """For every way of colouring the fullest cores, the inner products of codes in each colour, the fullest core first."""
    for black in range(parts + 1):
        if 2 * black >= parts:
            yield [_inner(count, theta) for count in (black, parts - black)]


def _inner(count: int, theta: float) -> FloatArray:
    """Half the identity, less in pairs along the order; an odd number ends in three codes of one plane."""
    out = np.zeros((count, count))
    at = 0
    while count - at >= 2:
        if count - at == 3:
            out[at, at + 1] = -theta * (1 - 2 * COSINE * COSINE) / 2
            out[at, at + 2] = out[at + 1, at + 2] = -theta * COSINE / 2
            break
        out[at, at + 1] = -theta / 2
        at += 2
    return out + out.T + np.eye(count) / 2


def _least(n: int, room: int, cores: int, codes: list[FloatArray], lam: FloatArray, rho: float) -> float:
    """Least ``sum of lambda sigma - rho m'Cm / n`` over the extreme part sizes of one board, rounded down."""
    a, b = len(codes[0]), len(codes[1])
    parts = a + b
    inner = np.zeros((parts, parts))
    inner[:a, :a], inner[a:, a:] = codes
    # every number in m'Cm and under the roots went through a few roundings; all are at most room / 2 in size
    off, least, many = gamma(64) * room * parts, np.inf, len(lam)
    for full in product(range(a + 1), range(b + 1)):
        if sum(full) == parts:
            continue
        others = np.arange(cores - parts + 1)
        level = (n - sum(full) * room) / (parts - sum(full) + others)
        filled = np.concatenate([np.arange(a) < full[0], np.arange(b) < full[1]])
        sizes = np.where(filled, float(room), level[:, None])
        near, far = spectrum(np.sqrt(sizes[:, :, None] * sizes[:, None, :]) * inner, off)
        rest = np.where(np.arange(many) < others[:, None], level[:, None] / 2, 0.0)
        near, far = (
            np.sort(np.concatenate([ends, rest * side], axis=1), axis=1)[:, ::-1][:, :many]
            for ends, side in ((near, 1 - gamma(8)), (far, 1 + gamma(8)))
        )
        paid = products(lam, lam, near, far)[0]
        # all sizes add up to n, every core has half of its own: what the last eigenvalue is for
        blur = SAFE * gamma(parts + many + 8) * n
        beyond = n / 2 - far.sum(axis=1) - blur, n / 2 - near.sum(axis=1) + blur
        last = products(lam[-1:], lam[-1:], *beyond)[0]
        drift = np.einsum("vp,pq,vq->v", sizes, inner, sizes) + others * level**2 / 2
        drift = rho * (drift + gamma(parts**2 + 64) * room * n) / n
        value = paid.sum(axis=1) + last - drift
        size = np.abs(paid).sum(axis=1) + np.abs(last) + np.abs(drift)
        least = min(least, float((value - SAFE * gamma(many + 16) * size).min()))
    return down(least) if up(least) < np.inf else -np.inf
