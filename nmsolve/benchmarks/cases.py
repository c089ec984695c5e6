"""The runs of one instance side by side, and the lines of the pictures made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.benchmarks.measures import distance, gap_at, profile, time_to
from nmsolve.benchmarks.store import Key, Outcome
from nmsolve.benchmarks.suites import Instance
from nmsolve.model.types import FloatArray

#: "Nearly the best": within one per cent of the best known.
NEAR = 0.01
#: Points of the gap-over-time picture.
MOMENTS = 200


@dataclass(frozen=True)
class Case:
    """All runs on one instance.

    Attributes
    ----------
    runs : method -> outcomes in order of seed
    best : least objective known or seen, or None; ``new`` if a run went below the best known
    bound : best bound that any run proved, or None
    """

    instance: Instance
    runs: Mapping[str, Sequence[Outcome]]
    best: float | None
    bound: float | None

    @property
    def new(self) -> bool:
        """True if a run found something better than the best known value."""
        known = self.instance.best_known
        return known is not None and self.best is not None and self.best < known

    def gaps(self, method: str) -> list[float]:
        """Return the gap to the best of every solved run."""
        return [distance(r.objective, self.best or 0.0) for r in self.runs[method] if r.solved]

    def gaps_to_bound(self, method: str) -> list[float]:
        """Return the gap to the best bound of every solved run; empty without a bound."""
        if self.bound is None:
            return []
        return [distance(r.objective, self.bound) for r in self.runs[method] if r.solved]

    def own_gaps(self, method: str) -> list[float]:
        """Return the gap to its own bound of every solved run that proved one."""
        return [distance(r.objective, r.bound) for r in self.runs[method] if r.solved and r.bound is not None]


def collect(instance: Instance, methods: Sequence[str], found: Mapping[Key, Outcome]) -> Case:
    """Return everything that was ``found`` on an instance."""
    rows = sorted(
        (k, o) for k, o in found.items() if (k.suite, k.instance) == (instance.suite, instance.name)
    )
    runs = {m: [o for k, o in rows if k.method == m] for m in methods}
    everything = [o for outcomes in runs.values() for o in outcomes]
    seen = [o.objective for o in everything if o.solved and o.objective is not None]
    known = [] if instance.best_known is None else [instance.best_known]
    bounds = [o.bound for o in everything if o.bound is not None and o.status != "failed"]
    return Case(instance, runs, min(seen + known, default=None), max(bounds, default=None))


def curves(
    cases: Sequence[Case], methods: Sequence[str], limit: float
) -> dict[str, dict[str, tuple[FloatArray, FloatArray]]]:
    """Return performance profiles by objective and by time to 1 %, and the mean gap over time."""
    value = _matrix(
        cases, methods, lambda o, best: o.objective if o.solved and o.objective is not None else math.inf
    )
    near = _matrix(
        cases, methods, lambda o, best: time_to(o.trajectory, best, NEAR) if o.solved else math.inf
    )
    moments = np.linspace(0.0, limit, MOMENTS)
    over = {}
    for m in methods:
        runs = [gap_at(o.trajectory, c.best, moments) for c in cases for o in c.runs[m] if c.best is not None]
        if runs:
            over[m] = (moments, np.mean(runs, axis=0))
    return {
        "objective": dict(zip(methods, profile(value), strict=True)),
        "time": dict(zip(methods, profile(near), strict=True)),
        "gap": over,
    }


def _matrix(
    cases: Sequence[Case], methods: Sequence[str], cost: Callable[[Outcome, float], float]
) -> FloatArray:
    """Return (methods, tasks): a task is an instance with the position of a seed; inf where a run is missing."""
    columns = []
    for c in cases:
        for i in range(max((len(r) for r in c.runs.values()), default=0)):
            column = [cost(c.runs[m][i], c.best or 0.0) if i < len(c.runs[m]) else math.inf for m in methods]
            columns.append(column)
    return np.array(columns, np.float64).reshape(-1, len(methods)).T
