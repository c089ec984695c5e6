"""What an assignment is worth, compiled: the schedule, the sums, the loads and what is too much, as the evaluator has them.

:mod:`nmsolve.hw.assignment.evaluate` says what these figures are; a test holds both against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.assignment.problem import OBJECTIVES, AssignProblem
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray, by_key

#: Stands for "no limit".
MOST = 2**62
#: Places of the objectives in arrays of values.
LATENCY, ENERGY, LOAD, MAKESPAN = range(len(OBJECTIVES))


class Ground(NamedTuple):
    """A problem in flat arrays, all its own; ``needs`` (tensors by operator that uses them), ``made`` (by operator that makes
    them), ``users`` (by tensor), ``members`` (by group) and ``operators`` (by item) are CSR, their starts end in ``_at``.

    ``prefer`` (G,): in which order groups are fused; ``limit`` (4,): ceilings; ``room`` (M,): of memories, :data:`MOST` without
    limit; ``goal``: place of the objective.
    """

    time: IntArray
    energy: IntArray
    source: IntArray
    users_at: IntArray
    users: IntArray
    until: IntArray
    since: IntArray
    bytes: IntArray
    kept: IntArray
    needs_at: IntArray
    needs: IntArray
    made_at: IntArray
    made: IntArray
    moved: IntArray
    moved_energy: IntArray
    members_at: IntArray
    members: IntArray
    gain: IntArray
    gain_energy: IntArray
    prefer: IntArray
    item: IntArray
    operators_at: IntArray
    operators: IntArray
    site: IntArray
    memory: IntArray
    channel: IntArray
    room: IntArray
    limit: IntArray
    goal: int
    limited: bool


class State(NamedTuple):
    """``unit`` (L,), ``rank`` (L,), ``order`` (L,) operators by rank, ``allow`` (G,): the group is fused if it can be."""

    unit: IntArray
    rank: IntArray
    order: IntArray
    allow: IntArray


class ValueArrays(NamedTuple):
    """Arrays that :func:`values` writes: ``job``, ``run``, ``power``, ``finish`` (L,), ``fused`` (G,), ``group`` (L,) the fused
    group of an operator or -1, ``free`` (J,), ``quiet`` (channels,), ``arrived`` (T, S), ``busy`` (J,), ``queue`` (uses,)
    tensors, once for each member of a job that wants it, ``last`` (M,), ``held`` (M, L + 1), ``value`` (4,) what comes out."""

    job: IntArray
    run: IntArray
    power: IntArray
    finish: IntArray
    fused: IntArray
    group: IntArray
    free: IntArray
    quiet: IntArray
    arrived: IntArray
    busy: IntArray
    queue: IntArray
    last: IntArray
    held: IntArray
    value: IntArray


def ground_of(problem: AssignProblem) -> Ground:
    """Return the arrays of a problem."""
    flows, groups, units = problem.flows, problem.groups, problem.units
    tensor = np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    needs_at, needs = _rows(flows.targets, tensor, problem.count)
    made_at, made = _rows(flows.source, np.arange(flows.count), problem.count)
    item = np.arange(problem.count)
    if problem.together is not None:
        first: dict[int, int] = {}
        for i, number in enumerate(problem.together.tolist()):
            item[i] = first.setdefault(number, i) if number >= 0 else i
        _, item = np.unique(item, return_inverse=True)
    operators_at, operators = _rows(item, np.arange(problem.count), int(item.max()) + 1)
    limit = np.full(len(OBJECTIVES), MOST, np.int64)
    for name, most in problem.ceilings:
        limit[list(OBJECTIVES).index(name)] = int(min(most, float(MOST)))
    room = np.where(np.isfinite(units.capacity), np.minimum(units.capacity, 2.0**61), 2.0**61).astype(
        np.int64
    )
    worth = groups.energy if problem.objective == "energy" else groups.time
    arrays = (
        problem.time, problem.energy, flows.source, flows.indptr, flows.targets, flows.until, flows.since, flows.bytes,
        flows.kept, needs_at, needs, made_at, made, flows.time, flows.energy, groups.indptr, groups.members, groups.time,
        groups.energy, np.argsort(-worth.max(axis=1, initial=0), kind="stable"), item, operators_at, operators, units.site,
        units.memory, units.channel, room, limit,
    )  # fmt: skip
    own: list[Any] = [np.array(array, np.int64, order="C") for array in arrays]
    limited = bool((units.capacity < flows.bytes.sum()).any())
    return Ground._make([*own, list(OBJECTIVES).index(problem.objective), limited])


def _rows(key: AnyArray, value: AnyArray, count: int) -> tuple[IntArray, IntArray]:
    """Values by key as CSR."""
    ptr, by = by_key(key, count)
    return ptr, value[by].astype(np.int64)


def work_of(g: Ground) -> ValueArrays:
    """Return the arrays that evaluations write."""
    count, units, tensors, sites = len(g.time), g.time.shape[1], len(g.source), len(g.memory)

    def zeros(*shape: int) -> IntArray:
        return np.zeros(shape, np.int64)

    return ValueArrays(
        zeros(count), zeros(count), zeros(count), zeros(count), zeros(len(g.prefer)), zeros(count), zeros(units),
        zeros(int(g.channel.max(initial=-1)) + 1), zeros(tensors, sites), zeros(units), zeros(len(g.needs)), zeros(len(g.room)),
        zeros(len(g.room), count + 1), zeros(len(OBJECTIVES)),
    )  # fmt: skip


def state_of(unit: IntArray, rank: IntArray, allow: AnyArray) -> State:
    """Return a state of its own arrays."""
    return State(
        unit.astype(np.int64),
        rank.astype(np.int64),
        np.argsort(rank).astype(np.int64),
        allow.astype(np.int64),
    )


@plain
def values(g: Ground, s: State, w: ValueArrays, result: FloatArray) -> None:
    """Write all objectives to ``w.value`` that the goal and the ceilings need; others are 0.

    ``result`` (2,): what is to be minimised, the objective and more where something is too much; 1 if nothing is.
    """
    w.value[:] = 0
    _fuse(g, s, w)
    if g.goal != MAKESPAN or g.limit[LATENCY] < MOST or g.limit[ENERGY] < MOST or g.limit[LOAD] < MOST:
        _sums(g, s, w)
    if g.goal == MAKESPAN or g.limit[MAKESPAN] < MOST:
        w.value[MAKESPAN] = _latest_end(g, s, w)
    excess = 0.0
    for k in range(len(g.limit)):
        if w.value[k] > g.limit[k]:
            excess += 0.01 + (w.value[k] - g.limit[k]) / (1.0 + g.limit[k])
    if g.limited:
        excess += _too_much(g, s, w)
    cost = float(w.value[g.goal])
    if g.goal == LOAD:
        cost += 1e-4 * w.value[LATENCY]
    result[0] = cost * (1.0 + 4.0 * excess)
    result[1] = 1.0 if excess == 0.0 else 0.0


@plain
def _fuse(g: Ground, s: State, w: ValueArrays) -> None:
    """Fuse what may and can be, in the order of preference; write jobs, their times and energies."""
    for i in range(len(s.unit)):
        w.job[i] = i
        w.group[i] = -1
        w.run[i] = g.time[i, s.unit[i]]
        w.power[i] = g.energy[i, s.unit[i]]
    for n in range(len(g.prefer)):
        k = g.prefer[n]
        begin, end = g.members_at[k], g.members_at[k + 1]
        j = s.unit[g.members[begin]]
        w.fused[k] = 0
        fits = s.allow[k] == 1 and (g.gain[k, j] > 0 or g.gain_energy[k, j] > 0)
        for e in range(begin, end):
            fits = fits and s.unit[g.members[e]] == j and w.group[g.members[e]] < 0
        if fits:
            w.fused[k] = 1
            last = g.members[end - 1]
            run, power = -g.gain[k, j], -g.gain_energy[k, j]
            for e in range(begin, end):
                i = g.members[e]
                run += w.run[i]
                power += w.power[i]
                w.run[i], w.power[i], w.job[i], w.group[i] = 0, 0, last, k
            w.run[last], w.power[last] = run, power


@plain
def _sums(g: Ground, s: State, w: ValueArrays) -> None:
    """Write latency, energy and load."""
    w.busy[:] = 0
    w.quiet[:] = 0
    latency, energy = 0, 0
    for i in range(len(s.unit)):
        latency += w.run[i]
        energy += w.power[i]
        w.busy[s.unit[i]] += w.run[i]
    for t in range(len(g.source)):
        origin = g.site[s.unit[g.source[t]]]
        for e in range(g.users_at[t], g.users_at[t + 1]):
            w.arrived[t, g.site[s.unit[g.users[e]]]] = -1
        for e in range(g.users_at[t], g.users_at[t + 1]):
            goal = g.site[s.unit[g.users[e]]]
            if goal != origin and w.arrived[t, goal] < 0:
                w.arrived[t, goal] = 0
                latency += g.moved[t, origin, goal]
                energy += g.moved_energy[t, origin, goal]
                if g.channel[origin, goal] >= 0:
                    w.quiet[g.channel[origin, goal]] += g.moved[t, origin, goal]
    w.value[LATENCY], w.value[ENERGY] = latency, energy
    load = 0
    for j in range(len(w.busy)):
        load = max(load, w.busy[j])
    for c in range(len(w.quiet)):
        load = max(load, w.quiet[c])
    w.value[LOAD] = load


@plain
def _latest_end(g: Ground, s: State, w: ValueArrays) -> int:
    """Return the makespan of the schedule that the order means."""
    w.free[:] = 0
    w.quiet[:] = 0
    w.arrived[:] = -1
    end = 0
    for n in range(len(s.order)):
        i = s.order[n]
        if w.job[i] != i:
            continue
        count = 0
        if w.group[i] < 0:
            count = _wanted(g, s, w, i, i, count)
        else:
            k = w.group[i]
            for e in range(g.members_at[k], g.members_at[k + 1]):
                count = _wanted(g, s, w, i, g.members[e], count)
        goal, ready, before = g.site[s.unit[i]], w.free[s.unit[i]], -1
        for q in range(count):
            t = w.queue[q]
            if t == before:
                continue
            before = t
            made, origin = w.finish[w.job[g.source[t]]], g.site[s.unit[g.source[t]]]
            if origin != goal:
                if w.arrived[t, goal] < 0:
                    begin, c = made, g.channel[origin, goal]
                    if c >= 0 and w.quiet[c] > made:
                        begin = w.quiet[c]
                    w.arrived[t, goal] = begin + g.moved[t, origin, goal]
                    if c >= 0:
                        w.quiet[c] = w.arrived[t, goal]
                    end = max(end, w.arrived[t, goal])
                made = w.arrived[t, goal]
            ready = max(ready, made)
        w.finish[i] = ready + w.run[i]
        w.free[s.unit[i]] = w.finish[i]
        end = max(end, w.finish[i])
    return int(end)


@plain
def _wanted(g: Ground, s: State, w: ValueArrays, job: int, i: int, count: int) -> int:
    """Add the tensors that operator ``i`` of a job waits for to the queue, by the end of their makers; return its length."""
    for e in range(g.needs_at[i], g.needs_at[i + 1]):
        t = g.needs[e]
        p = g.source[t]
        if s.rank[i] > s.rank[p] and w.job[p] != job:
            made, at = w.finish[w.job[p]], count
            while at > 0:
                other = w.queue[at - 1]
                ended = w.finish[w.job[g.source[other]]]
                if ended < made or (ended == made and other <= t):
                    break
                w.queue[at] = other
                at -= 1
            w.queue[at] = t
            count += 1
    return count


@plain
def _too_much(g: Ground, s: State, w: ValueArrays) -> float:
    """Return by how much memories are overfilled, in parts of what they have, the worst position of each."""
    count = len(s.unit)
    w.held[:] = 0
    for t in range(len(g.source)):
        made = g.source[t]
        w.last[:] = -1
        if g.kept[t] == 0:
            w.last[g.memory[g.site[s.unit[made]]]] = made
        for e in range(g.users_at[t], g.users_at[t + 1]):
            m = g.memory[g.site[s.unit[g.users[e]]]]
            w.last[m] = max(w.last[m], max(made, g.until[e]))
        for m in range(len(w.last)):
            if w.last[m] >= 0:
                w.held[m, 0 if g.kept[t] == 1 else g.since[t]] += g.bytes[t]
                w.held[m, count if g.kept[t] == 1 else w.last[m] + 1] -= g.bytes[t]
    excess = 0.0
    for m in range(len(w.last)):
        held, most = 0, 0
        for position in range(count):
            held += w.held[m, position]
            most = max(most, held)
        if most > g.room[m]:
            excess += 0.01 + (most - g.room[m]) / (1.0 + g.room[m])
    return excess
