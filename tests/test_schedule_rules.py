"""Rules that build schedules: legal on problems with every feature, and what each of them is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.schedule.insertion import by_priority, optimistic
from nmsolve.heuristics.schedule.rules import (
    CRITERIA,
    Heft,
    Peft,
    PublishedRule,
    grounded,
    heft,
    peft,
    published,
    ranks_of,
)
from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.model.schedule.problem import NEVER, Edges
from tests.schedule_support import random_problem
from tests.search_fakes import QuietContext


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 5), st.integers(0, 2))
def test_rules_are_legal(seed: int, processes: int, units: int, resources: int) -> None:
    problem = random_problem(seed, processes, units, resources)
    for rule in (published, heft, peft):
        assert schedule_complaint(problem, rule(problem)) is None


@pytest.mark.parametrize("engine", [PublishedRule, Heft, Peft])
def test_engines_offer_what_keeps_deadlines_and_ceilings_only(engine: type) -> None:
    class Context(QuietContext):
        offers = 0

        def offer(self, core: np.ndarray, move: str = "") -> bool:
            self.offers += 1
            return True

    for ceilings, offers in (((), 1), ((("makespan", 1.0),), 0)):
        problem, context = random_problem(1, 6, 3, 0, objective="energy", ceilings=ceilings), Context()
        assert engine().refuses(problem) is None
        engine().run(problem, context)
        assert context.offers == offers and len(context.notes) == 1 - offers


def test_the_published_rule_takes_no_crowds() -> None:
    """All that is ready waits for units with all others: the work is quadratic, and cannot be interrupted."""
    few = random_problem(1, 4, 2)
    wide = generate_problem(200, 50, 256).problem
    assert PublishedRule().refuses(few) is None and PublishedRule().refuses(wide) is None
    none = np.zeros(0, np.int64)
    count = 2**14
    m = few.modes
    one = replace(
        m, first=np.arange(count + 1), span=np.ones(count, np.int64), unit_set=np.full(count, m.unit_set.max()),
        demand=np.zeros((count, 1), np.int64), energy=np.zeros(count, np.int64), item=np.full(count, -1),
        working=np.zeros(count, np.int64),
    )  # fmt: skip
    zeros, never = np.zeros(count, np.int64), np.full(count, NEVER)
    crowd = replace(
        few, labels=tuple(map(str, range(count))), task=zeros, partner=zeros - 1, modes=one, edges=Edges(none, none, none, none),
        release=zeros, deadline=never, due=never, weight=zeros, ready=None,
    )  # fmt: skip
    assert "at once" in str(PublishedRule().refuses(crowd))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_ranks_fall_along_edges(seed: int) -> None:
    problem = random_problem(seed, 10, 3, 0)
    rank = ranks_of(problem, grounded(problem)[0])
    e, place = problem.edges, np.empty(10, np.int64)
    assert (rank[e.source] > rank[e.target] - 1e-9).all()
    place[by_priority(problem, -rank)] = np.arange(10)
    assert (place[e.source] < place[e.target]).all()


def test_what_follows_at_least() -> None:
    """PEFT's table: of the last processes 0, of others no more than any real end after them."""
    problem = random_problem(5, 8, 3, 0)
    problem = replace(problem, items=replace(problem.items, load=0 * problem.items.load))
    table = np.zeros(problem.modes.count)
    optimistic(grounded(problem)[0], problem.order, table)
    last = np.setdiff1d(np.arange(8), problem.edges.source)
    assert (table[np.isin(problem.modes.process, last)] == 0).all() and table.max() > 0
    answer = peft(problem)
    assert (answer.end(problem) + table[answer.mode] <= answer.end(problem).max()).all()


def test_the_first_criterion_of_the_published_rule_decides_first() -> None:
    """Sums over several problems: whatever comes first is least of all orders."""
    places = {"idle": "idle", "exchange": "moved"}
    sums = {
        first: {
            name: sum(
                all_objectives(p, published(p, (first, *(c for c in CRITERIA if c != first))))[name]
                for p in (random_problem(seed, 40, 6, 0, ready=None) for seed in range(20))
            )
            for name in places.values()
        }
        for first in places
    }
    assert sums["idle"]["idle"] < sums["exchange"]["idle"]
    assert sums["exchange"]["moved"] < sums["idle"]["moved"]
