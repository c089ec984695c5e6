"""The decoder against a slow one in plain Python, and its values against the evaluator's; starts that are moved about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.schedule.decode import (
    BUSY,
    EARLIEST,
    ENERGY,
    FREE,
    IDLE,
    LATE,
    MAKESPAN,
    DecoderArrays,
    State,
    decode,
    ground_of,
    schedule_of,
    state_from,
    state_of,
    work_of,
)
from nmsolve.heuristics.schedule.decode import WEIGHTED as WEIGHTED_SUM
from nmsolve.heuristics.schedule.rules import NO_TASTE
from nmsolve.heuristics.schedule.shift import shift_starts
from nmsolve.hw.schedule.evaluate import all_objectives, powered
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import OBJECTIVES, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from tests.schedule_support import random_problem, random_schedule

WEIGHTED = {"objective": "weighted", "weights": (("makespan", 3), ("energy", 2))}
PRICE = np.array([1.0, 0.1, 0.2, 0.3, 0.4])


def decoded(
    problem: ScheduleProblem, state: State, price: np.ndarray = EARLIEST
) -> tuple[DecoderArrays, Schedule]:
    w = work_of(ground_of(problem))
    decode(ground_of(problem), state, w, price, NO_TASTE)
    return w, schedule_of(w)


def some_state(problem: ScheduleProblem, seed: int, free: bool) -> State:
    """A random order that suits the edges, random modes and loads."""
    rng = np.random.default_rng(seed)
    rank, order = rng.random(problem.count), []
    into = [set(problem.edges.source[problem.edges.target == p].tolist()) for p in range(problem.count)]
    while len(order) < problem.count:
        ready = [p for p in range(problem.count) if p not in order and into[p] <= set(order)]
        order.append(min(ready, key=lambda p: rank[p]))
    mode = rng.integers(problem.modes.first[:-1], problem.modes.first[1:])
    state = state_of(np.array(order), np.full(problem.count, FREE) if free else mode)
    state.fresh[:] = rng.random(problem.count) < 0.3
    return state


def values_agree(problem: ScheduleProblem, w: DecoderArrays) -> None:
    answer = schedule_of(w)
    assert schedule_complaint(problem, answer) is None
    assert dict(zip(OBJECTIVES, w.value.tolist(), strict=False)) == all_objectives(problem, answer)
    assert w.value[BUSY] == powered(problem, answer).busy.sum()


def slowly(problem: ScheduleProblem, state: State) -> Schedule:
    """The same in plain Python: tick by tick, with lists of what every unit holds during each of its activities."""
    m, count = problem.modes, problem.count
    mode, start, loaded = state.mode.copy(), np.zeros(count, np.int64), np.zeros(count, bool)
    queues: list[list[tuple[int, dict[str, int]]]] = [[] for _ in range(problem.units.count)]
    busy: dict[int, np.ndarray] = {}
    for p in state.order.tolist():
        k, d = int(m.unit_set[mode[p]]), int(m.item[mode[p]])
        units = [] if k < 0 else problem.sets.of(k).tolist()
        size = int(problem.items.bytes[d]) if d >= 0 else 0
        users = [
            i
            for i in range(count)
            if any(i == q for u in units for q, _ in queues[u]) and m.item[mode[i]] == d
        ]
        last = max(users, key=lambda q: start[q]) if users and d >= 0 and not state.fresh[p] else None
        between = [] if last is None else [
            (u, held) for u in units for held in _behind(queues[u], last)
        ]  # fmt: skip
        fits = all(sum(held.values()) + size <= problem.units.memory[u] for u, held in between)
        loaded[p] = d >= 0 and (last is None or not fits)
        if d >= 0 and not loaded[p]:
            for _, held in between:
                held[f"item {d}"] = size
        load = int(problem.items.load[d]) if loaded[p] else 0
        free = [int(start[q] + m.span[mode[q]]) for u in units for q, _ in queues[u]]
        tick = max(
            [
                int(problem.release[p]),
                int(problem.earliest[p]) + load,
                *(f + load for f in free),
            ]
        )
        for e in np.flatnonzero(problem.edges.target == p).tolist():
            q = int(problem.edges.source[e])
            delay = problem.delay(np.array([e]), mode[[q]], mode[[p]])[0]
            tick = max(tick, int(start[q] + m.span[mode[q]] + delay))
        span, demand = int(m.span[mode[p]]), m.demand[mode[p]]
        while any(
            (busy.get(t, 0 * demand) + demand > problem.capacity)[demand > 0].any()
            for t in range(tick, tick + span)
        ):
            tick += 1
        for t in range(tick, tick + span):
            busy[t] = busy.get(t, 0 * demand) + demand
        start[p] = tick
        for u in units:
            queues[u].append((p, {f"item {d}": size, "working": int(m.working[mode[p]])}))
    return Schedule(mode, start, loaded)


def _behind(queue: list[tuple[int, dict[str, int]]], last: int) -> list[dict[str, int]]:
    """What is held during the activities of a queue behind that of a process."""
    at = [q for q, _ in queue].index(last)
    return [held for _, held in queue[at + 1 :]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 5), st.integers(0, 2))
def test_decoder_equals_a_slow_one(seed: int, processes: int, units: int, resources: int) -> None:
    problem = random_problem(seed, processes, units, resources, **WEIGHTED)
    state = some_state(problem, seed, free=False)
    w, answer = decoded(problem, state)
    slow = slowly(problem, state)
    assert (answer.mode == slow.mode).all() and (answer.loaded == slow.loaded).all()
    assert (answer.start == slow.start).all()
    values_agree(problem, w)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 5), st.integers(0, 2))
def test_modes_that_the_decoder_chooses_are_legal(
    seed: int, processes: int, units: int, resources: int
) -> None:
    problem = random_problem(seed, processes, units, resources, **WEIGHTED)
    state = some_state(problem, seed, free=True)
    w, answer = decoded(problem, state, PRICE)
    values_agree(problem, w)
    again, same = decoded(problem, State(state.order, state.rank, answer.mode, state.fresh))
    assert (same.packed() == answer.packed()).all() and (again.value == w.value).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4))
def test_every_schedule_has_a_state_that_gives_it_or_a_better_one(
    seed: int, processes: int, units: int
) -> None:
    problem = random_problem(seed, processes, units, 0)
    given_one = random_schedule(problem, seed)
    w, earlier = decoded(problem, state_from(problem, given_one))
    values_agree_without_objective(problem, w)
    assert (earlier.start <= given_one.start).all() and (earlier.loaded <= given_one.loaded).all()


def values_agree_without_objective(problem: ScheduleProblem, w: DecoderArrays) -> None:
    found = all_objectives(problem, schedule_of(w))
    assert {name: w.value[list(OBJECTIVES).index(name)] for name in found} == found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 4))
def test_moving_starts_costs_nothing(seed: int, processes: int, units: int) -> None:
    problem = random_problem(seed, processes, units, 0, **WEIGHTED)
    state = some_state(problem, seed, free=False)
    w, _ = decoded(problem, state)
    before = w.value.copy()
    shift_starts(ground_of(problem), state.order, w, 4)
    values_agree(problem, w)
    assert w.value[MAKESPAN] == before[MAKESPAN] and w.value[WEIGHTED_SUM] <= before[WEIGHTED_SUM]
    for goal, place in (("energy", ENERGY), ("idle", IDLE)):
        alone = replace(problem, objective=goal, weights=())
        w, _ = decoded(alone, state)
        shift_starts(ground_of(alone), state.order, w, 4)
        assert w.value[place] <= before[place]
    assert w.value[BUSY] == before[BUSY]


def test_moving_starts_closes_gaps() -> None:
    """Two processes on a unit, the second one late: the first one waits, and the unit is switched on once."""
    gained = 0
    for seed in range(20):
        problem = random_problem(
            seed, 2, 1, 0, release=np.array([0, 40]), ready=None, weight=np.zeros(2, np.int64)
        )
        state = state_of(np.array([0, 1]), problem.modes.first[:-1])
        w, _ = decoded(problem, state)
        before = w.value.copy()
        shift_starts(ground_of(problem), state.order, w, 4)
        gained += w.value[ENERGY] < before[ENERGY]
    assert gained >= 5


@pytest.mark.parametrize("late", [0, 7])
def test_lateness_is_counted(late: int) -> None:
    problem = random_problem(3, 6, 3, 0)
    _, answer = decoded(problem, some_state(problem, 3, free=False))
    tight = random_problem(3, 6, 3, 0, deadline=answer.end(problem) - late)
    w, _ = decoded(tight, some_state(tight, 3, free=False))
    assert w.value[LATE] == 6 * late
