"""The exact models of schedules against every schedule, and against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from schedule_exact_support import Alone, run_alone
from schedule_reference import optimum
from schedule_support import random_problem

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.problem import NEVER
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule import cpsat, exact, mip, turns
from nmsolve.solvers.schedule.data import horizon, schedule_data
from nmsolve.solvers.schedule.exact import ScheduleCpSat, ScheduleHighs, models
from nmsolve.solvers.schedule.power_intervals import MOST_AGAIN, wakings
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.write_model import write_model

WEIGHTS = {"weighted": (("energy", 2), ("idle", 3), ("tardiness", 1))}


def kinds(seed, processes=3, spare=2):
    """A random problem with every objective in turn, ending soon after its least makespan; some deadlines are too tight."""
    rng = np.random.default_rng(seed)
    first = random_problem(seed, processes=processes, units=2 + seed % 2)
    shortest = int(run_alone(ScheduleCpSat(), first).value)
    for name in ("makespan", "tardiness", "idle", "energy", "waste", "moved", "weighted"):
        most = shortest + int(rng.integers(0, spare + 1))
        ceilings = (("makespan", float(most)),)
        if name == "makespan":
            ceilings += (
                (str(rng.choice(["idle", "energy", "waste"])), float(rng.choice([0, 40, 90, 200000]))),
            )
        deadline = np.full(processes, NEVER)
        if rng.random() < 0.3:
            deadline[rng.integers(0, processes)] = shortest - 1
        yield (
            most,
            replace(
                first, objective=name, ceilings=ceilings, deadline=deadline, weights=WEIGHTS.get(name, ())
            ),
        )


@pytest.mark.parametrize("seed", [1, 4, 8, 12, 24])
def test_cp_sat_finds_and_proves_what_trying_everything_finds(seed):
    for ticks, problem in kinds(seed):
        ran = run_alone(ScheduleCpSat(), problem)
        want = optimum(problem, ticks)
        assert (ran.value, ran.low, ran.refused) == (want, want, []), problem.objective


@pytest.mark.parametrize("seed", [2, 12])
def test_no_best_schedule_is_longer_than_the_models_allow(seed):
    """Where gaps count, it can pay to wait until a unit can be switched off."""
    for name in ("energy", "idle", "weighted"):
        problem = random_problem(seed, processes=2, units=2, objective=name, weights=WEIGHTS.get(name, ()))
        ran = run_alone(ScheduleCpSat(), problem)
        assert ran.value == ran.low == optimum(problem, horizon(problem) + 6)


@pytest.mark.parametrize("seed", [11, 12, 20])
def test_both_models_agree(seed):
    for _, problem in kinds(seed, processes=4):
        if problem.objective != "waste":
            one, other = run_alone(ScheduleCpSat(), problem), run_alone(ScheduleHighs(), problem)
            assert (one.value, one.low) == (other.value, other.low) and one.value == one.low, (
                problem.objective
            )


def objective_of_hint(built):
    """The objective of a model with every hinted variable as hinted; None if that breaks a rule."""
    from ortools.sat.python import cp_model

    hinted, fixed, solver = built.model.proto.solution_hint, built.model.clone(), cp_model.CpSolver()
    for number, value in zip(hinted.vars, hinted.values, strict=True):
        fixed.add(fixed.get_int_var_from_proto_index(number) == value)
    return solver.objective_value if solver.status_name(solver.solve(fixed)) == "OPTIMAL" else None


def switching(seed, price):
    """A random problem of energy where every waking costs; the least makespan is its ceiling, or a few ticks more."""
    first = random_problem(seed, processes=3, units=2)
    most = int(run_alone(ScheduleCpSat(), first).value) + 6
    u = first.units
    units = replace(u, switch_energy=np.full_like(u.switch_energy, price), idle=np.maximum(u.idle, u.off))
    return most, replace(first, units=units, objective="energy", ceilings=(("makespan", float(most)),))


@pytest.mark.parametrize("price", [1, 9, 40])
@pytest.mark.parametrize("seed", [1, 4, 12, 13])
def test_spells_say_what_circles_say(seed, price):
    """However many wakings are allowed, as long as the best schedule has no more."""
    ticks, problem = switching(seed, price)
    want = optimum(problem, ticks)
    circles = run_alone(ScheduleCpSat(), problem)
    assert circles.value == circles.low == want
    again = wakings(problem, want)
    for allowed in {MOST_AGAIN, again} - {None}:
        built = cpsat.build(schedule_data(problem), start=circles.answer, below=want, again=allowed)
        assert objective_of_hint(built) == want
        ran = run_alone(ScheduleCpSat(), problem, start=circles.answer)
        assert ran.value == ran.low == want
        free = solve(cpsat.build(schedule_data(problem), again=allowed))
        assert (free.status, free.bound) == ("OPTIMAL", want)


def test_wakings_are_counted_only_where_every_one_costs():
    _, problem = switching(4, 9)
    best = run_alone(ScheduleCpSat(), problem).value
    assert wakings(problem, best) is not None
    assert wakings(problem, np.inf) is None and wakings(problem, best + 9 * (MOST_AGAIN + 1)) is None
    assert wakings(switching(4, 0)[1], best) is None
    assert wakings(replace(problem, objective="idle"), best) is None
    cheap = replace(problem.units, idle=problem.units.off, off=problem.units.off + 1)
    assert wakings(replace(problem, units=cheap), best) is None


@pytest.mark.parametrize("objective", ["makespan", "energy", "waste", "tardiness"])
def test_a_known_schedule_is_where_the_models_begin(objective):
    problem = random_problem(3, objective=objective)
    ran = run_alone(ScheduleCpSat(), problem)
    built = cpsat.build(schedule_data(problem), start=ran.answer, below=ran.value)
    assert objective_of_hint(built) == ran.value
    if objective != "waste":
        twin = mip.build(schedule_data(problem), start=ran.answer)
        again = Schedule.unpacked(twin.mapping(lambda x: bool(x.value)))
        assert (again.start == ran.answer.start).all() and (again.mode == ran.answer.mode).all()


def test_models_are_written_to_files(tmp_path):
    problem = random_problem(5, objective="energy")
    paths = write_model("schedule", *models(problem), tmp_path)
    text = paths[0].read_text()
    assert "starts(" in text and "rule_units" in text and len(paths) == 4
    with pytest.raises(InputError, match="quotient"):
        models(replace(problem, objective="waste"))


def test_the_first_turn_is_short_where_a_better_answer_makes_the_model_smaller(monkeypatch):
    """Without an answer nobody knows how often units are woken again; with one the units' intervals are stated."""
    _, problem = switching(4, 40)
    seen = []

    def build(data, setting, **known):
        seen.append((setting, known["again"] is None))
        return whole_build(data, setting, **known)

    def one_turn(built, solver, name, turn, value):
        seconds.append(turn.time_left())
        status = run_model(built, solver, name, turn, value)
        return "unknown" if len(seconds) == 1 else status

    whole_build, run_model, seconds = cpsat.build, exact.run_model, []
    monkeypatch.setattr(cpsat, "build", build)
    monkeypatch.setattr(exact, "run_model", one_turn)
    context = Alone(problem, 60.0)
    context.should_stop = lambda: False
    ScheduleCpSat().run(problem, context)
    assert seen == [(turns.ORDERS, True), (turns.POWER_INTERVALS, False)]
    assert seconds[0] <= turns.SHORT_TURN < seconds[1]
    assert context.value == context.low


