"""Floors of what a run makes of its engines. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from strength_cases import at_least, at_most, board, found, near, placement, run

from nmsolve.heuristics.mapping.external.engine import External
from nmsolve.heuristics.mapping.multilevel.mapper import Annealing
from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.heuristics.mapping.placement.tabu import Tabu
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.portfolio import Portfolio, Step

MANY = MappingProblem(near(600, 6), board(4, 4), "hops", (), 40)
ONE = placement(near(100, 4), board(10, 10))


def spoiled(problem: MappingProblem, core: IntArray) -> IntArray:
    """A good mapping after a few exchanges of random nodes."""
    rng, core = np.random.default_rng(0), core.copy()
    for _ in range(6):
        a, b = rng.integers(problem.n, size=2)
        core[[a, b]] = core[[b, a]]
    return core


def many_start() -> IntArray:
    """A good mapping, spoiled."""
    runs = [run(Annealing(), MANY, seed=s, seconds=0.1) for s in (1, 2)]
    return spoiled(MANY, min(runs, key=lambda counted: counted.value).best)


def one_start() -> IntArray:
    """A good placement, spoiled."""
    return spoiled(ONE, run(Anneal(), ONE, seed=1, seconds=0.1, stops=800).best)


def test_multilevel_goes_on() -> None:
    """Fails if the mapping that is known is left aside."""
    at_most(found(Annealing(), MANY, 3, seconds=0.003, start=many_start()), 1020)


def test_external_goes_on() -> None:
    """Fails if the mapping that is known is left aside."""
    at_most(found(External(), MANY, 3, seconds=0.01, start=many_start()), 1400)


def test_anneal_goes_on() -> None:
    """Fails if the placement that is known is left aside."""
    at_most(found(Anneal(), ONE, 3, seconds=0.01, stops=100, start=one_start()), 2000)


def test_tabu_goes_on() -> None:
    """Fails if the placement that is known is left aside."""
    at_most(found(Tabu(), ONE, 3, stops=5, start=one_start()), 1770)


class Race:
    """A race without engines: every run takes all of its time, and brings what a function of it says.

    Parameters
    ----------
    bound : what a run of this many seconds proves
    gain : what a run of the heuristic leaves of the objective
    """

    limit = 400.0

    def __init__(self, bound: Callable[[float], float], gain: float) -> None:
        self._bound, self._gain = bound, gain
        self.objective, self.bound, self.now = 1000.0, 0.0, 0.0
        self.started, self.deadline = 0.0, self.limit
        self.spent = {"bounds": 0.0, "mappings": 0.0}

    def left(self) -> float:
        return self.limit - self.now

    def bound_of(self, engine: str) -> float:
        return self.bound

    def run(self) -> dict[str, float]:
        """Seconds that bounds and mappings had."""
        engines = [SimpleNamespace(name=kind, finds=kind) for kind in self.spent]
        steps = [Step(e, first=1.0, child=e.finds == "bounds", repeat=e.finds == "mappings") for e in engines]
        race: Any = Portfolio(None, self, self)  # type: ignore[arg-type]
        turns = race._turns(steps)
        while self.left() > 2.0:
            step = next(turns)[0]
            past = race._past[step.engine.name]
            span = past.next_span(self.left()) if past.runs else step.first
            proves = step.engine.finds == "bounds"
            past.begin(span, race._level(step), proves)
            self.now += span
            self.spent[step.engine.finds] += span
            if proves:
                self.bound = max(self.bound, self._bound(span))
            else:
                self.objective *= self._gain
            past.end(span, race._level(step))
        return self.spent


def test_race_gives_time_to_bounds() -> None:
    """Fails if a race goes by what is promised alone: mappings that get better and better would leave nothing to bounds."""
    spent = Race(lambda span: 100.0 + 0.1 * span, 0.7).run()
    at_least(spent["bounds"] / Race.limit, 0.2)


def test_race_gives_time_to_mappings() -> None:
    """Fails if a race goes by what is promised alone: a bound that rises would leave nothing to mappings."""
    spent = Race(lambda span: 10.0 * span**0.5, 0.9999).run()
    at_least(spent["mappings"] / Race.limit, 0.2)


def test_race_follows_the_slope() -> None:
    """Fails if runs are not prolonged: time then goes into the same short run again and again."""
    race = Race(lambda span: 10.0 * span**0.5, 0.9999)
    race.run()
    at_least(race.bound, 100)
