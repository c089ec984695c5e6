"""What counting shows to be impossible before any search: deadlines before the earliest finish, periods shorter than the work."""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.statement import Stated
from nmsolve.model.types import AnyArray, IntArray

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
    for k in np.unique(problem.task[problem.task >= 0]).tolist():
        if stated.periods and stated.periods[k]:
            _require_work(stated, k, where)
    _require_all_work(problem, where)


def earliest_ends(problem: ScheduleProblem) -> tuple[IntArray, IntArray]:
    """Return (P,) earliest ends by least spans, loads and delays along the paths, and (P,) the process that decides, or -1."""
    m = problem.modes
    first = m.first[:-1]
    span = np.minimum.reduceat(m.span, first).tolist()
    load = np.append(problem.items.load, 0)[np.where(m.item >= 0, m.item, problem.items.count)]
    begin = np.maximum(
        np.maximum(problem.release, problem.earliest), np.minimum.reduceat(load, first)
    ).tolist()
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


def _require_work(stated: Stated, task: int, where: str) -> None:
    """One frame of a network must fit between its release and its deadline."""
    problem = stated.problem
    mine = np.flatnonzero(((problem.task == task) | (problem.partner == task)) & (stated.frame == 0))
    name, period = problem.tasks[task], stated.periods[task]
    _require_room(problem, mine, f"network {name!r} with a period of {period:,}", where)


def _require_all_work(problem: ScheduleProblem, where: str) -> None:
    mine = np.flatnonzero(problem.deadline < NEVER)
    _require_room(problem, mine, "all networks with deadlines", where)


def _require_room(problem: ScheduleProblem, mine: IntArray, who: str, where: str) -> None:
    """Refuse processes whose work does not fit between the first release and the last deadline, on all units or on one."""
    last = int(problem.deadline[mine].max(initial=0))
    if not len(mine) or last >= NEVER or not problem.units.count:
        return
    window = last - int(problem.release[mine].min())
    m, size = problem.modes, np.diff(problem.sets.indptr)
    work = m.span * np.where(m.unit_set >= 0, np.append(size, 0)[m.unit_set], 0)
    least = np.minimum.reduceat(work, m.first[:-1])[mine]
    total, units = int(least.sum()), problem.units.count
    if total > window * units:
        raise DoesNotFitError(
            f"{who}: the work takes at least {total:,} unit ticks, {units} units have {window * units:,} in {window:,} ticks: "
            f"{total - window * units:,} too few", where, "longer periods or less work",
        )  # fmt: skip
    u, load = _most_forced(problem, mine)
    if load > window:
        raise DoesNotFitError(
            f"{who}: unit {problem.units.names[u]!r} alone has at least {load:,} ticks of work in {window:,} ticks: "
            f"{load - window:,} too few", where, "longer periods, less work or more unit sets",
        )  # fmt: skip


def _most_forced(problem: ScheduleProblem, mine: IntArray) -> tuple[int, int]:
    """Return the unit with the most work that every mode of a process puts on it, and that work."""
    m, sets = problem.modes, problem.sets
    chosen = np.zeros(problem.count, bool)
    chosen[mine] = True
    modes = np.flatnonzero(chosen[m.process] & (m.unit_set >= 0))
    size = np.diff(sets.indptr)[m.unit_set[modes]]
    if size.sum() > MOST_PAIRS:
        return 0, 0
    first = np.repeat(sets.indptr[:-1][m.unit_set[modes]] - np.cumsum(size) + size, size)
    unit = sets.members[np.arange(int(size.sum())) + first]
    pair, times = np.unique(
        np.repeat(m.process[modes], size) * problem.units.count + unit, return_counts=True
    )
    process, unit = np.divmod(pair, problem.units.count)
    always = times == np.diff(m.first)[process]
    span = np.minimum.reduceat(m.span, m.first[:-1])
    load = np.zeros(problem.units.count, np.int64)
    np.add.at(load, unit[always], span[process[always]])
    u = int(load.argmax())
    return u, int(load[u])
