"""Incumbent, budget and portfolio in one process: what is accepted, what becomes an event, when it ends."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest
from search_fakes import Script, ToyChecker, value

from nmsolve.model import clock
from nmsolve.model.bound import Bound, meets
from nmsolve.model.errors import InputError
from nmsolve.model.stop import Stop, unbroken
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.keeping import Keeper
from nmsolve.solvers.search.portfolio import PATIENCE, Portfolio, Step


def make(seconds=5.0, observers=(), target_gap=0.0, lattice=1.0):
    checker, budget = ToyChecker(lattice=lattice), Stop(seconds)
    return checker, budget, Incumbent(checker, budget, observers, target_gap)


def run(*steps, seconds=5.0, workers=1, **options):
    checker, budget, incumbent = make(seconds, **options)
    portfolio = Portfolio(checker, incumbent, budget, workers=workers)
    portfolio.run([s if isinstance(s, Step) else Step(s) for s in steps])
    return incumbent, portfolio


def kinds(incumbent, kind):
    return [e for e in incumbent.events if e.kind == kind]


def test_only_strict_improvements_are_taken_and_every_one_is_an_event():
    seen = []
    _, _, incumbent = make(observers=[seen.append])
    assert [incumbent.offer("a", value(v), "m") for v in (20, 30, 20, 10)] == [True, False, False, True]
    assert [(e.kind, e.objective, e.engine, e.move) for e in seen] == [
        ("incumbent", 20, "a", "m"),
        ("incumbent", 10, "a", "m"),
    ]
    assert seen == list(incumbent.events)
    solution, objective = incumbent.best()
    assert objective == 10 and solution.tolist() == [5, 0, 0] and incumbent.lifted.tolist() == [10, 0, 0]
    assert not solution.flags.writeable
    share = incumbent.shares()[0]
    assert (share.offers, share.incumbents, share.best, share.gain) == (4, 2, 10, 10)


def test_an_offer_is_copied_so_that_its_engine_may_go_on_writing():
    _, _, incumbent = make()
    mine = value(10)
    incumbent.offer("a", mine)
    mine[:] = 99
    assert incumbent.best()[0].tolist() == [5, 0, 0]


@pytest.mark.parametrize("bad", [[-1, 0, 0], [1, 2], [[1, 2, 3]], [0.5, 1.0, 2.0], []])
def test_infeasible_or_malformed_offers_are_rejected_with_a_reason(bad):
    _, _, incumbent = make()
    assert not incumbent.offer("a", np.array(bad))
    assert incumbent.best() == (None, math.inf)
    assert "rejected" in kinds(incumbent, "error")[0].text


def test_an_engine_that_floods_bad_offers_fills_no_log():
    _, _, incumbent = make()
    for _ in range(100):
        incumbent.offer("a", np.array([-1, 0, 0]))
    assert len(incumbent.events) == 3 and incumbent.shares()[0].offers == 100


def test_bounds_are_kept_per_method_and_scope_and_the_best_full_one_counts():
    _, _, incumbent = make()
    incumbent.offer("h", value(20))
    assert incumbent.raise_bound("a", Bound(4, "star"))
    assert not incumbent.raise_bound("b", Bound(3, "gl"))
    assert incumbent.raise_bound("b", Bound(18, "gl", "placement"))
    assert incumbent.raise_bound("a", Bound(6, "star"))
    assert not incumbent.raise_bound("a", Bound(5, "star"))
    assert incumbent.bound == 6
    assert [(b.method, b.scope, b.value) for b in incumbent.bounds] == [
        ("star", "full", 6), ("gl", "full", 3), ("gl", "placement", 18)
    ]  # fmt: skip
    incumbent.offer("h", value(16))
    assert all(b.scope == "full" for b in incumbent.bounds)


@pytest.mark.parametrize("wrong", [30.0, math.nan, -math.inf, math.inf, 20.1])
def test_an_impossible_bound_costs_its_engine_all_its_bounds(wrong):
    _, _, incumbent = make()
    incumbent.offer("h", value(20))
    incumbent.raise_bound("a", Bound(15, "good"))
    incumbent.raise_bound("b", Bound(4, "other"))
    assert not incumbent.raise_bound("a", Bound(wrong, "bad"))
    assert incumbent.bound == 4
    assert "engine error" in kinds(incumbent, "error")[0].text
    assert not incumbent.raise_bound("a", Bound(5, "late"))
    assert incumbent.shares()[1].bound is None


def test_a_bound_that_a_later_solution_contradicts_is_dropped():
    _, _, incumbent = make()
    incumbent.raise_bound("a", Bound(30, "wrong"))
    incumbent.raise_bound("b", Bound(4, "right"))
    assert incumbent.offer("h", value(20))
    assert incumbent.bound == 4 and len(kinds(incumbent, "error")) == 1
    assert kinds(incumbent, "incumbent")[0].bound == 4


def test_infeasibility_is_believed_until_a_solution_turns_up():
    _, _, incumbent = make()
    assert incumbent.raise_bound("a", Bound(math.inf, "cp", "full", {"status": "infeasible"}))
    assert incumbent.infeasible and incumbent.reached
    assert incumbent.offer("h", value(20))
    assert not incumbent.infeasible and kinds(incumbent, "error")


def test_a_bound_within_rounding_or_less_than_a_lattice_step_below_proves_optimality():
    for lattice, bound, optimal in (
        (1.0, 19.2, True),
        (1.0, 19.0, False),
        (2.0, 18.5, True),
        (0.0, 19.9, False),
    ):
        _, _, incumbent = make(lattice=lattice)
        incumbent.offer("h", value(20))
        incumbent.raise_bound("a", Bound(bound, "x"))
        assert incumbent.optimal is optimal, (lattice, bound)
        assert incumbent.bound == (20 if optimal else bound)
    _, _, incumbent = make(lattice=0.0)
    incumbent.offer("h", value(20))
    incumbent.raise_bound("a", Bound(20 - 5e-8, "x"))
    assert incumbent.optimal


def test_no_bound_meets_an_objective_that_is_not_finite():
    """``no plan`` is written as infinity; a finite value is never as good as that, and infinity proves nothing about itself."""
    assert not meets(5.0, math.inf) and not meets(math.inf, math.inf) and not meets(5.0, math.inf, step=1.0)
    assert meets(5.0, 5.0) and meets(math.inf, 5.0)


def test_an_objective_of_zero_needs_no_proof():
    _, _, incumbent = make()
    incumbent.offer("h", value(0))
    assert incumbent.optimal and incumbent.has_bound and incumbent.bound == 0


def test_a_failing_observer_is_dropped_and_costs_nothing():
    good = []

    def broken(event):
        raise OSError("pipe")

    _, _, incumbent = make(observers=[broken, good.append])
    assert incumbent.offer("a", value(10)) and incumbent.offer("a", value(8))
    assert [e.kind for e in good] == ["note", "incumbent", "incumbent"]


def test_plan_runs_in_order_and_ends_when_nothing_is_left():
    incumbent, portfolio = run(Script(("offer 20", "bound 4"), "a"), Script(("offer 10",), "b"))
    assert incumbent.objective == 10 and incumbent.bound == 4
    assert portfolio.endings["a"].kind == portfolio.endings["b"].kind == "done"
    assert [e.engine for e in kinds(incumbent, "engine")] == ["a", "a", "b", "b"]


def test_the_run_ends_when_the_gap_is_reached():
    incumbent, portfolio = run(
        Script(("offer 20", "bound 20", "until-stop"), "a"), Script(("offer 10",), "never")
    )
    assert incumbent.optimal and "never" not in portfolio.endings
    incumbent, _ = run(Script(("offer 20", "bound 19", "until-stop"), "a"), target_gap=0.05)
    assert not incumbent.optimal and incumbent.reached


def test_an_engine_that_raises_is_reported_and_the_next_one_runs():
    incumbent, portfolio = run(Script(("offer 20", "error"), "a"), Script(("offer 10",), "b"))
    assert incumbent.objective == 10 and portfolio.endings["a"].kind == "failed"
    assert "ZeroDivisionError: as scripted" in kinds(incumbent, "error")[0].text
    assert incumbent.shares()[0].status.startswith("failed")


def test_unspent_time_goes_to_the_later_steps_and_shares_are_kept():
    start = time.monotonic()
    run(Step(Script(("sleep 0.05",), "a"), 0.5), Step(Script(("until-stop",), "b"), 0.25),
        Step(Script(("until-stop",), "c"), 0.25), seconds=0.65)  # fmt: skip
    assert 0.55 < time.monotonic() - start < 5


def test_repeatable_steps_run_again_with_other_seeds_until_they_are_given_up():
    incumbent, _ = run(Step(Script(("walk 3",), "w"), repeat=True), seconds=60)
    moves = kinds(incumbent, "incumbent")
    assert len(moves) > 3 and incumbent.shares()[0].offers >= 3 * PATIENCE
    again, _ = run(Step(Script(("walk 3",), "w"), repeat=True), seconds=60)
    assert [e.objective for e in kinds(again, "incumbent")] == [e.objective for e in moves]
    assert (again.lifted == incumbent.lifted).all()


def test_a_busy_machine_keeps_back_more(monkeypatch):
    """As many wall seconds as the CPU seconds that are needed take, and what the first answer took to write; within bounds."""
    for pace, reserve, kept in ((1.0, 1.0, 1.0), (3.0, 1.0, 3.0), (90.0, 1.0, 12.0), (90.0, 20.0, 20.0)):
        monkeypatch.setattr(clock, "pace", lambda pace=pace: pace)
        stop = Stop(60, reserve=reserve)
        assert stop.limit - stop.deadline == pytest.approx(kept)
    stop.keep_back(2.0)
    assert stop.limit - stop.deadline == pytest.approx(22.0)
    stop.keep_back(1000.0)
    assert stop.left() > 25


def test_there_is_an_answer_however_late_it_is():
    """Loading took all of the limit, or a signal came: what takes milliseconds runs all the same, until there is an answer."""
    checker, budget, incumbent = make(1e-9)
    steps = [
        Step(Script((f"offer {k}",), name), quick=name != "slow")
        for k, name in ((5, "slow"), (20, "a"), (10, "b"))
    ]
    Portfolio(checker, incumbent, budget).run(steps)
    assert budget.over() and incumbent.objective == 20
    incumbent = make(1e-9)[2]
    budget.interrupt()
    Portfolio(checker, incumbent, budget).run(steps)
    assert incumbent.objective == 20


def test_once_the_time_is_over_the_last_answer_alone_is_written():
    """The run writes it at once; to write the one before takes time that is not there. An interrupt still writes it."""
    written, (_, over, found) = [], make(1e-9)
    found.offer("a", value(10))
    keeper = Keeper(found, over, lambda: written.append("late"))
    keeper.look()
    assert over.over() and not written
    keeper.keep()
    _, stop, found = make(60.0)
    found.offer("a", value(10))
    Keeper(found, stop, lambda: written.append("in time")).look()
    assert written == ["late", "in time"]


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_time_limit_must_be_positive(seconds):
    with pytest.raises(InputError, match="time limit"):
        Stop(seconds)


def test_first_ctrl_c_sets_the_flag_and_the_second_aborts():
    budget = Stop(60)
    before = signal.getsignal(signal.SIGINT)
    with budget:
        signal.raise_signal(signal.SIGINT)
        assert budget.interrupted and budget.over()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_waits_until_the_answer_is_written():
    done = []
    with Stop(60), pytest.raises(KeyboardInterrupt):
        with unbroken():
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
            done.append("written")
        done.append("not reached")
    assert done == ["written"]
    with unbroken():  # outside a run, as functions write
        pass


@pytest.mark.parametrize("child", [False, True])
def test_an_engine_that_its_part_of_the_time_cut_off_without_an_answer_says_so(child):
    """It is not "done"; nor is one that had something to say. One that ended by itself is, with a word if it offered nothing."""
    early, spoke = Script(("sleep 0.01",), "early"), Script(("offer 9", "until-stop"), "spoke")
    steps = [Step(early), *(Step(one, 0.2, child=child) for one in (spoke, Script(("until-stop",), "mute")))]
    incumbent, _ = run(*steps, Step(Script(("offer 3",), "last")), seconds=15.0 if child else 2.0)
    status = {o.engine: o.status for o in incumbent.shares()}
    assert status["mute"].startswith("stopped: its part of the time")
    assert status["spoke"].startswith("stopped: given up after ")
    assert status["early"] == "done: it offered nothing" and status["last"] == "done"
    assert [e.engine for e in kinds(incumbent, "note") if "its part" in e.text] == ["mute"]


def test_an_engine_that_the_end_of_all_time_stopped_before_it_had_an_answer_says_so():
    incumbent, _ = run(
        Step(Script(("offer 9",), "first")), Step(Script(("until-stop",), "mute")), seconds=0.5
    )
    status = {o.engine: o.status for o in incumbent.shares()}
    assert status.pop("first") == "done"
    assert status in (  # parts lie on a grid: the last one may end a moment before all time does
        {"mute": "stopped: no answer before the time was over"},
        {"mute": "stopped: its part of the time was over before it had an answer"},
    )
