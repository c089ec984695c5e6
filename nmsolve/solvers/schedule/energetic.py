"""Energetic reasoning: work that must be done in a window of time, at any makespan that is not yet excluded.

Under a makespan of ``C`` a mode starts no earlier than its head, and no later than ``C`` less tail and span, or its deadline
allows. So much of it lies in a window ``[a, b)`` as the least of what does when it starts as early and as late as it can
(Erschler, Lopez and Thuriot 1991; Baptiste, Le Pape and Nuijten 1999). If the least work of all processes in the window, at
prices of units and resources, is more than there is of these, no schedule ends within ``C``. A resource alone is a price too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.hw.schedule.heads import Windows
from nmsolve.model.compiled import plain
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import FloatArray, IntArray

#: At most this many begins and ends of windows are looked at, and at most this many modes in all of these.
MOST_ENDS, MOST_MODES = 400, 3e7
#: Prices are whole numbers up to this, unless sums would not fit in 64 bits.
PARTS = 2**20
#: Sums stay below this.
LARGEST = 2.0**60


class Excess(NamedTuple):
    """``row`` (R,) prices under which the window ``begin .. end`` has no room at any makespan up to ``tick``."""

    row: IntArray
    begin: int
    end: int
    tick: int


@plain
def _full(
    begins: IntArray, ends: IntArray, first: IntArray, span: IntArray, price: IntArray, head: IntArray, late: IntArray,
    room: int, found: IntArray,
) -> bool:  # fmt: skip
    """Write the first window without room to ``found`` (2,); return whether there is one.

    ``price`` (M,) of a tick of every mode; ``late`` (M,) latest starts; ``room`` what a tick offers.
    """
    for a in begins:
        for b in ends:
            if b <= a:
                continue
            total = 0
            for p in range(len(first) - 1):
                least = NEVER
                for m in range(first[p], first[p + 1]):
                    inside = min(span[m], b - a, head[m] + span[m] - a, b - late[m])
                    least = min(least, price[m] * max(0, inside))
                    if least == 0:
                        break
                total += least
            if total > room * (b - a):
                found[0], found[1] = a, b
                return True
    return False


def rows_of(problem: ScheduleProblem, price: FloatArray | None) -> list[IntArray]:
    """Return what may be looked at: every resource alone, and ``price`` (R,) of all rows in whole numbers."""
    units, found = problem.units.count, []
    largest = float(problem.horizon) * (problem.count + units) * float(problem.capacity.max(initial=1))
    if largest >= LARGEST:
        return []
    for r in range(len(problem.resources)):
        row = np.zeros(units + len(problem.resources), np.int64)
        row[units + r] = 1
        found.append(row)
    if price is not None and price.any():
        parts = min(float(PARTS), LARGEST / (2 * largest))
        found.append(np.floor(price * (parts / float(price.max()))).astype(np.int64))
    return [row for row in found if row.any()]


def excess(
    problem: ScheduleProblem, found: Windows, row: IntArray, low: int, should_stop: Callable[[], bool]
) -> Excess | None:
    """Return proof that no makespan of ``low`` or more, up to some tick, is possible, for the last such tick, or None.

    ``row`` : (R,) prices of units, then of resources
    """
    m = problem.modes
    units = problem.units.count
    fine = found.head < NEVER
    price: IntArray = m.demand @ row[units:]
    if problem.sets.count:
        sums = np.concatenate([[0], np.cumsum(row[problem.sets.members])])
        price = price + np.append(np.diff(sums[problem.sets.indptr]), 0)[m.unit_set]
    room = int(row[:units].sum() + (row[units:] * problem.capacity).sum())
    used = fine & (price > 0)
    if not used.any():
        return None
    most = int(min(MOST_ENDS, (MOST_MODES / m.count) ** 0.5)) + 1
    proof: Excess | None = None
    window = np.zeros(2, np.int64)
    for tick in range(low, problem.horizon):
        late = np.minimum(tick - found.tail, problem.deadline[m.process]) - m.span
        begins, ends = (
            x[:: -(-len(x) // most)] for x in map(np.unique, (found.head[used], (late + m.span)[used]))
        )
        # a mode that is too late at any makespan stands aside for the others of its process
        head = np.where(fine, found.head, late)
        if should_stop() or not _full(begins, ends, m.first, m.span, price, head, late, room, window):
            return proof
        proof = Excess(row, int(window[0]), int(window[1]), tick)
    return proof
