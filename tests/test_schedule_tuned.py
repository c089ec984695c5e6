"""Genetic and tabu search: legal, never below the best there is, equal to it in tiny problems, the same for equal seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from schedule_reference import optimum
from search_fakes import QuietContext

from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.schedule import genetic, tabu
from nmsolve.heuristics.schedule.genetic import ActivityLists
from nmsolve.heuristics.schedule.genetic_serial import LATE, packed_needs, projects_of, serial
from nmsolve.heuristics.schedule.tabu import TabuBlocks
from nmsolve.heuristics.schedule.tabu_blocks import BEST, NOW, new_work
from nmsolve.heuristics.schedule.tabu_shop import balance, construct, new_state, reevaluate, shop_of
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.api import ScheduleChecker
from tests.schedule_support import random_problem, whole
from tests.strength.counted import Counted


def project(seed: int, processes: int, resources: int = 2) -> ScheduleProblem:
    """Processes without units and choices, some of which take no time; delays, releases and resources."""
    p = random_problem(seed, processes, resources=resources)
    rng, n = np.random.default_rng(seed), processes
    m = replace(
        p.modes, first=np.arange(n + 1), span=rng.integers(0, 6, n), unit_set=np.full(n, -1), item=np.full(n, -1),
        demand=rng.integers(0, 4, (n, resources)), energy=np.zeros(n, np.int64), working=np.zeros(n, np.int64),
    )  # fmt: skip
    return replace(p, modes=m, capacity=rng.integers(3, 6, resources), release=rng.integers(0, 4, n))


def shop(seed: int, processes: int, units: int = 3) -> ScheduleProblem:
    """Processes on one of one to three units, with delays by distance, conversion, releases; items that load at once."""
    rng = np.random.default_rng(seed)
    p = random_problem(seed, processes, units, resources=0, release=rng.integers(0, 4, processes))
    own = [rng.choice(units, rng.integers(1, min(3, units) + 1), replace=False) for _ in range(processes)]
    count = sum(map(len, own))
    unit = np.concatenate(own).astype(np.int64)
    m = replace(
        p.modes, first=np.cumsum([0, *map(len, own)]), span=rng.integers(1, 6, count), unit_set=unit, item=np.full(count, -1),
        demand=np.zeros((count, 0), np.int64), energy=np.zeros(count, np.int64), working=np.zeros(count, np.int64),
    )  # fmt: skip
    sets = replace(p.sets, indptr=np.arange(units + 1), members=np.arange(units), hops=p.units.hops)
    items = replace(
        p.items, names=tuple(f"w{u}" for u in range(units)), unit_set=np.arange(units), bytes=np.ones(units, np.int64),
        load=np.zeros(units, np.int64), energy=np.zeros(units, np.int64),
    )  # fmt: skip
    m = replace(m, item=np.where(rng.random(count) < 0.3, unit, -1))
    return replace(p, modes=m, sets=sets, items=items)


def searched(
    engine, problem: ScheduleProblem, seed: int = 1, stops: float = 6, low: float = 0.0, **more: object
) -> Counted:
    """The context after a run; every offer is checked as the run of a search checks it."""
    checker = ScheduleChecker(problem)

    def value(packed: np.ndarray) -> float:
        assert checker.complaint(packed) is None, checker.complaint(packed)
        return checker.score(packed)

    context = Counted(value, seed=seed, stops=stops, **more)
    context.low = low
    assert engine.refuses(problem) is None, engine.refuses(problem)
    engine.run(problem, context)
    return context


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small populations and slices: tests count questions, not seconds."""
    monkeypatch.setattr(genetic, "LISTS", 12)
    monkeypatch.setattr(genetic, "STALL", 60)
    monkeypatch.setattr(genetic, "EFFORT", 1_000)
    monkeypatch.setattr(tabu, "STALL", 100)
    monkeypatch.setattr(tabu, "EFFORT", 2_000)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(0, 30), st.booleans())
