"""The rule on memory in whole numbers, for second proofs: what sum of storage passes on how many cores.

Written from the rule (:mod:`nmsolve.model.pipeline.check`). With engines it shares only what a unit is.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import exponent_for, in_ticks
from nmsolve.model.types import IntArray

#: No room has more units than this.
ENDLESS = 2**62


def units_of(problem: PipelineProblem) -> IntArray:
    """(L,) storage of every layer in whole units."""
    return in_ticks(problem.storage, exponent_for(float(problem.storage.sum())))


def rooms_of(problem: PipelineProblem) -> IntArray:
    """(C,) most storage of a group of c cores, in units: what the rule lets pass, the sum rounded once to a float, passes here.

    Where storage has digits below a unit, half a unit per layer is added: a plan may pass that breaks the rule by so much.
    """
    most = problem.largest_group
    if problem.memory is None or problem.streams or not np.isfinite(problem.memory):
        return np.full(most, ENDLESS, np.int64)
    unit = Fraction(2) ** exponent_for(float(problem.storage.sum()))
    whole = all(
        Fraction(s) * unit == w
        for s, w in zip(problem.storage.tolist(), units_of(problem).tolist(), strict=True)
    )
    rooms = []
    for c in range(1, most + 1):
        limit = float(c * problem.memory)
        following = float(np.nextafter(limit, np.inf))
        if not np.isfinite(following):
            rooms.append(ENDLESS)
            continue
        # sums up to the middle are rounded to the limit or less
        middle = (Fraction(limit) + Fraction(following)) / 2
        room = int(middle * unit) - (float(middle) > limit and (middle * unit).denominator == 1)
        rooms.append(min(ENDLESS, room + (0 if whole else problem.count // 2 + 1)))
    return np.array(rooms, np.int64)
