"""That nonrenewable resources do not suffice, recomputed in plain Python and whole numbers."""

from __future__ import annotations

import math
from itertools import pairwise

from nmsolve.check.schedule.paths import numbers_of
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.schedule.problem import ScheduleProblem


def check(problem: ScheduleProblem, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute what all processes cost at the certificate's prices of nonrenewable resources, each in its cheapest mode.

    If that is more than all that there is costs, no choice of modes keeps every budget. ``seconds`` are not needed.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    names = problem.budgets.names
    prices = numbers_of(bound.certificate.get("prices"), "prices", len(names))
    least, worth = priced(problem, prices)
    said = (
        f"the cheapest modes cost {least:,} at these prices of {', '.join(names)}, there is worth {worth:,}"
    )
    return BoundCheck(True, math.inf, said) if least > worth else BoundCheck(False, 0.0, said)


def priced(problem: ScheduleProblem, prices: list[int]) -> tuple[int, int]:
    """Return what all processes cost at least at prices of nonrenewable resources, and what all of these that there is costs."""
    first, use = problem.modes.first.tolist(), problem.budgets.use.tolist()
    least = 0
    for a, b in pairwise(first):
        least += min(sum(x * y for x, y in zip(prices, use[k], strict=True)) for k in range(a, b))
    return least, sum(x * int(y) for x, y in zip(prices, problem.budgets.amount, strict=True))
