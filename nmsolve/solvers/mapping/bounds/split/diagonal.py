"""The start of the ascent: the diagonal shift that makes all traffic's projection bound good."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.projection import FLAT
from nmsolve.solvers.mapping.bounds.split.form import SplitForm
from nmsolve.solvers.mapping.bounds.split.spectrum import Spectrum

#: Steps at most; steps without gain before going back with shorter ones; by how much shorter.
ROUNDS, PATIENCE, SHORTER = 60, 8, 0.6
#: Without a good mapping at hand: aim at this part of a random placement's mean cost, or this much higher.
TARGET, AIM = 0.15, 0.15


def first_shift(form: SplitForm, upper: float, enough: Callable[[], bool]) -> FloatArray:
    """(k,) diagonal shift from a short ascent of the projection bound of all traffic.

    Parameters
    ----------
    upper : doubled cost without the constant step to aim at; inf if unknown
    enough : asked before every step; True ends the ascent
    """
    k, total = form.k, float(form.reach.sum())
    mean = float(form.traffic.sum()) * total / (k * (k - 1))
    spectrum = Spectrum(form.mu, k)
    far_first = np.sort(form.reach)[::-1]
    shift, best, best_shift = np.zeros(k), -np.inf, np.zeros(k)
    direction, scale, stalled = np.zeros(k), 1.0, 0
    degree = form.traffic.sum(axis=1)
    for _ in range(ROUNDS):
        if enough():
            break
        load = degree + shift
        reach = np.empty(k)
        reach[np.argsort(load, kind="stable")] = far_first
        quadratic, (weight, vectors) = spectrum.paired(form.traffic + np.diag(shift))
        value = quadratic + 2 / k * float(load @ reach) - float(load.sum()) * total / k**2
        if value > best + 1e-6 * abs(best) or not np.isfinite(best):
            best, best_shift, stalled = value, shift, 0
        else:
            stalled += 1
        if stalled >= PATIENCE:
            scale, stalled, shift, direction = scale * SHORTER, 0, best_shift, np.zeros(k)
            continue
        gradient = (vectors * vectors) @ weight + 2 / k * reach - total / k**2
        direction = gradient - gradient.mean() + 0.6 * direction
        norm = float(direction @ direction)
        if norm <= FLAT * float(form.reach @ form.reach):
            break
        target = min(upper, max((1 + AIM) * best, TARGET * mean))
        shift = shift + scale * max(target - value, 1e-3 * abs(best)) / norm * direction
    return best_shift
