"""The queues of a schedule run on a simulated component (M4.7): do starts, ends, memory, power and energy come out as planned?

Every unit has a controller with its queue, processors, a memory, a router and a data organiser. A controller takes the next
process of its queue when the last one has ended. A gang begins when all its units are free and awake and its time has come; it
loads its static data if it has to, starts when its inputs have arrived and have been converted, and its turn at shared
resources has come. Nothing begins or starts before its planned tick: controllers are triggered by time, so units can be woken
in advance.

With noise, queues keep their order and starts move. A unit's memory changes with its own queue only, so none overflows by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.schedule.evaluate import Powered, gaps_of, worth
from nmsolve.hw.schedule.event_kernels import Plan, component, run_events
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import stays
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Queues, Schedule, on_units, on_units_in_turn
from nmsolve.model.types import FloatArray, IntArray


def queues_of(problem: ScheduleProblem, answer: Schedule) -> Queues:
    """Return the queues of a legal schedule, with the best switching."""
    process, unit = on_units_in_turn(problem, answer)
    indptr = np.searchsorted(unit, np.arange(problem.units.count + 1))
    gaps = gaps_of(problem, answer)
    dark = set(zip(gaps.unit[gaps.off].tolist(), gaps.begin[gaps.off].tolist(), strict=True))
    ends = answer.end(problem)[process].tolist()
    off = [(u, end) in dark for u, end in zip(unit.tolist(), ends, strict=True)]
    return Queues(indptr, process, np.array(off, bool))


@dataclass(frozen=True, eq=False)
class Simulated:
    """What happened.

    Attributes
    ----------
    begin, start, end : (P,) ticks, -1 for what never came to run
    peak : (U,) most bytes that each memory held
    busy, idle, dark : (U,) ticks at work, on without work, and off between two processes
    switches : (U,) times that a unit was woken
    dark_begin : (Q,) when the unit of a queue's entry was switched off after it, -1 if it was not
    energy : its parts by name
    objectives : all but ``weighted`` by name
    events : how many happened
    """

    begin: IntArray
    start: IntArray
    end: IntArray
    peak: IntArray
    busy: IntArray
    idle: IntArray
    dark: IntArray
    switches: IntArray
    dark_begin: IntArray
    energy: dict[str, int]
    objectives: dict[str, int]
    events: int


def plan_of(problem: ScheduleProblem, answer: Schedule, queues: Queues) -> Plan:
    """Return what the controllers know of a legal schedule and its queues."""
    m, e, mode = problem.modes, problem.edges, answer.mode
    needed = problem.mode_bytes[mode]
    begin = answer.begin(problem)
    process, unit = on_units(problem, mode)
    out_ptr, out = problem.after
    span = m.span[mode]
    rank = np.empty(problem.count, np.int64)
    rank[problem.order] = np.arange(problem.count)
    demand = m.demand[mode] * (span > 0)[:, None]
    first = np.lexsort((rank, answer.start))
    turns = [first[demand[first, r] > 0] for r in range(len(problem.resources))]
    return Plan(
        queue_ptr=queues.indptr, queue=queues.process, off_after=queues.off_after.astype(np.int64),
        unit_ptr=np.searchsorted(process, np.arange(problem.count + 1)), unit=unit,
        begin=begin, start=answer.start, load=answer.start - begin, span=span,
        inputs=np.bincount(e.target, minlength=problem.count), out_ptr=out_ptr, out=e.target[out],
        delay=problem.delay(out, mode[e.source[out]], mode[e.target[out]]),
        gain=np.where(answer.loaded, needed, 0), work=m.working[mode], drop=np.where(stays(problem, answer), 0, needed),
        demand=demand, capacity=problem.capacity,
        turn_ptr=np.cumsum([0, *map(len, turns)]), turn=np.concatenate([*turns, np.zeros(0, np.int64)]),
        off_time=problem.units.off_time, wake_time=problem.units.wake_time,
    )  # fmt: skip


def simulate(
    problem: ScheduleProblem, answer: Schedule, queues: Queues, plan: Plan | None = None
) -> Simulated:
    """Run the ``queues`` of a legal schedule.

    ``plan`` : :func:`plan_of` these, or the same with other spans and delays.
    """
    plan = plan_of(problem, answer, queues) if plan is None else plan
    c = component(plan)
    events = int(run_events(plan, c))
    energy, objectives = worth(problem, answer, c.end, Powered(c.busy, c.idle, c.switches))
    return Simulated(
        c.begin, c.start, c.end, c.peak, c.busy, c.idle, c.dark, c.switches, c.dark_begin, energy, objectives, events
    )  # fmt: skip


def difference(problem: ScheduleProblem, answer: Schedule, seen: Simulated) -> str | None:
    """Say where what happened is not what the schedule says, or None: to the tick and the byte."""
    for what, happened, planned in (
        ("began", seen.begin, answer.begin(problem)),
        ("started", seen.start, answer.start),
        ("ended", seen.end, answer.end(problem)),
    ):
        wrong = np.flatnonzero(happened != planned)
        if len(wrong):
            p = int(wrong[0])
            return f"process {problem.labels[p]!r} {what} at {happened[p]:,}, not at {planned[p]:,}"
    over = np.flatnonzero(seen.peak > problem.units.memory)
    if len(over):
        u = int(over[0])
        return f"unit {problem.units.names[u]!r} held {seen.peak[u]:,} bytes of {problem.units.memory[u]:,}"
    return None


@dataclass(frozen=True, eq=False)
class Robustness:
    """What N noisy runs came to.

    Attributes
    ----------
    makespan, energy : (N,)
    late : (N,) processes that ended after their deadline
    delay : (N,) mean ticks by which processes started later than planned
    """

    makespan: IntArray
    energy: IntArray
    late: IntArray
    delay: FloatArray


def noisy_runs(
    problem: ScheduleProblem, answer: Schedule, queues: Queues, noise: float, runs: int = 100, seed: int = 0
) -> Robustness:
    """Run the queues ``runs`` times; every duration is multiplied by a random factor of ``1 - noise`` to ``1 + noise``.

    Raises
    ------
    InputError : the noise is not a part of 1
    """
    if not 0 <= noise < 1:
        raise InputError(f"noise of {noise:g}", "--noise", "at least 0 and less than 1 (100%)")
    plan, rng = plan_of(problem, answer, queues), np.random.default_rng(seed)

    def drawn(ticks: IntArray) -> IntArray:
        factor = rng.uniform(1 - noise, 1 + noise, len(ticks))
        return np.maximum(ticks > 0, np.rint(ticks * factor)).astype(np.int64)

    def again() -> Simulated:
        noisy = plan._replace(span=drawn(plan.span), load=drawn(plan.load), delay=drawn(plan.delay))
        return simulate(problem, answer, queues, noisy)

    seen = [again() for _ in range(runs)]
    return Robustness(
        np.array([s.objectives["makespan"] for s in seen], np.int64), np.array([s.objectives["energy"] for s in seen], np.int64),
        np.array([(s.end > problem.deadline).sum() for s in seen], np.int64),
        np.array([np.maximum(0, s.start - answer.start).mean() for s in seen]),
    )  # fmt: skip
