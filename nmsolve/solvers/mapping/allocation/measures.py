"""What a run of automatic mode was worth: its mapping, how early it had it, its bound, and the gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nmsolve.solvers.mapping.allocation.slices import Curves


@dataclass(frozen=True)
class Worth:
    """Measures of one run.

    Attributes
    ----------
    objective : at the end; inf if there is no mapping
    bound : at the end; 0 if there is none
    integral : mean over time of the distance from the best known objective, a part of the objective; 1 before the first mapping
    gap : at the end; 1 without a mapping or a bound
    """

    objective: float
    bound: float
    integral: float
    gap: float

    def gains(self, base: Worth) -> dict[str, float]:
        """Return by how much this is better than ``base``: parts of objective and bound, and differences of integral and gap."""
        higher = max(self.bound, base.bound)
        return {
            "objective": 1 - self.objective / base.objective if 0 < base.objective < math.inf else 0.0,
            "primal integral": base.integral - self.integral,
            "bound": (self.bound - base.bound) / higher if higher > 0 else 0.0,
            "gap": base.gap - self.gap,
        }


def worth(run: Curves, best: float, seconds: float) -> Worth:
    """Return the measures of a run of ``seconds`` on a problem whose best known objective is ``best``."""
    bound = max(0.0, run.bounds[-1][1]) if run.bounds else 0.0
    gap = 1.0 if run.best == math.inf else (run.best - bound) / run.best if run.best > 0 else 0.0
    return Worth(run.best, bound, primal_integral(run.objectives, best, seconds), gap)


def primal_integral(curve: Sequence[tuple[float, float]], best: float, seconds: float) -> float:
    """Return the mean distance of a curve of objectives from ``best`` over ``seconds``, from 0 to 1 (Berthold 2013)."""
    whole, since, distance = 0.0, 0.0, 1.0
    for at, value in curve:
        now = min(at, seconds)
        whole += distance * (now - since)
        since, distance = now, (value - best) / value if value > 0 else 0.0
    return (whole + distance * (seconds - since)) / seconds
