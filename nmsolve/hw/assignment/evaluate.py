"""The evaluator of assignments: what every answer is worth, in all objectives; terms of cost and benefit (M3.6, M3.7) for rules
and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import BoolArray, IntArray


class Moves(NamedTuple):
    """Transfers of an assignment: every tensor to every site that needs it, once.

    Attributes
    ----------
    tensor, origin, goal : (X,) which tensor goes from which site to which other
    """

    tensor: IntArray
    origin: IntArray
    goal: IntArray


def moves_of(problem: AssignProblem, unit: IntArray) -> Moves:
    """Return the transfers of a mapping ``unit`` (L,), by tensor and goal."""
    flows, site, sites = problem.flows, problem.units.site, problem.units.sites
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    pair = np.unique(tensor * sites + site[unit[flows.targets]])
    tensor, goal = pair // sites, pair % sites
    origin = site[unit[flows.source[tensor]]]
    away = origin != goal
    return Moves(tensor[away], origin[away], goal[away])


def jobs_of(problem: AssignProblem, answer: Assignment) -> tuple[IntArray, IntArray, IntArray]:
    """Return what runs as one: (L,) the job of every operator, named after its last member, and (L,) time and energy of jobs.

    Operators that are not the last of their job have time and energy 0.
    """
    each = np.arange(problem.count)
    job, time, energy = each.copy(), problem.time[each, answer.unit], problem.energy[each, answer.unit]
    time, energy = time.copy(), energy.copy()
    fused, groups = np.flatnonzero(answer.fused), problem.groups
    if len(fused):
        size = np.diff(groups.indptr)
        own = groups.members[np.repeat(answer.fused, size)]
        ends = np.cumsum(size[fused])
        begin, last = ends - size[fused], own[ends - 1]
        job[own] = np.repeat(last, size[fused])
        for cost, gain in ((time, groups.time), (energy, groups.energy)):
            whole = np.add.reduceat(cost[own], begin) - gain[fused, answer.unit[own[begin]]]
            cost[own] = 0
            cost[last] = whole
    return job, time, energy


def all_objectives(problem: AssignProblem, answer: Assignment) -> dict[str, int]:
    """Return latency, energy, load and makespan of a legal assignment, in ps and pJ."""
    _, time, energy = jobs_of(problem, answer)
    moves = moves_of(problem, answer.unit)
    moved = problem.flows.time[moves]
    return {
        "latency": int(time.sum() + moved.sum()),
        "energy": int(energy.sum() + problem.flows.energy[moves].sum()),
        "load": max(loads_of(problem, answer).values()),
        "makespan": schedule_of(problem, answer).end,
    }


def objective(problem: AssignProblem, answer: Assignment) -> int:
    """Return the problem's own objective of a legal assignment."""
    if problem.objective == "makespan":
        return schedule_of(problem, answer).end
    if problem.objective == "load":
        return max(loads_of(problem, answer).values())
    _, time, energy = jobs_of(problem, answer)
    moves = moves_of(problem, answer.unit)
    if problem.objective == "energy":
        return int(energy.sum() + problem.flows.energy[moves].sum())
    return int(time.sum() + problem.flows.time[moves].sum())


def loads_of(problem: AssignProblem, answer: Assignment) -> dict[str, int]:
    """Return ps of work of every unit and every channel, by name."""
    _, time, _ = jobs_of(problem, answer)
    units, moves = problem.units, moves_of(problem, answer.unit)
    own, carried = np.zeros(units.count, np.int64), np.zeros(len(units.channels), np.int64)
    np.add.at(own, answer.unit, time)
    channel = units.channel[moves.origin, moves.goal]
    used = channel >= 0
    np.add.at(carried, channel[used], problem.flows.time[moves][used])
    return {
        **dict(zip(units.names, own.tolist(), strict=True)),
        **dict(zip(units.channels, carried.tolist(), strict=True)),
    }


class Schedule(NamedTuple):
    """When everything runs, in ps.

    Attributes
    ----------
    start, finish : (L,) of every operator; those of a fused group are equal
    moves : the transfers, and when each begins and ends (X,)
    end : of the whole
    """

    start: IntArray
    finish: IntArray
    moves: Moves
    move_start: IntArray
    move_finish: IntArray
    end: int