def test_two_workers_prove_the_same():
    for seed in (1, 4):
        _, problem = switching(seed, 9)
        alone = run_alone(ScheduleCpSat(), problem)
        context = Alone(problem, 60.0)
        context.workers = 2
        ScheduleCpSat().run(problem, context)
        assert (context.value, context.low, context.refused) == (alone.value, alone.low, [])


def test_turns_by_orders_are_longer_where_they_prove_and_bounds_do_not():
    gangs = random_problem(1, processes=4, units=3)
    assert (np.diff(gangs.sets.indptr) > 1).any()
    settings = turns.settings_of(gangs)
    assert settings == (turns.GANGS, turns.BOUNDS)
    lengths = [turns.seconds_of(k, settings, 1000.0) for k in range(4)]
    assert lengths == [2 * turns.FIRST_TURN, turns.FIRST_TURN, 4 * turns.FIRST_TURN, 2 * turns.FIRST_TURN]
    assert turns.seconds_of(0, settings, 10.0) == 10.0, "too little would be left for the next turn"
    one = replace(
        gangs.sets, indptr=np.arange(2), members=np.zeros(1, np.int64), hops=np.zeros((1, 1), np.int64)
    )
    assert (
        turns.settings_of(Fake(one, 4))[0]
        is turns.settings_of(Fake(gangs.sets, turns.FEW + 1))[0]
        is turns.ORDERS
    )


class Fake(NamedTuple):
    """What settings look at."""

    sets: object
    count: int
    objective: str = "makespan"
    resources: tuple = ()
