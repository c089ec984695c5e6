"""When units are on, for CP-SAT, if few of them are woken twice: each has a few power-on intervals.

A circle of what runs on a unit (:func:`.moments.gaps`) takes two variables for every two processes. Where every waking costs and
an answer is known, prices (:mod:`.prices`) say how often units can be woken again at most in a better one; mostly once or twice
in all. Then an interval takes two variables of time, and a process is in one interval of each of its units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.hw.schedule.heads import windows
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.solvers.schedule.data import ScheduleData
from nmsolve.solvers.schedule.moments import Moments
from nmsolve.solvers.schedule.prices import best_prices, claim_of
from nmsolve.solvers.schedule.program import factors, program_of, shape_of
from nmsolve.solvers.schedule.rules import Choice, busy
from nmsolve.solvers.search.rows import CpSatRows

#: With more wakings than this beyond the first ones, circles say it with fewer variables.
MOST_AGAIN = 4
#: Wall seconds for the linear program.
SECONDS = 2.0


def countable(problem: ScheduleProblem) -> bool:
    """Return whether every waking costs, and idling no less than being off: else longer intervals could cost less."""
    u = problem.units
    paid = factors(problem).get("energy", 0) > 0 and u.count > 0 and bool((u.switch_energy > 0).all())
    return paid and bool((u.idle >= u.off).all())


def wakings(problem: ScheduleProblem, below: float) -> int | None:
    """Return how often units are woken again, all together, in any schedule that costs no more than ``below``; None if that
    is not known, more than :data:`MOST_AGAIN` times, or where wakings are not :func:`countable`.

    Prices bound what a schedule costs that pays one waking for every unit that it uses. All other wakings come on top.
    """
    if not np.isfinite(below) or not countable(problem):
        return None
    again = factors(problem)["energy"] * int(problem.units.switch_energy.min())
    found = windows(problem)
    program = program_of(problem, found)
    if (found.ends(problem) >= NEVER).any() or program.low > program.high:
        return None
    shape = shape_of(problem, program)
    prices = best_prices(problem, program, shape, SECONDS)
    claim = None if prices is None else claim_of(problem, program, shape, prices)
    if claim is None:
        return None
    most = max(0, int(below) - claim[0]) // again
    return most if most <= MOST_AGAIN else None


def power_on_intervals(rows: CpSatRows, data: ScheduleData, v: Choice, at: Moments, again: int) -> None:
    """A unit is on from ``since[u, j]`` to ``until[u, j]`` in interval j; ``within[p, u, j]`` says that p runs there then:
    ``since <= begin[p]`` and ``end[p] <= until``. Intervals follow each other with a break-even gap between them; unused ones
    (``on[u, j]`` is 0) are empty and at the end. ``idle[u] = sum (until - since) - busy[u]``, ``blocks[u] = sum on[u, j]``;
    ``again`` is how many intervals there are at most beyond the first of every unit.
    """
    model, more = rows.model, list[Any]()
    for u, own in enumerate(data.on_unit):
        if not own:
            continue
        even = int(data.problem.units.break_even[u])
        count = 1 if even >= NEVER else min(1 + again, len(own))
        for j in range(count):
            _interval(rows, data, at, u, j, even)
        more += [at.on[u, j] for j in range(1, count)]
        at.used[u] = at.on[u, 0]
        for p in own:
            _within(rows, at, p, u, count)
        v.idle[u] = model.new_int_var(0, data.most, f"idle[{u}]")
        length = sum(at.till[u, j] - at.since[u, j] for j in range(count))
        model.add(v.idle[u] == length - busy(rows, data, v, u))
        v.blocks[u] = rows.total(at.on[u, j] for j in range(count))
    if more:
        model.add(rows.total(more) <= again)


def _interval(rows: CpSatRows, data: ScheduleData, at: Moments, u: int, j: int, even: int) -> None:
    """Make interval j of a unit, after those before it."""
    model = rows.model
    on = at.on[u, j] = model.new_bool_var(f"on[{u},{j}]")
    since = at.since[u, j] = model.new_int_var(0, data.most, f"since[{u},{j}]")
    till = at.till[u, j] = model.new_int_var(0, data.most, f"till[{u},{j}]")
    model.add(since <= till)
    for moment in (since, till):
        model.add(moment == data.most).only_enforce_if(~on)
    if j:
        model.add_implication(on, at.on[u, j - 1])
        model.add(since >= at.till[u, j - 1] + even).only_enforce_if(on)


def _within(rows: CpSatRows, at: Moments, p: int, u: int, count: int) -> None:
    """A process that runs on a unit does so in one of its power-on intervals."""
    model, here = rows.model, at.here[p, u]
    some = [here]
    if count > 1:
        some = [model.new_bool_var(f"within[{p},{u},{j}]") for j in range(count)]
        rows.exactly_one(some, None if isinstance(here, int) else here)
        at.within.update({(p, u, j): x for j, x in enumerate(some)})
    for j, x in enumerate(some):
        both = model.add(at.since[u, j] <= at.begin[p]), model.add(at.till[u, j] >= at.end[p])
        if isinstance(x, int):
            model.add(at.on[u, j] == 1)
            continue
        model.add_implication(x, at.on[u, j])
        for row in both:
            row.only_enforce_if(x)
