"""Re-evaluation of schedules for ``verify``, event by event, in plain Python.

Shares no code with :mod:`nmsolve.model.schedule.check` and :mod:`nmsolve.hw.schedule.evaluate`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule


@dataclass
class Reevaluation:
    """A schedule's values, computed a second time.

    Attributes
    ----------
    complaint : the first rule broken, or None; the rest is complete only without one
    objectives : by name
    energy : its parts by name
    peak : most bytes that each unit held
    spent : of every nonrenewable resource, what all modes took
    on : per unit the intervals in which it is on, switching not counted
    work : per unit ``(begin, start, end, process)`` in the order in which it works
    """

    complaint: str | None = None
    objectives: dict[str, int] = field(default_factory=dict)
    energy: dict[str, int] = field(default_factory=dict)
    peak: list[int] = field(default_factory=list)
    spent: list[int] = field(default_factory=list)
    on: list[list[tuple[int, int]]] = field(default_factory=list)
    work: list[list[tuple[int, int, int, int]]] = field(default_factory=list)


class _Broken(Exception):
    """A rule does not hold; the text says which."""


def reevaluate(problem: ScheduleProblem, answer: Schedule) -> Reevaluation:
    """Evaluate a schedule. Accepts any modes, starts and loads that are arrays of (P,)."""
    return _reevaluated(problem, answer, answer.packed().tobytes())


@lru_cache(maxsize=1)  # file, report, checks and page of an answer need it
def _reevaluated(problem: ScheduleProblem, answer: Schedule, _content: bytes) -> Reevaluation:
    """Evaluate a schedule, once as long as it is the same; its arrays may be written to, so what they hold counts, too."""
    seen = Reevaluation()
    try:
        runs = _runs(problem, answer)
        _inputs(problem, runs)
        seen.work = _queues(problem, runs)
        _resources(problem, runs)
        seen.spent = _spent(problem, runs)
        seen.peak = _memories(problem, runs)
    except _Broken as broken:
        seen.complaint = str(broken)
        return seen
    seen.on = [_on(problem, u, work) for u, work in enumerate(seen.work)]
    seen.energy = _energy(problem, runs, seen)
    seen.objectives = _objectives(problem, runs, seen)
    return seen


@dataclass(frozen=True)
class _Run:
    """One process as it runs; ``load`` ticks before ``start``."""

    process: int
    mode: int
    units: tuple[int, ...]
    load: int
    start: int
    end: int
    item: int
    loaded: bool


def _runs(problem: ScheduleProblem, answer: Schedule) -> list[_Run]:
    """Return how every process runs, its own rules checked."""
    m, runs = problem.modes, []
    if not len(answer.mode) == len(answer.start) == len(answer.loaded) == problem.count:
        raise _Broken(f"{len(answer.mode)} processes, the problem has {problem.count}")
    for p, label in enumerate(problem.labels):
        mode, start, loaded = int(answer.mode[p]), int(answer.start[p]), bool(answer.loaded[p])
        if not int(m.first[p]) <= mode < int(m.first[p + 1]):
            raise _Broken(f"{label!r} runs in mode {mode}, which is not one of its own")
        item, k = int(m.item[mode]), int(m.unit_set[mode])
        units = (
            ()
            if k < 0
            else tuple(problem.sets.members[problem.sets.indptr[k] : problem.sets.indptr[k + 1]].tolist())
        )
        if loaded and item < 0:
            raise _Broken(f"{label!r} loads, but has nothing to load")
        load = int(problem.items.load[item]) if loaded else 0
        end = start + int(m.span[mode])
        first = 0 if problem.ready is None else int(problem.ready[p])
        if start < int(problem.release[p]) or start - load < first:
            raise _Broken(
                f"{label!r} begins at {start - load} and starts at {start}, released at {int(problem.release[p])}"
            )
        if end > min(int(problem.deadline[p]), problem.latest):
            raise _Broken(f"{label!r} ends at {end}, after its deadline {int(problem.deadline[p])}")
        runs.append(_Run(p, mode, units, load, start, end, item, loaded))
    return runs


def _hops(problem: ScheduleProblem, one: _Run, other: _Run) -> int:
    """Return the way between the nearest units of two runs."""
    if not one.units or not other.units or set(one.units) & set(other.units):
        return 0
    return min(int(problem.units.hops[u, v]) for u in one.units for v in other.units)


def _inputs(problem: ScheduleProblem, runs: list[_Run]) -> None:
    """Whatever a process needs has arrived when it starts."""
    e, net = problem.edges, problem.network
    for k in range(e.count):
        one, other = runs[int(e.source[k])], runs[int(e.target[k])]
        size, way = int(e.bytes[k]), _hops(problem, one, other)
        there = one.end + int(e.convert[k])
        if way and size:
            there += way * net.hop_time + (-(-size // net.bandwidth) if net.bandwidth else 0)
        if other.start < there:
            names = problem.labels[one.process], problem.labels[other.process]
            raise _Broken(f"data of {names[0]!r} reach {names[1]!r} at {there}, it starts at {other.start}")


def _queues(problem: ScheduleProblem, runs: list[_Run]) -> list[list[tuple[int, int, int, int]]]:
    """Return what every unit does, one thing after the other."""
    work: list[list[tuple[int, int, int, int]]] = [[] for _ in problem.units.names]
    for run in runs:
        for u in run.units:
            work[u].append((run.start - run.load, run.start, run.end, run.process))
    for u, queue in enumerate(work):
        queue.sort()
        for (_, _, end, p), (begin, _, _, q) in pairwise(queue):
            if begin < end:
                names = problem.labels[p], problem.labels[q]
                raise _Broken(
                    f"unit {problem.units.names[u]!r} is busy with {names[0]!r} until {end}, {names[1]!r} begins at {begin}"
                )
    return work


def _resources(problem: ScheduleProblem, runs: list[_Run]) -> None:
    """No resource is overdrawn at any tick at which something starts."""
    for r, name in enumerate(problem.resources):
        events: dict[int, int] = defaultdict(int)
        for run in runs:
            amount = int(problem.modes.demand[run.mode, r])
            if run.end > run.start:
                events[run.start] += amount
                events[run.end] -= amount
        used = 0
        for tick in sorted(events):
            used += events[tick]
            if used > int(problem.capacity[r]):
                raise _Broken(
                    f"{used} of resource {name!r} are taken at {tick}, there are {int(problem.capacity[r])}"
                )


def _spent(problem: ScheduleProblem, runs: list[_Run]) -> list[int]:
    """Return what is taken of every nonrenewable resource, run by run; none is overdrawn."""
    left = [int(amount) for amount in problem.budgets.amount]
    for run in runs:
        for r, name in enumerate(problem.budgets.names):
            left[r] -= int(problem.budgets.use[run.mode, r])
            if left[r] < 0:
                raise _Broken(
                    f"{problem.labels[run.process]!r} takes {-left[r]} more of {name!r} than is left"
                )
    return [int(amount) - rest for amount, rest in zip(problem.budgets.amount, left, strict=True)]


def _memories(problem: ScheduleProblem, runs: list[_Run]) -> list[int]:
    """Return the peak of every unit's memory; what a process does not load must have stayed since its last use."""
    change: list[dict[int, int]] = [defaultdict(int) for _ in problem.units.names]
    uses: dict[int, list[_Run]] = defaultdict(list)
    for run in runs:
        for u in run.units:
            change[u][run.start] += int(problem.modes.working[run.mode])
            change[u][run.end] -= int(problem.modes.working[run.mode])
        if run.item >= 0:
            uses[run.item].append(run)
    for item, own in uses.items():
        own.sort(key=lambda run: run.start)
        size = int(problem.items.bytes[item])
        there = False
        for i, run in enumerate(own):
            if not run.loaded and not there:
                raise _Broken(
                    f"{problem.labels[run.process]!r} does not find {problem.items.names[item]!r} in memory"
                )
            stays = i + 1 < len(own) and not own[i + 1].loaded
            for u in run.units:
                if run.loaded:
                    change[u][run.start - run.load] += size
                if not stays:
                    change[u][run.end] -= size
            there = stays
    peaks = []
    for u, steps in enumerate(change):
        held = peak = 0
        for tick in sorted(steps):
            held += steps[tick]
            peak = max(peak, held)
            if held > int(problem.units.memory[u]):
                name, most = problem.units.names[u], int(problem.units.memory[u])
                raise _Broken(f"the memory of unit {name!r} would hold {held} bytes at {tick}, it has {most}")
        peaks.append(peak)
    return peaks