def test_answers_are_legal(seed: int, processes: int, resources: int, units: bool) -> None:
    """Thirty resources take more than one word. Tabu search refuses the few shops whose memories may be too small."""
    problem = shop(seed, processes, 1 + resources % 7) if units else project(seed, processes, resources)
    engine = TabuBlocks() if units else ActivityLists()
    assume(engine.refuses(problem) is None)
    context = searched(engine, problem, stops=60)
    assert context.best is not None


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_tiny_problems_are_solved(seed: int, units: bool) -> None:
    problem = shop(seed, 3, 2) if units else project(seed, 4)
    assert searched(TabuBlocks() if units else ActivityLists(), problem, stops=100).value == optimum(
        problem, 24
    )


@pytest.mark.parametrize("units", [False, True])
def test_equal_seeds_give_equal_answers(units: bool) -> None:
    problem = shop(5, 30, 4) if units else project(5, 30)
    engine = TabuBlocks() if units else ActivityLists()
    one, two = (searched(engine, problem, seed=7, stops=60) for _ in range(2))
    assert np.array_equal(one.best, two.best) and one.moves == two.moves


@pytest.mark.parametrize(("name", "least"), [("j30_13_1.rcp", 58), ("la16_edata.fjs", 892)])
def test_published_optima_are_met_and_not_beaten(
    name: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    problem = load_schedule(f"tests/data/schedule/{name}").problem
    engine = ActivityLists() if name.endswith("rcp") else TabuBlocks()
    context = searched(engine, problem, stops=600, low=least)
    assert least <= context.value <= 1.03 * least


@pytest.mark.parametrize("units", [False, True])
def test_better_schedules_of_others_are_taken(units: bool) -> None:
    """A run that begins where a long one ended is no worse after the first slices."""
    problem = shop(3, 40, 4) if units else project(3, 40)
    engine = TabuBlocks() if units else ActivityLists()
    long = searched(engine, problem, stops=400)
    assert searched(engine, problem, seed=9, stops=30, start=long.best).value <= long.value


@pytest.mark.parametrize("units", [False, True])
def test_a_search_ends_at_the_bound(units: bool) -> None:
    problem = shop(3, 10, 4) if units else project(3, 10)
    engine = TabuBlocks() if units else ActivityLists()
    context = QuietContext()
    context.low = 10**6
    engine.run(problem, context)  # would go on for ever


def test_refusals() -> None:
    lists, blocks = ActivityLists(), TabuBlocks()
    one, other = project(1, 8), shop(1, 8)
    assert lists.refuses(other) is not None and blocks.refuses(one) is not None
    for engine, problem in ((lists, one), (blocks, other)):
        late = replace(problem, deadline=np.full(8, 200))
        assert "deadlines" in str(engine.refuses(late))
        assert "makespan" in str(engine.refuses(replace(problem, objective="energy")))
        assert "makespan" in str(engine.refuses(replace(problem, ceilings=(("energy", 5.0),))))
    slow = replace(other, items=replace(other.items, load=np.ones(3, np.int64)))
    assert "load" in str(blocks.refuses(slow))
    small = replace(
        other,
        units=replace(other.units, memory=whole(0, 9, 9)),
        modes=replace(other.modes, item=other.modes.item * 0 - 1),
    )
    assert "memories" in str(blocks.refuses(small))
    long = replace(one, modes=replace(one.modes, span=one.modes.span + 2**20))
    assert "ticks" in str(lists.refuses(long))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 30))
