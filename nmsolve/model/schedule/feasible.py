"""What counting shows to be impossible before any search: deadlines before the earliest finish, periods shorter than the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.schedule.build import MOST_UNITS
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.types import AnyArray, IntArray, first_true

#: Pairs of a mode and a unit that are looked at for work that only one unit can do.
MOST_PAIRS = 2**24


def require_feasible(stated: Stated, where: str) -> None:
    """Refuse a problem that no schedule solves, if earliest times or sums of work show it.

    Raises
    ------
    DoesNotFitError : a process cannot end by its deadline, or a network has more work in a period than its units
    """
    problem = stated.problem
    if (problem.deadline >= NEVER).all():
        return
    _require_deadlines(stated, where)
    work = _work_of(problem)
    if stated.periods:
        _require_periods(stated, work, where)
    mine = np.flatnonzero(problem.deadline < NEVER)
    _require_room(
        problem, work, mine, np.zeros(len(mine), np.int64), lambda _: "all networks with deadlines", where
    )


def earliest_ends(problem: ScheduleProblem) -> tuple[IntArray, IntArray]:
    """Return (P,) earliest ends by least spans, loads and delays along the paths, and (P,) the process that decides, or -1."""
    m = problem.modes
    first = m.first[:-1]
    span = np.minimum.reduceat(m.span, first).tolist()
    loaded = np.minimum.reduceat(problem.mode_load, first)
    begin = np.maximum(np.maximum(problem.release, problem.earliest), loaded).tolist()
    delay, source = least_delays(problem).tolist(), problem.edges.source.tolist()
    indptr, into = (a.tolist() for a in problem.before)
    end, why = [0] * problem.count, [-1] * problem.count
    for p in problem.order.tolist():
        start = begin[p]
        for k in into[indptr[p] : indptr[p + 1]]:
            ready = end[source[k]] + delay[k]
            if ready > start:
                start, why[p] = ready, source[k]
        end[p] = start + span[p]
    return np.array(end, np.int64), np.array(why, np.int64)


def least_delays(problem: ScheduleProblem) -> IntArray:
    """Return (E,) the least ticks of every dependency over all pairs of modes."""
    e, n, m = problem.edges, problem.network, problem.modes
    sent = -(-e.bytes // n.bandwidth) if n.bandwidth else np.zeros(e.count, np.int64)
    if not problem.sets.count or not (n.hop_time or n.bandwidth):
        return e.convert.copy()
    chosen, first = m.unit_set, m.first.tolist()
    groups: dict[bytes, int] = {}
    kind = [
        groups.setdefault(chosen[first[p] : first[p + 1]].tobytes(), len(groups))
        for p in range(problem.count)
    ]
    of = [np.unique(np.frombuffer(key, np.int64)) for key in groups]
    near: dict[tuple[int, int], int] = {}
    hops = np.zeros(e.count, np.int64)
    for k, (a, b) in enumerate(zip(e.source.tolist(), e.target.tolist(), strict=True)):
        pair = kind[a], kind[b]
        if pair not in near:
            near[pair] = _nearest(problem, of[pair[0]], of[pair[1]])
        hops[k] = near[pair]
    out: IntArray = e.convert + np.where((hops > 0) & (e.bytes > 0), hops * n.hop_time + sent, 0)
    return out


def _nearest(problem: ScheduleProblem, one: AnyArray, other: AnyArray) -> int:
    """Return the least hops between two lists of unit sets."""
    if one[0] < 0 or other[0] < 0 or np.intersect1d(one, other, assume_unique=True).size:
        return 0
    return int(problem.sets.hops[np.ix_(one, other)].min())


def _require_deadlines(stated: Stated, where: str) -> None:
    problem = stated.problem
    end, why = earliest_ends(problem)
    late = end - problem.deadline
    if (late <= 0).all():
        return
    p = int(np.argmax(late > 0))
    path = [p]
    while why[path[-1]] >= 0:
        path.append(int(why[path[-1]]))
    names = [problem.labels[q] for q in reversed(path)]
    shown = " -> ".join(names if len(names) <= 8 else [*names[:3], "...", *names[-3:]])
    limit = "its deadline is"
    task = int(problem.task[p])
    if stated.periods and task >= 0 and stated.periods[task]:
        limit = f"with a period of {stated.periods[task]:,} it must by"
    raise DoesNotFitError(
        f"process {problem.labels[p]!r} ends at {end[p]:,} at the earliest ({shown}), {limit} {problem.deadline[p]:,}: "
        f"{_ticks(int(late[p]))} too late", where, "deadlines that the least spans and delays allow",
    )  # fmt: skip


def _ticks(count: int) -> str:
    return "1 tick" if count == 1 else f"{count:,} ticks"


class _LeastWork(NamedTuple):
    """Work that no choice of modes avoids.

    Attributes
    ----------
    least : (P,) unit ticks
    process, unit, span : (F,) what every mode of a process puts on one unit, in ticks at least
    """

    least: IntArray
    process: IntArray
    unit: IntArray
    span: IntArray


def _work_of(problem: ScheduleProblem) -> _LeastWork:
    m, sets = problem.modes, problem.sets
    size = np.append(np.diff(sets.indptr), 0)[m.unit_set] * (m.unit_set >= 0)
    least = np.minimum.reduceat(m.span * size, m.first[:-1])
    span = np.minimum.reduceat(m.span, m.first[:-1])
    total = int(size.sum())
    if total > MOST_PAIRS or not total:
        return _LeastWork(least, *(np.zeros(0, np.int64) for _ in range(3)))
    first = np.repeat(np.append(sets.indptr[:-1], 0)[m.unit_set] - np.cumsum(size) + size, size)
    unit = sets.members[np.arange(total) + first]
    pair, times = np.unique(np.repeat(m.process, size) * problem.units.count + unit, return_counts=True)
    process, unit = np.divmod(pair, problem.units.count)
    always = times == np.diff(m.first)[process]
    return _LeastWork(least, process[always], unit[always], span[process[always]])


def _require_periods(stated: Stated, work: _LeastWork, where: str) -> None:
    """One frame of every periodic network must fit between its release and its deadline; interactions count for both networks."""
    problem, periods = stated.problem, np.array(stated.periods, np.int64)
    members = [np.flatnonzero((one >= 0) & (stated.frame == 0)) for one in (problem.task, problem.partner)]
    mine = np.concatenate(members)
    task = np.concatenate([problem.task[members[0]], problem.partner[members[1]]])
    kept = periods[task] > 0

    def who(k: int) -> str:
        return f"network {problem.tasks[k]!r} with a period of {periods[k]:,}"

    _require_room(problem, work, mine[kept], task[kept], who, where)


def _require_room(
    problem: ScheduleProblem, work: _LeastWork, mine: IntArray, group: IntArray, who: Callable[[int], str], where: str
) -> None:  # fmt: skip
    """Refuse groups of processes whose work does not fit between the first release and the last deadline, on all units or on one.

    Parameters
    ----------
    mine, group : (N,) processes with deadlines, and the group of each
    who : words for a group
    """
    units = problem.units.count
    if not len(mine) or not units:
        return
    count = int(group.max()) + 1
    begin, last = np.full(count, NEVER), np.zeros(count, np.int64)
    np.minimum.at(begin, group, problem.release[mine])
    np.maximum.at(last, group, problem.deadline[mine])
    window = np.where(last >= NEVER, NEVER // MOST_UNITS, last - begin)
    total = np.zeros(count, np.int64)
    np.add.at(total, group, work.least[mine])
    if (total > window * units).any():
        k = int(np.argmax(total > window * units))
        have, ticks = int(window[k]) * units, _ticks(int(window[k]))
        raise DoesNotFitError(
            f"{who(k)}: the work takes at least {total[k]:,} unit ticks, {units} units have {have:,} in {ticks}: "
            f"{total[k] - have:,} too few", where, "longer periods or less work",
        )  # fmt: skip
    order = np.argsort(mine, kind="stable")
    low, high = (np.searchsorted(mine[order], work.process, side=side) for side in ("left", "right"))
    row = np.repeat(np.arange(len(work.process)), high - low)
    within = np.arange(len(row)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    owner = group[order[low[row] + within]]
    place, at = np.unique(owner * units + work.unit[row], return_inverse=True)
    load = np.zeros(len(place), np.int64)
    np.add.at(load, at, work.span[row])
    if (first_wrong := first_true(load > window[place // units])) is not None:
        k, u = divmod(int(place[first_wrong]), units)
        raise DoesNotFitError(
            f"{who(k)}: unit {problem.units.names[u]!r} alone has at least {load[first_wrong]:,} ticks of work in "
            f"{_ticks(int(window[k]))}: {load[first_wrong] - window[k]:,} too few", where,
            "longer periods, less work or more unit sets",
        )  # fmt: skip