def _pays(problem: ScheduleProblem, u: int, gap: int) -> bool:
    """Whether a unit is switched off in a gap: there is time to, and idling costs no less (M4.6)."""
    units = problem.units
    if gap < int(units.off_time[u]) + int(units.wake_time[u]) or int(units.idle[u]) <= int(units.off[u]):
        return False
    return int(units.idle[u]) * gap >= int(units.switch_energy[u]) + int(units.off[u]) * gap


def _on(problem: ScheduleProblem, u: int, work: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Return when a unit is on."""
    intervals: list[tuple[int, int]] = []
    for begin, _, end, _ in work:
        if intervals and not (begin > intervals[-1][1] and _pays(problem, u, begin - intervals[-1][1])):
            intervals[-1] = (intervals[-1][0], end)
        else:
            intervals.append((begin, end))
    return intervals


def _busy(work: list[tuple[int, int, int, int]]) -> int:
    return sum(end - begin for begin, _, end, _ in work)


def _energy(problem: ScheduleProblem, runs: list[_Run], seen: Reevaluation) -> dict[str, int]:
    """Return the parts of the energy."""
    units, e = problem.units, problem.edges
    finish = max(run.end for run in runs)
    moved = sum(
        int(e.bytes[k]) * _hops(problem, runs[int(e.source[k])], runs[int(e.target[k])])
        for k in range(e.count)
    )
    lit = [sum(b - a for a, b in intervals) for intervals in seen.on]
    return {
        "run": sum(int(problem.modes.energy[run.mode]) for run in runs),
        "load": sum(int(problem.items.energy[run.item]) for run in runs if run.loaded),
        "transfer": moved * problem.network.hop_energy,
        "idle": sum(int(units.idle[u]) * (lit[u] - _busy(work)) for u, work in enumerate(seen.work)),
        "off": sum(int(units.off[u]) * (finish - lit[u]) for u in range(units.count)),
        "switch": sum(int(units.switch_energy[u]) * len(intervals) for u, intervals in enumerate(seen.on)),
    }


def _objectives(problem: ScheduleProblem, runs: list[_Run], seen: Reevaluation) -> dict[str, int]:
    """Return all objectives."""
    lit = sum(b - a for intervals in seen.on for a, b in intervals)
    idle = lit - sum(_busy(work) for work in seen.work)
    e = problem.edges
    moved = sum(
        int(e.bytes[k]) * _hops(problem, runs[int(e.source[k])], runs[int(e.target[k])])
        for k in range(e.count)
    )
    moved += sum(int(problem.items.bytes[run.item]) * len(run.units) for run in runs if run.loaded)
    late = 0
    for run in runs:
        if run.end > int(problem.due[run.process]):
            late += int(problem.weight[run.process]) * (run.end - int(problem.due[run.process]))
    found = {
        "makespan": max(run.end for run in runs),
        "tardiness": late,
        "idle": idle,
        "energy": sum(seen.energy.values()),
        "waste": -(-1_000_000 * idle // lit) if lit else 0,
        "moved": moved,
    }
    if problem.weights:
        found["weighted"] = sum(factor * found[name] for name, factor in problem.weights)
    return found