def test_serial_generation_starts_everything_as_early_as_it_can(
    seed: int, processes: int, resources: int
) -> None:
    """Against ticks counted one by one."""
    problem = project(seed, processes, resources)
    order = problem.order
    forward, _ = projects_of(problem, order)
    free = np.repeat(forward.room[:, None], 200, axis=1).copy()
    end = np.zeros(processes, np.int64)
    last = serial(forward, np.arange(processes), end, free, 150)
    used = np.zeros((200, resources), np.int64)
    made = {}
    for i, p in enumerate(order.tolist()):
        t, d = int(max(problem.release[p], problem.earliest[p])), int(problem.modes.span[p])
        for e in np.flatnonzero(problem.edges.target == p).tolist():
            t = max(t, made[int(problem.edges.source[e])] + int(problem.edges.convert[e]))
        while ((used[t : t + d] + problem.modes.demand[p]) > problem.capacity).any():
            t += 1
        used[t : t + d] += problem.modes.demand[p]
        made[p] = t + d
        assert end[i] == t + d
    assert last == max(made.values()) and (free == forward.room[:, None]).all()
    assert serial(forward, np.arange(processes), end, free, last - 1) == LATE
    assert (free == forward.room[:, None]).all()


def test_needs_of_many_resources_take_several_words() -> None:
    need, room, guard = packed_needs(np.full((3, 20), 5), np.full(20, 9))
    assert need.shape == (2, 3) and room.shape == guard.shape == (2,)
    assert all(int(g).bit_count() in (8, 12) for g in guard)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.integers(1, 5))
def test_what_moves_give_is_known_exactly_before(seed: int, processes: int, units: int) -> None:
    """The kernel's own estimate of the best move is what the move gives, without delays."""
    problem = shop(seed, processes, units)
    none = np.zeros(problem.edges.count, np.int64)
    problem = replace(problem, edges=replace(problem.edges, bytes=none, convert=none))
    s = shop_of(problem, problem.order)
    a, best, w, rng = new_state(s), new_state(s), new_work(s), new_rng(seed)
    balance(s, a, rng, 2, 5, 1)
    w.counts[[NOW, BEST]] = construct(s, a, rng, 0.5, True)
    before = w.counts[NOW]
    assert before == a.end.max() and (a.tail <= before).all()
    for _ in range(20):
        if not tabu.tabu(s, a, best, w, rng, 1, 10**6):
            break
        picked = w.pick if w.pick[0] >= 0 else w.other
        assert picked[3] == w.counts[NOW] == reevaluate(s, a)


def test_queues_in_a_circle_are_noticed() -> None:
    problem = shop(1, 2, 1)
    edges = replace(problem.edges, source=whole(0), target=whole(1), bytes=whole(0), convert=whole(0))
    s = shop_of(replace(problem, edges=edges), whole(0, 1))
    a = new_state(s)
    a.mode[:], a.span[:] = s.mode_at[:-1], 1
    a.queue[0, :2], a.length[0] = (1, 0), 2
    assert reevaluate(s, a) == -1
    a.queue[0, :2] = (0, 1)
    assert reevaluate(s, a) == 2 + int(s.release[0]) or reevaluate(s, a) > 0


def test_even_loads() -> None:
    """Ten processes of 4 ticks anywhere on two units, after one of 8 that one unit takes only."""
    problem = shop(2, 30, 3)
    s = shop_of(problem, problem.order)
    a, rng = new_state(s), new_rng(1)
    balance(s, a, rng, 3, 50, 3)
    loads = np.bincount(s.unit[a.mode], s.span[a.mode], minlength=3)
    assert (loads == a.load).all()
    tried = np.random.default_rng(0)
    first, count = s.mode_at[:-1], np.diff(s.mode_at)
    for _ in range(200):
        mode = first + tried.integers(0, count)
        assert np.bincount(s.unit[mode], s.span[mode], minlength=3).max() >= loads.max()


def test_the_packed_schedule_is_the_best_one() -> None:
    problem = shop(4, 20, 3)
    context = searched(TabuBlocks(), problem, stops=50)
    answer = Schedule.unpacked(context.best)
    assert schedule_complaint(problem, answer) is None and int(answer.end(problem).max()) == context.value
