"""The run that all problems share, on a toy problem that no solver knows."""

from __future__ import annotations

import pytest
from search_fakes import Script, ToyChecker, value

from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.solvers.run import Options, Task, solve
from nmsolve.solvers.search.entries import Entry, steps_for
from nmsolve.solvers.search.portfolio import Step


class Toy(Task[list[int]]):
    """Three numbers; starts from 20, runs a script, and says after the search what holds for its own part."""

    objective, checker = "sum", ToyChecker()

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def words(self, seed):
        return f"three numbers, seed {seed}"

    def start(self, run):
        run.not_run({"idle": "it is Sunday"})
        run.incumbent.offer("start", value(20), "given")
        return [Step(Script(self.lines))]

    def finish(self, run):
        return Bound(run.incumbent.objective / 2, "halves", "placement")

    def answer(self, lifted):
        return lifted.tolist(), {"sum": float(lifted.sum()), "numbers": 3.0}


def test_a_task_is_told_of_solved_and_answered() -> None:
    """Known solution, engines, what comes after the search; events in this order, the answer in the user's terms."""
    seen = []
    result = solve(Toy("offer 10", "bound 10"), Options(time_limit=5.0, seed=3, observers=[seen.append]))
    assert (result.status, result.stop_reason, result.objective, result.bound, result.gap) == (
        "optimal",
        "gap",
        10,
        10,
        0,
    )
    assert (
        result.solution == [10, 0, 0] and result.scores == {"sum": 10.0, "numbers": 3.0} and result.seed == 3
    )
    assert result.objective_name == "sum" and (result.placement_bound, result.placement_gap) == (5.0, 0.5)
    assert [b.method for b in result.bounds] == ["script", "halves"]
    assert tuple(seen) == result.events
    kinds = [(e.kind, e.text or e.move) for e in seen if e.kind != "engine"]
    assert kinds[:3] == [
        ("start", "three numbers, seed 3"),
        ("note", "not run: idle: it is Sunday"),
        ("incumbent", "given"),
    ]
    assert kinds[-1] == ("end", "optimal, stopped by gap")


def test_options_out_of_range_are_refused() -> None:
    """With the number that is wrong."""
    for wrong in ({"gap": -0.1}, {"gap": float("nan")}, {"workers": 0}, {"seed": -1}):
        with pytest.raises(InputError, match=str(next(iter(wrong.values())))):
            Options(**wrong)
    with pytest.raises(InputError, match="time limit"):
        solve(Toy(), Options(time_limit=0.0))


def test_a_registry_becomes_a_plan() -> None:
    """Asked for by name, or all that run unasked; those that stand in for others only where these do not run."""

    class Scripted(Entry):
        def make(self):
            return made[self.path]

    table = {
        "first": Scripted("first", share=0.1, quick=True),
        "second": Scripted("second", share=0.2, instead="first"),
        "third": Scripted("third", share=0.3, unasked=False),
    }
    made = {name: Script((), name) for name in table}

    def plan(names, refused=()):
        for name, engine in made.items():
            why = "no" if name in refused else None
            object.__setattr__(engine, "refuses", lambda problem, why=why: why)
        steps, refusals = steps_for(table, "toy", names, " for toys")
        return [(step.engine.name, step.share) for step in steps], refusals

    assert plan(None) == ([("first", 0.1)], {})
    assert plan(None, ["first"]) == ([("second", 0.2)], {"first": "no"})
    assert plan(["third", "second", "third"]) == ([("third", 0.3), ("second", 0.2)], {})
    with pytest.raises(InputError, match=r"unknown engine 'secnd' for toys.*did you mean 'second'"):
        plan(["secnd"])