def schedule_of(problem: AssignProblem, answer: Assignment) -> Schedule:
    """Return the schedule that an assignment means: jobs in the order of their ranks, each as soon as it can.

    A job waits for its unit and for its tensors. A tensor is sent to a site once, for the first job there that wants it, as
    soon as its channel is free of what was sent before; without a channel it arrives when its time is over. A tensor that goes
    back in a loop (to an operator that does not come after its maker) makes no operator wait.
    """
    count, units, flows = problem.count, problem.units, problem.flows
    jobs, times, _ = jobs_of(problem, answer)
    # numbers one by one: lists are several times as fast as arrays
    job, time, rank, unit = jobs.tolist(), times.tolist(), answer.rank.tolist(), answer.unit.tolist()
    site, source, channels = units.site[answer.unit].tolist(), flows.source.tolist(), units.channel.tolist()
    needs: list[set[int]] = [set() for _ in range(count)]
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr)).tolist()
    for t, k in zip(tensor, flows.targets.tolist(), strict=True):
        if rank[k] > rank[source[t]] and job[k] != job[source[t]]:
            needs[job[k]].add(t)
    begun, ended = [0] * count, [0] * count
    free, quiet = [0] * units.count, [0] * len(units.channels)
    arrived: dict[tuple[int, int], tuple[int, int]] = {}
    for i in np.argsort(answer.rank, kind="stable").tolist():
        if job[i] != i:
            continue
        ready, goal = free[unit[i]], site[i]
        for made, t in sorted((ended[job[source[t]]], t) for t in needs[i]):
            origin = site[source[t]]
            if origin == goal:
                ready = max(ready, made)
                continue
            if (t, goal) not in arrived:
                channel = channels[origin][goal]
                begin = made if channel < 0 else max(made, quiet[channel])
                arrived[t, goal] = (begin, begin + int(flows.time[t, origin, goal]))
                if channel >= 0:
                    quiet[channel] = arrived[t, goal][1]
            ready = max(ready, arrived[t, goal][1])
        begun[i], ended[i] = ready, ready + time[i]
        free[unit[i]] = ended[i]
    start, finish = np.array(begun, np.int64)[jobs], np.array(ended, np.int64)[jobs]
    moves = moves_of(problem, answer.unit)
    pairs = list(zip(moves.tensor.tolist(), moves.goal.tolist(), strict=True))
    late = int(finish.max(initial=0))
    sent = np.array([arrived.get(p, (late, late)) for p in pairs], np.int64).reshape(-1, 2)
    return Schedule(start, finish, moves, sent[:, 0], sent[:, 1], max(late, int(sent[:, 1].max(initial=0))))


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of every operator on every unit, (L, J), in ps, or pJ if the objective is energy; 0 where it cannot run.

    Attributes
    ----------
    possible : where it can run
    transfer : T(i, j): all tensors that it uses brought from the first host, and for control flow the round trips to that site
        times the turns: ``sum over t used by i of time(t, host -> site of j)``
    accumulated : A(i, j): running it there, all its turns: ``launch + max(MACs / peak, elements / rate, bytes / bandwidth)``, or
        what the function library says
    work : what its arithmetic alone takes there: its complexity by type, width and amount (:class:`.Complexity`); where that is
        not known, A(i, j)
    reference : (L,) the unit that it is compared with, h: the host that runs it best, or the worst unit if no host can
    speed : S(i, j), the gain in efficiency, which is work per time: the work done in the time of its run there, less what h would
        do in that time: ``work(i, h) * (1 - A(i, j) / A(i, h))``
    complexity : O(i, j), the gain by lower complexity: ``work(i, h) - work(i, j)``
    fusion : its share of what the best fused group with it saves there, ``max over groups of gain(group, j) / members``; no part
        of the benefit: only operators that are tried as one have it
    """

    possible: BoolArray
    transfer: IntArray
    accumulated: IntArray
    work: IntArray
    reference: IntArray
    speed: IntArray
    complexity: IntArray
    fusion: IntArray

    @property
    def cost(self) -> IntArray:
        """C(i, j) = T(i, j) + A(i, j) (M3.6)."""
        return self.transfer + self.accumulated

    @property
    def benefit(self) -> IntArray:
        """P(i, j) = S(i, j) + O(i, j) (M3.7)."""
        return self.speed + self.complexity


def terms_of(problem: AssignProblem) -> Terms:
    """Return the terms of a problem, from its tables alone."""
    by_energy = problem.objective == "energy"
    run = problem.energy if by_energy else problem.time
    moved = problem.flows.energy if by_energy else problem.flows.time
    gain = problem.groups.energy if by_energy else problem.groups.time
    possible = problem.time >= 0
    accumulated = np.where(possible, run, 0)
    known, each = problem.complexity, np.arange(problem.count)
    work = accumulated if known is None else np.where(possible, known.energy if by_energy else known.time, 0)
    reference = _reference(problem, accumulated, possible)
    here, run_here = work[each, reference][:, None], accumulated[each, reference][:, None]
    return Terms(
        possible=possible,
        transfer=np.where(possible, _transfers(problem, moved), 0),
        accumulated=accumulated,
        work=work,
        reference=reference,
        speed=np.where(possible, efficiency_gain(here, run_here, accumulated), 0),
        complexity=np.where(possible, here - work, 0),
        fusion=np.where(possible, _shares(problem, gain), 0),
    )


def efficiency_gain(work: IntArray, here: IntArray, there: IntArray) -> IntArray:
    """Return S (M3.7) of work that takes the times ``here`` and ``there``: ``work * (1 - there / here)``; 0 if ``here`` is 0.

    No more than 2^61 either way: a measured ``here`` may be far below what the arithmetic takes by the machine's file.
    """
    share = np.divide(there, here, out=np.ones(np.broadcast_shapes(here.shape, there.shape)), where=here > 0)
    gain: IntArray = np.clip(np.rint(work * (1 - share)), -(2.0**61), 2.0**61).astype(np.int64)
    return gain


def _transfers(problem: AssignProblem, moved: IntArray) -> IntArray:
    """Return (L, J) what it takes to bring everything that an operator uses from the first host."""
    units, flows = problem.units, problem.flows
    hosts = np.flatnonzero(units.host)
    home = units.site[hosts[0] if len(hosts) else 0]
    out = np.zeros((problem.count, units.count), np.int64)
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    np.add.at(out, flows.targets, moved[tensor, home][:, units.site])
    return out


def _reference(problem: AssignProblem, run: IntArray, possible: BoolArray) -> IntArray:
    """Return (L,) the host that costs least, or the unit that costs most if no host can run it."""
    host = possible & problem.units.host
    most = np.iinfo(np.int64).max
    best = np.where(host, run, most).argmin(axis=1)
    worst = np.where(possible, run, -1).argmax(axis=1)
    reference: IntArray = np.where(host.any(axis=1), best, worst)
    return reference


def _shares(problem: AssignProblem, gain: IntArray) -> IntArray:
    """Return (L, J) the share of an operator in the best group with it."""
    groups = problem.groups
    out = np.zeros((problem.count, problem.units.count), np.int64)
    for k in range(groups.count):
        own = groups.of(k)
        out[own] = np.maximum(out[own], gain[k] // len(own))
    return out
