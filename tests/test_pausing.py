"""Runs that are paused: they go on where they were, do not notice it, and end like any other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from search_fakes import ToyChecker

import nmsolve
from nmsolve.model.bound import Bound
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.stop import Stop
from nmsolve.solvers.mapping.checker import MappingChecker
from nmsolve.solvers.mapping.registry import make_engine
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.pausing import PausingContext, PausingRun


@dataclass
class Counter:
    """Counts how often it may go on; at ``fails`` it raises what it is told to."""

    fails: int = -1
    raised: type[BaseException] = ValueError
    name: str = "counter"
    finds: str = "bounds"
    count: int = 0
    closed: bool = False
    worked: list[float] = field(default_factory=list)

    def refuses(self, problem):
        return None

    def run(self, problem, context):
        try:
            while not context.should_stop():
                self.count += 1
                self.worked.append(context.worked())
                if self.count == self.fails:
                    raise self.raised("on purpose")
                time.sleep(0.005)
            context.raise_bound(Bound(float(self.count), self.name))
        finally:
            self.closed = True


def paused(engine, problem=None, incumbent=None, seconds=60.0):
    """A run of the engine that has not begun, and the incumbent of its bounds."""
    budget = Stop(seconds)
    incumbent = incumbent or Incumbent(ToyChecker(lattice=1.0), budget)
    context = PausingContext(engine.name, incumbent, budget, seed=0, workers=1, deadline=0.0)
    return PausingRun(engine, problem, context), incumbent


def test_a_paused_run_goes_on_where_it_was_and_the_pause_is_not_its_time():
    counter = Counter()
    run, incumbent = paused(counter)
    counts = []
    for _ in range(3):
        assert run.go_on(0.05, 30.0) is None
        counts.append(counter.count)
        time.sleep(0.1)
    assert 0 < counts[0] < counts[1] < counts[2] and not counter.closed
    assert counter.worked == sorted(counter.worked) and counter.worked[-1] < 0.2
    assert run.go_on(0.02, 0.02) == Ending()  # all that is left: it ends, and states what it has reached
    assert counter.closed and incumbent.bound == counter.count > counts[2]


def test_turns_change_nothing_in_what_a_bound_finds():
    """The projection bound states a value whenever the number of its steps doubles: by steps, not by time."""
    problem = MappingProblem(generate("mesh-comm", nodes=36), nmsolve.machine("mesh:6x6"), "hops", (), 1)
    stated = []
    for spans in (60.0, 1e-4):
        budget = Stop(60.0)
        events = []
        incumbent = Incumbent(MappingChecker(merge_together(problem)), budget, [events.append])
        run, _ = paused(make_engine("projection"), problem, incumbent)
        turns = 1
        while run.go_on(spans, 60.0) is None:
            turns += 1
        stated.append([e.bound for e in events if e.kind == "bound"])
        assert turns == 1 if spans == 60.0 else turns > 10
    assert stated[0] == stated[1] and len(stated[0]) > 2


def test_a_run_that_is_given_up_is_unwound_and_works_no_more():
    counter = Counter()
    run, incumbent = paused(counter)
    assert run.go_on(0.02, 30.0) is None
    count = counter.count
    run.close()
    assert counter.closed and counter.count == count and incumbent.bound == 0
    run.close()
    fresh, _ = paused(never := Counter())
    fresh.close()
    assert never.count == 0


def test_errors_are_endings_as_in_any_run_and_an_interrupt_passes_through():
    broken, _ = paused(Counter(fails=10))
    while (ending := broken.go_on(0.01, 30.0)) is None:
        pass
    assert ending.kind == "failed" and "on purpose" in ending.text
    full, _ = paused(Counter(fails=3, raised=MemoryError))
    assert full.go_on(1.0, 30.0).kind == "memory"
    hit, _ = paused(Counter(fails=3, raised=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        hit.go_on(1.0, 30.0)


def test_the_end_of_the_whole_run_ends_a_paused_one_too():
    run, _ = paused(counter := Counter(), seconds=0.1)
    assert run.go_on(0.02, 30.0) is None
    time.sleep(0.1)
    assert run.go_on(0.02, 30.0) == Ending() and counter.closed
