"""Orders of operators, and a first assignment: heterogeneous earliest finish time.

H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
TPDS 13 (2002): operators by falling upward rank, the longest way from one to the end in mean times; each on the unit where it
ends first, in a gap between others if one is long enough. Channels are not waited for, groups are not fused here.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.ordering import topological
from nmsolve.model.types import AnyArray, FloatArray, IntArray


def uses_of(problem: AssignProblem) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
    """Return by operator the (operator, tensor) it waits for, and those that wait for it."""
    waits: list[list[tuple[int, int]]] = [[] for _ in range(problem.count)]
    feeds: list[list[tuple[int, int]]] = [[] for _ in range(problem.count)]
    for t, p in enumerate(problem.flows.source.tolist()):
        for u in problem.flows.users(t).tolist():
            if u > p:
                waits[u].append((p, t))
                feeds[p].append((u, t))
    return waits, feeds


def rank_by(problem: AssignProblem, first: AnyArray, then: AnyArray) -> IntArray:
    """Return (L,) ranks by which operators can run: by ``first`` (L,), then ``then`` (L,), after all that they wait for."""
    waits, _ = uses_of(problem)
    keys = list(zip(first.tolist(), then.tolist(), strict=True))
    rank = np.empty(problem.count, np.int64)
    rank[topological([[p for p, _ in some] for some in waits], keys)] = np.arange(problem.count)
    return rank


def upward_rank(problem: AssignProblem) -> FloatArray:
    """Return (L,) the longest way from the start of every operator to the end, in mean times of units and transfers."""
    _, feeds = uses_of(problem)
    able = problem.time >= 0
    mean = np.where(able, problem.time, 0).sum(axis=1) / able.sum(axis=1)
    moved = problem.flows.time.mean(axis=(1, 2)) if problem.flows.count else np.zeros(0)
    out = np.zeros(problem.count)
    for i in reversed(range(problem.count)):
        out[i] = mean[i] + max((moved[t] + out[u] for u, t in feeds[i]), default=0.0)
    return out


def earliest_finish(problem: AssignProblem) -> tuple[IntArray, IntArray]:
    """Return (L,) units and (L,) ranks of the first assignment; operators that share a unit follow the first of them."""
    waits, _ = uses_of(problem)
    units, site, moved = problem.units.count, problem.units.site.tolist(), problem.flows.time
    order = np.argsort(rank_by(problem, -upward_rank(problem), np.zeros(problem.count)))
    unit, start, finish = (np.zeros(problem.count, np.int64) for _ in range(3))
    busy: list[list[tuple[int, int]]] = [[] for _ in range(units)]
    shared = able_together(problem)
    fixed: dict[int, int] = {}
    for i in order.tolist():
        number = -1 if problem.together is None else int(problem.together[i])
        best: tuple[int, int, int] | None = None
        for j in range(units):
            if not shared[i, j] or fixed.get(number, j) != j:
                continue
            ready = max(
                (int(finish[p]) + int(moved[t, site[unit[p]], site[j]]) for p, t in waits[i]), default=0
            )
            begin = _gap(busy[j], ready, int(problem.time[i, j]))
            if best is None or (begin + int(problem.time[i, j]), begin) < best[:2]:
                best = (begin + int(problem.time[i, j]), begin, j)
        if best is None:  # nothing suits: the checker will say what is wrong
            best = (0, 0, int(np.argmax(problem.time[i])))
        finish[i], start[i], unit[i] = best
        if number >= 0:
            fixed[number] = best[2]
        busy[best[2]].append((best[1], best[0]))
        busy[best[2]].sort()
    return unit, rank_by(problem, start, finish)


def able_together(problem: AssignProblem) -> AnyArray:
    """Return (L, J) whether a unit can run an operator and all that share its unit."""
    able: AnyArray = problem.time >= 0
    if problem.together is None:
        return able
    out = able.copy()
    for number in np.unique(problem.together[problem.together >= 0]).tolist():
        own = problem.together == number
        out[own] = able[own].all(axis=0)
    return out


def _gap(busy: list[tuple[int, int]], ready: int, time: int) -> int:
    """Return the first moment from ``ready`` on at which a unit has nothing to do for so long."""
    for begin, end in busy:
        if ready + time <= begin:
            return ready
        ready = max(ready, end)
    return ready
