"""Whole numbers for CP-SAT, rounded so that bounds stay bounds.

Every time is multiplied by one factor and rounded **down**, so a plan's load in the model is at most the factor times its true
load: the model's lower bound over the factor bounds the problem. A plan with a true value below T has a model value of at most
``ceil(T * factor) - 1`` or ``floor``: :meth:`Whole.most`. Storage is rounded down and the memory of a core up, since a group has
a multiple of it: every true plan is let through, and what only the rounding lets through is refused by the checker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.solvers.pipeline.bounds import claimed
from nmsolve.solvers.pipeline.data import PipelineData
from nmsolve.solvers.pipeline.rules import Amounts
from nmsolve.solvers.search.scaling import to_whole, whole_factor

#: All times together are less than this in the model, and all storage.
LARGEST = 2.0**40


@dataclass(frozen=True, eq=False)
class Whole(Amounts):
    """Amounts in whole numbers: times are ``factor`` times the problem's, ``exact`` or rounded down."""

    factor: float
    exact: bool

    @property
    def worst(self) -> int:
        """No plan has a larger value."""
        host = int(self.host.sum()) if len(self.host) else 0
        return max(int(self.time[:, 0].sum()) + int(self.cost.sum()), host)

    def least(self, bound: float) -> int:
        """Smallest value in the model of plans, if ``bound`` is a lower bound: rounding may have cost a unit per term."""
        slack = 0 if self.exact else self.time.shape[0] + len(self.cost)
        return max(0, int(np.floor(bound * self.factor * (1 - 1e-9))) - slack)

    def most(self, below: float) -> int:
        """Return the largest value in the model of plans that are better than ``below``."""
        if not np.isfinite(below):
            return self.worst
        return max(
            0, min(self.worst, int(np.ceil(below * self.factor * (1 + 1e-12))) - (1 if self.exact else 0))
        )

    def bound(self, value: float) -> float:
        """Lower bound on the objective from one on the model's."""
        return claimed(value / self.factor)


def whole_numbers(data: PipelineData) -> Whole:
    """Return the problem's numbers for CP-SAT."""
    host = np.where(np.isfinite(data.host), data.host, 0.0)
    times = np.concatenate([data.time.ravel(), host, data.cost])
    total = max(float(data.time[:, 0].sum() + data.cost.sum()), float(host.sum()))
    top = float(times.max(initial=0.0))
    factor, exact = whole_factor(times, max(1.0, LARGEST * top / total)) if total > 0 else (1.0, True)
    stored, memory = data.storage, data.problem.memory
    if memory is None:
        scale, whole = 1.0, True
    else:
        values = np.append(stored, memory)
        share = float(values.max() / max(1e-300, values.sum() + memory * data.problem.cores))
        scale, whole = whole_factor(values, max(1.0, LARGEST * share))
    return Whole(
        time=to_whole(data.time, factor, exact),
        host=to_whole(host, factor, exact),
        cost=to_whole(data.cost, factor, exact),
        storage=np.zeros(data.count, np.int64)
        if memory is None
        else to_whole(np.minimum(stored, 1e18), scale, whole),
        memory=0 if memory is None else int((np.rint if whole else np.ceil)(memory * scale)),
        factor=factor,
        exact=exact,
    )
