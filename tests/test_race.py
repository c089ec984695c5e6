"""A race of engines: first runs of all, then time in doubled runs where it brings most."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from search_fakes import Script, ToyChecker, value

import nmsolve
from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.stop import Stop
from nmsolve.solvers.mapping.auto import FIRST_BOUND, automatic, with_automatic
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.portfolio import Portfolio, Step
from nmsolve.solvers.search.race import HOPE, Past


def past(*runs, took=1.0):
    """What an engine has had after runs of 1, 2, 4 ... seconds that left it at these levels, from the first of them."""
    out = Past()
    for i, (before, after) in enumerate(pairwise(runs)):
        out.begin(2.0**i, before)
        out.end(took * 2.0**i, after)
    return out


def test_only_a_run_that_was_cut_off_is_repeated_and_only_with_more_time():
    cut, ended = past(0, 10, 12), past(0, 10, 12, took=0.1)
    assert cut.cut_off(4.0) and not cut.cut_off(2.0) and not ended.cut_off(4.0)
    assert cut.next_span(100.0) == 4.0
    assert cut.next_span(9.0) == 9.0  # too little would be left for a longer run after it


def test_a_bound_promises_what_its_last_doubling_brought_as_far_as_it_passes_the_best():
    steep, flat = past(0, 10, 20), past(0, 20, 21)
    assert steep.promise(21.0) == pytest.approx(math.log(40 / 21) / 4)
    assert flat.promise(21.0) == pytest.approx(math.log(21 / 20) / 4)
    assert past(0, 2, 3).promise(21.0) == 0
    assert past(0, 0).promise(21.0) == past(0, 21).promise(21.0) == HOPE / 2


def test_a_heuristic_promises_what_its_last_run_gained():
    assert past(100.0, 90.0, 80.0).promise(80.0) == pytest.approx(math.log(90 / 80) / 4)
    assert past(80.0, 80.0).promise(80.0) == 0
    assert past(math.inf, 80.0).promise(80.0) == HOPE / 2


@dataclass
class Climber:
    """Proves ``speed`` times the time it has worked, and ``most`` at most; notes how long its runs worked."""

    name: str
    speed: float
    most: float = math.inf
    finds: str = "bounds"
    spans: list[float] = field(default_factory=list)

    def refuses(self, problem):
        return None

    def run(self, problem, context):
        self.spans.append(0.0)
        while not context.should_stop():
            time.sleep(0.01)
            self.spans[-1] = context.worked()
            context.raise_bound(Bound(min(self.most, self.speed * context.worked()), self.name))


def test_the_time_goes_to_the_bound_that_still_rises_and_every_bound_has_a_first_run():
    rising, flat, low = Climber("rising", 1000.0), Climber("flat", 1e6, 150.0), Climber("low", 1.0)
    checker, budget = ToyChecker(lattice=1.0), Stop(2.6)
    incumbent = Incumbent(checker, budget)
    incumbent.offer("known", value(10_000))
    portfolio = Portfolio(checker, incumbent, budget)
    portfolio.run([Step(engine, first=0.2) for engine in (flat, low, rising)])
    assert [len(e.spans) > 0 for e in (flat, low, rising)] == [True] * 3
    assert len(low.spans) == len(flat.spans) == len(rising.spans) == 1  # paused, none began again
    assert max(low.spans + flat.spans) < 0.5 and rising.spans[0] > 1.5
    assert incumbent.bound == pytest.approx(1000 * rising.spans[0], rel=0.05)


def test_mappings_go_on_beside_a_bound_that_promises_more():
    """By promise alone the bound, which doubles, would get all but the first run of a heuristic that hardly gains."""
    rising, seeker = Climber("rising", 1000.0), Script(("offer 19998", "until-stop"), "seeker", "mappings")
    checker, budget = ToyChecker(lattice=1.0), Stop(2.6)
    incumbent = Incumbent(checker, budget)
    incumbent.offer("known", value(20_000))
    portfolio = Portfolio(checker, incumbent, budget)
    portfolio.run([Step(rising, first=0.2), Step(seeker, first=0.2, repeat=True)])
    assert len(rising.spans) == 1 and 0.8 < rising.spans[0] < 2.15


@pytest.mark.parametrize(
    ("nodes", "objective", "wanted"),
    [
        (64, "connectivity", {"tree-parts", "slots", "cover", "spread"}),
        (64, "cut", {"joint", "slots", "cover"}),
        (484, "multicast-hops", {"tree-parts", "spread"}),
    ],
)
def test_every_bound_that_takes_the_problem_has_a_first_run_and_most_time_is_left_to_the_race(
    nodes, objective, wanted
):
    graph = generate("snn", nodes=nodes, synapses=10 * nodes, layers=4, directed=1, sigma=0.2)
    problem = MappingProblem(graph, nmsolve.machine("mesh:4x4"), objective, (), -(-nodes // 15))
    steps = automatic(problem, 10.0, 1, lambda name, why: None)
    assert wanted <= {s.engine.name for s in steps}
    assert sum(s.first for s in steps) < 9.0
    assert sum(s.first for s in steps if s.engine.finds == "bounds") < 4.0
    children = automatic(problem, 60.0, 2, lambda name, why: None)
    assert all(s.first >= 2.0 for s in children)


def test_a_bound_left_paused_because_time_is_short_means_that_time_ended_the_run():
    """Nothing else is to be run, but it would have gone on: that is not ``exhausted``."""
    rising = Climber("rising", 1000.0)
    checker, budget = ToyChecker(lattice=1.0), Stop(0.5)
    incumbent = Incumbent(checker, budget)
    portfolio = Portfolio(checker, incumbent, budget)
    portfolio.run([Step(rising, first=0.35)])
    assert len(rising.spans) == 1 and portfolio.hurried


def test_a_method_named_beside_automatic_mode_has_a_fair_share_and_other_engines_are_brief():
    graph = generate("snn", nodes=484, synapses=4840, layers=4, directed=0, sigma=0.2)
    problem = MappingProblem(graph, load_machine("mesh:4x4"), "hops", node_limit=40)
    steps = with_automatic(problem, ["auto", "m2", "genetic"], 12.0, 1, lambda *_: None)
    first = {step.engine.name: step.first for step in steps[:2]}
    assert first == {"m2": 4.0, "genetic": FIRST_BOUND * 12.0}
    assert [step.engine.name for step in steps[2:]] == [
        step.engine.name for step in automatic(problem, 12.0, 1, lambda *_: None)
    ]
