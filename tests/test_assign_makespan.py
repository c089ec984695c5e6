"""Makespans and loads: bounds and their certificates, parts, the model of schedules, and the local search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from assign_reference import Reference, problem_of
from assign_support import answers, optimum, orders, random_problem, run_alone
from hypothesis import given, settings
from hypothesis import strategies as st

import nmsolve.solvers.assignment.paths as paths
from nmsolve.check.assignment.counting import check
from nmsolve.heuristics.assignment.compiled_values import ground_of, state_of, values, work_of
from nmsolve.heuristics.assignment.list_schedule import ListSchedule, ListSearch, first_assignments
from nmsolve.heuristics.assignment.orders import earliest_finish, rank_by
from nmsolve.hw.assignment.evaluate import all_objectives, objective, schedule_of
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.model.bound import Bound
from nmsolve.model.errors import CertificateError
from nmsolve.solvers.assignment import schedule_model
from nmsolve.solvers.assignment.api import solve_assignment
from nmsolve.solvers.assignment.bounds import AssignBounds, bounds
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.assignment.makespan import MakespanCpSat
from nmsolve.solvers.assignment.windows import clean_cuts, part_of
from nmsolve.solvers.search.cpsat import solve

#: Few orders and groups, so that everything can be tried.
FEW_ORDERS, FEW_GROUPS = 8, 3


def small(seed, **kind):
    """A problem with few answers and orders: the first of some seeds."""
    for n in range(100):
        problem = random_problem(1000 * seed + n, operators=4, **kind)
        if problem.groups.count <= FEW_GROUPS and len(orders(problem)) <= FEW_ORDERS:
            return problem
    raise AssertionError("no small problem")


def schedules(problem):
    """All legal answers with all orders, and what each is worth."""
    for answer in answers(problem):
        for rank in orders(problem):
            one = Assignment(answer.unit, answer.fused, rank)
            yield one, objective(problem, one)


# ------------------------------------------------------------------------------------------------ bounds


@settings(max_examples=4, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.booleans(), st.sampled_from([2, 48]))
def test_no_schedule_is_shorter_than_its_paths(seed, channels, large):
    problem = small(seed, objective="makespan", channels=channels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "LARGE", large)
        patch.setattr(paths, "SHORT", 4)
        known = paths.bounds_of(paths.program_of(problem))
        (path,) = (b for b in bounds(problem) if b.certificate["kind"] == "path")
        again = check(problem, path, 1.0)
        assert again.ok and again.value == path.value == known.value
    for answer, value in list(schedules(problem))[::3]:
        assert known.value <= value
        schedule, inside = schedule_of(problem, answer), set()
        for k in np.flatnonzero(answer.fused).tolist():
            inside |= set(problem.groups.of(k).tolist())
            assert known.fused[k, answer.unit[problem.groups.of(k)[0]]] <= value
        for i in set(range(problem.count)) - inside:
            j = int(answer.unit[i])
            assert known.alone[i, j] <= value and known.head[i, j] <= schedule.finish[i]
            assert schedule.finish[i] + known.tail[i, j] <= value


@pytest.mark.parametrize("objective", list(OBJECTIVES))
@pytest.mark.parametrize("kind", [{}, {"together": True}, {"shared": True}])
def test_bounds_by_counting_hold_and_are_recomputed(objective, kind):
    for seed in range(3):
        problem = small(seed, objective=objective, **kind)
        best = optimum(problem)
        ran = run_alone(AssignBounds(), problem)
        assert ran.bounds and 0 < ran.bound() <= best
        for bound in ran.bounds:
            again = check(problem, bound, 1.0)
            assert again.ok and again.value == bound.value
            assert not check(problem, replace(bound, value=bound.value + 1), 1.0).ok


def test_forged_certificates_of_counting_are_refused():
    problem = small(1, objective="makespan")
    load, path = bounds(problem)
    weights, cuts = load.certificate["weights"], path.certificate["cuts"]
    parted = problem.groups.of(0)[0] if problem.groups.count else None
    forged = [
        (load, {"weights": weights[:-1]}),
        (load, {"weights": [0] * len(weights)}),
        (load, {"weights": [-1, *weights[1:]]}),
        (load, {"weights": [True, *weights[1:]]}),
        (load, {"weights": [0.5, *weights[1:]]}),
        (load, {"weights": "many"}),
        (load, {"kind": "sum"}),
        (load, {"kind": ["load"]}),
        (path, {"cuts": None}),
        (path, {"cuts": [0, 0]}),
        (path, {"cuts": cuts[::-1]}),
        (path, {"cuts": [problem.count]}),
        (path, {"cuts": [0.0]}),
    ]
    for bound, lie in forged:
        with pytest.raises(CertificateError):
            check(problem, replace(bound, certificate={**bound.certificate, **lie}), 1.0)
    assert parted is None or int(parted) not in cuts
    assert (
        not check(problem, Bound(path.value, "counting", certificate={"kind": "path", "cuts": []}), 1.0).value
        > path.value
    )


def test_cuts_that_are_not_one_after_the_other_prove_nothing():
    problem = diamond()
    with pytest.raises(CertificateError, match="before the next"):
        check(problem, Bound(1.0, "counting", certificate={"kind": "path", "cuts": [1, 2]}), 1.0)


def diamond():
    """``@in`` -> a, b -> ``@out`` on two units, without groups: a and b can run at the same time."""
    problem = random_problem(0, operators=2, objective="makespan", channels=False)
    none = np.zeros((0, problem.units.count), np.int64)
    flows, units = problem.flows, problem.units.count
    moved = np.zeros((3, units, units), np.int64)
    return replace(
        problem,
        time=np.array([[0] + [-1] * (units - 1), [5] * units, [7] * units, [0] + [-1] * (units - 1)]),
        energy=np.array([[0] + [-1] * (units - 1), [1] * units, [1] * units, [0] + [-1] * (units - 1)]),
        groups=replace(problem.groups, indptr=np.zeros(1, np.int64), members=np.zeros(0, np.int64), time=none, energy=none),
        flows=replace(
            flows, names=("x", "a", "b"), source=np.array([0, 1, 2]), indptr=np.array([0, 2, 3, 4]),
            targets=np.array([1, 2, 3, 3]), until=np.array([1, 2, 3, 3]), since=np.array([0, 1, 2]),
            bytes=np.ones(3, np.int64), kept=np.zeros(3, bool), time=moved, energy=moved,
        ),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize(
    "kind",
    [
        {"channels": False},
        {"channels": False, "limited": True, "together": True},
        {"channels": False, "shared": True, "ceilings": (("energy", 90.0), ("load", 60.0))},
    ],
)
def test_without_channels_the_model_of_schedules_is_exact(kind):
    for seed in range(3):
        problem = small(seed, objective="makespan", **kind)
        best, program = optimum(problem), paths.program_of(problem)
        built = schedule_model.build(assign_data(problem), program, paths.bounds_of(program))
        end = solve(built, seconds=20)
        if end.core is None:
            assert end.status == "INFEASIBLE" and best == float("inf")
            continue
        answer = Assignment.unpacked(problem, end.core)
        assert assignment_complaint(problem, answer) is None
        assert end.bound == best == objective(problem, answer)
        below = schedule_model.build(
            assign_data(problem), program, paths.bounds_of(program), start=answer, below=best
        )
        assert solve(below, seconds=20).status == "INFEASIBLE"


def test_the_engine_proves_no_more_than_is_true_and_finds_what_is_best():
    close = 0
    for seed in range(4):
        problem = small(seed, objective="makespan", ceilings=(("latency", 300.0),) if seed % 2 else ())
        best = optimum(problem)
        ran = run_alone(MakespanCpSat(), problem)
        assert ran.bound() <= best <= ran.value
        close += ran.bound() == ran.value
    assert close >= 3  # a channel may make tensors wait that the model does not


def test_no_part_takes_longer_alone_than_in_a_schedule():
    problem = small(3, objective="makespan")
    program = paths.program_of(problem)
    assert program.cuts and not program.loose
    for answer, _ in list(schedules(problem))[::25]:
        finish = schedule_of(problem, answer).finish
        for number, block in enumerate(program.blocks):
            first = program.cuts[number - 1] if number else None
            last = program.cuts[number] if number < len(program.cuts) else None
            units = tuple(None if i is None else int(answer.unit[i]) for i in (first, last))
            part = part_of(program, first, block, units)
            least = bounds(part.problem)
            since = 0 if first is None else finish[first]
            assert max(b.value for b in least) <= finish[block].max() - since


def test_side_operators_that_are_cheap_do_not_keep_a_program_from_being_cut(monkeypatch):
    problem = diamond()
    assert paths.program_of(problem).cuts == [0, 3]
    monkeypatch.setattr(paths, "LARGE", 1)
    monkeypatch.setattr(paths, "SHORT", 2)
    program = paths.program_of(problem)
    assert program.cuts == [0, 2, 3] and program.loose == [1] and program.blocks == [[0], [2], [3]]
    assert paths.bounds_of(program).value == 7
    assert clean_cuts(program) == [0, 2, 3]


def test_engines_for_makespans_say_what_they_do_not_take():
    assert "makespan" in MakespanCpSat().refuses(random_problem(0, objective="load"))
    assert "load" in ListSchedule().refuses(random_problem(0))
    problem = small(0, objective="makespan")
    back = replace(problem.flows, source=problem.flows.source.copy())
    back.source[0] = problem.count - 1
    back.since[0] = 0
    looped = replace(problem, flows=replace(back, kept=np.zeros(back.count, bool)), groups=diamond().groups)
    assert "loop" in MakespanCpSat().refuses(looped)


# ------------------------------------------------------------------------------------------------ search


@pytest.mark.parametrize(
    "kind", [{}, {"shared": True}, {"channels": False, "limited": True, "together": True}]
)
def test_kernels_say_what_the_evaluator_and_the_rules_say(kind):
    rng = np.random.default_rng(4)
    for seed in range(6):
        problem = random_problem(
            seed, operators=9, objective="makespan", ceilings=(("latency", 1e9),), **kind
        )
        ground = ground_of(problem)
        work, result = work_of(ground), np.zeros(2)
        for _ in range(6):
            unit = np.array([rng.choice(np.flatnonzero(row >= 0)) for row in problem.time])
            if problem.together is not None:
                own = np.flatnonzero(problem.together >= 0)
                unit[own] = rng.choice(np.flatnonzero((problem.time[own] >= 0).all(axis=0)))
            rank = rank_by(problem, rng.random(problem.count), np.zeros(problem.count))
            values(ground, state_of(unit, rank, rng.integers(0, 2, problem.groups.count)), work, result)
            answer = Assignment(unit, work.fused > 0, rank)
            assert all_objectives(problem, answer) == dict(zip(OBJECTIVES, work.value.tolist(), strict=True))
            assert (assignment_complaint(problem, answer) is None) == bool(result[1])


@pytest.mark.parametrize(
    "kind",
    [
        {"objective": "makespan"},
        {"objective": "makespan", "ceilings": (("energy", 80.0),)},
        {"objective": "load", "shared": True},
        {"objective": "latency", "limited": True, "together": True},
    ],
)
def test_the_search_finds_the_best_of_small_problems(kind):
    for seed in range(3):
        problem = small(seed, **kind)
        best = optimum(problem)
        ran = run_alone(ListSchedule(), problem)
        assert ran.value == best and (best < float("inf") or ran.best is None)


def test_equal_seeds_search_alike():
    problem = random_problem(2, operators=12, objective="makespan")

    def found():
        search = ListSearch(problem, 7)
        search.begin(first_assignments(problem))
        search.improve(50, 0.1, run_alone(AssignBounds(), problem))
        return search.packed()

    assert (found() == found()).all()


def test_the_first_schedule_starts_in_gaps_and_keeps_company():
    problem = random_problem(3, operators=9, objective="makespan", together=True)
    unit, rank = earliest_finish(problem)
    answer = Assignment(unit, np.zeros(problem.groups.count, bool), rank)
    assert assignment_complaint(problem, answer) is None
    assert earliest_finish(diamond())[0][1] != earliest_finish(diamond())[0][2]


@pytest.mark.parametrize("seed", [500504, 500545])
def test_times_beyond_floats_are_no_contradiction(seed):
    """Of a schedule whose end a float rounds, the model knows no better one; it was called infeasible with a schedule known."""
    problem = problem_of(seed)
    best = Reference(problem).optimum()
    assert best > 2**53
    found = solve_assignment(
        problem, time_limit=4.0, engines=["assign-counting", "list-schedule", "makespan-cpsat"]
    )
    assert not [e.text for e in found.events if e.kind == "error" and "rejected" not in e.text]
    assert found.objective == float(best) and found.bound <= best
