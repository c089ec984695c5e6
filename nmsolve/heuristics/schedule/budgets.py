"""Modes within the budgets of nonrenewable resources: a first choice by a small MIP, and repairs in the course of a search.

Whether any choice of modes keeps two budgets is NP-hard already (Kolisch and Drexl 1997), so no rule that decides process by
process always finds one.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import below
from nmsolve.model.compiled import plain
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Part of the time left, and most seconds, that the first choice may take; how far from the least spans it may be.
SHARE, SECONDS, NEAR = 0.25, 30.0, 0.02
#: Repairs of a choice, and processes that each looks at.
REPAIRS, LOOKS = 12, 16


def barred(problem: ScheduleProblem, time_left: float) -> FloatArray | None:
    """Return (M,) what modes cost a rule that chooses process by process: 0 or inf, so that all budgets are kept whatever it
    takes; 0 for all modes without budgets; None if no modes within the budgets were found."""
    m, use = problem.modes, problem.budgets.use
    if not problem.budgets.count:
        return np.zeros(m.count)
    mode = modes_within(problem, min(SECONDS, SHARE * time_left))
    if mode is None:
        return None
    # any mode will do that takes no more of anything than the one that was found
    return np.where((use <= use[mode][m.process]).all(axis=1), 0.0, np.inf)


def modes_within(problem: ScheduleProblem, seconds: float) -> IntArray | None:
    """Return modes (P,) that keep all budgets, with spans of about the least sum; None if there are none, or none were found."""
    from scipy import optimize, sparse

    m, b = problem.modes, problem.budgets
    once = sparse.csr_array((np.ones(m.count), (m.process, np.arange(m.count))), (problem.count, m.count))
    scale = np.maximum(1, b.amount).astype(float)
    done = optimize.milp(
        m.span.astype(float), integrality=np.ones(m.count, np.int64), bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(once, 1, 1),
            optimize.LinearConstraint(sparse.csr_array(b.use.T / scale[:, None]), -np.inf, b.amount / scale),
        ],
        options={"time_limit": max(0.1, seconds), "mip_rel_gap": NEAR},
    )  # fmt: skip
    if done.x is None:
        return None
    # the largest of every process is the one that is chosen: all others are 0, but for rounding
    mode = m.first[:-1] + np.array([int(x.argmax()) for x in np.split(done.x, m.first[1:-1])], np.int64)
    return mode if bool((b.spent(mode) <= b.amount).all()) else None


@plain
def spend(use: AnyArray, mode: AnyArray, spent: IntArray) -> None:
    """Write to ``spent`` (B,) what the modes (P,) take by ``use`` (M, B); a negative mode takes nothing."""
    spent[:] = 0
    for b in range(len(spent)):
        for p in range(len(mode)):
            if mode[p] >= 0:
                spent[b] += use[mode[p], b]


@plain
def excess(budget: IntArray, spent: IntArray) -> float:
    """Return by which parts of themselves budgets are overdrawn, added up."""
    total = 0.0
    for b in range(len(spent)):
        if spent[b] > budget[b]:
            total += (spent[b] - budget[b]) / (1.0 + budget[b])
    return total


@plain
def repair(
    first: IntArray, use: AnyArray, budget: IntArray, mode: AnyArray, spent: IntArray, rng: AnyArray
) -> None:
    """Change modes (P,) one by one, each time the best of some processes drawn at random, as long as budgets are overdrawn."""
    spend(use, mode, spent)
    now, left = excess(budget, spent), REPAIRS
    while now > 0.0 and left > 0:
        left -= 1
        at, to, least = -1, -1, now
        for _ in range(LOOKS):
            p = below(rng, len(mode))
            if mode[p] < 0:
                continue
            for m in range(first[p], first[p + 1]):
                over = 0.0
                for b in range(len(budget)):
                    more = spent[b] + use[m, b] - use[mode[p], b] - budget[b]
                    if more > 0:
                        over += more / (1.0 + budget[b])
                if over < least:
                    at, to, least = p, m, over
        if at >= 0:
            for b in range(len(budget)):
                spent[b] += use[to, b] - use[mode[at], b]
            mode[at] = to
            now = least
