"""Large moves: claimed gains against costs, the bandit that chooses, the search that keeps what gains."""

import numpy as np
import pytest
from test_placement import FakeContext
from test_placement_kernels import CONSTRAINTS, problem, start

from nmsolve.heuristics.bandit import FLOOR, Bandit
from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.heuristics.mapping.placement.local_search import TableSearch, new_local_search
from nmsolve.heuristics.mapping.placement.neighbourhoods import Neighbourhoods
from nmsolve.heuristics.mapping.placement.schedule import temperature_scale
from nmsolve.heuristics.mapping.placement.tabu import Tabu
from nmsolve.hw.scores import objective_value
from nmsolve.model.mapping.solution import check_mapping


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
@pytest.mark.parametrize("kind", ["mesh", "torus", "chips"])
def test_large_moves_keep_the_rules_and_gain_what_they_claim(kind, constraints):
    p = problem(kind, constraints=constraints)
    w = TableSearch(placement_data(p), 3)
    w.place(start(p))
    assert w.kinds()
    for name in w.kinds():
        before = objective_value(p, w.core())
        change = w.large_moves(name, 30)
        core = w.core()
        assert check_mapping(p, core) == [] and len(set(core.tolist())) == p.n
        assert change <= 0 and objective_value(p, core) == pytest.approx(before + change, rel=1e-5)
    assert w.work > 0


def test_the_bandit_prefers_what_gains_and_forgets_nobody():
    bandit = Bandit(("good", "bad", "slow"), seed=1)
    chosen = []
    for _ in range(600):
        kind = bandit.choose()
        chosen.append(kind)
        bandit.learn(kind, (1.0, 0.0, 1.0)[kind], (1.0, 1.0, 10.0)[kind])
    counts = np.bincount(chosen, minlength=3) / len(chosen)
    assert counts[0] > 0.7 and 0.5 * FLOOR < counts[1] < 0.12 and counts[1] < counts[2] < counts[0]
    assert sum(bandit.probabilities()) == pytest.approx(1) and min(bandit.probabilities()) >= FLOOR
    again = Bandit(("good", "bad", "slow"), seed=1)
    replay = []
    for _ in range(600):
        kind = again.choose()
        replay.append(kind)
        again.learn(kind, (1.0, 0.0, 1.0)[kind], (1.0, 1.0, 10.0)[kind])
    assert replay == chosen
    assert "good" in bandit.summary() and f"{sum(t.tries for t in bandit.tallies)}" == "600"


@pytest.mark.parametrize("kind", ["chips", "asymmetric"])
def test_the_search_improves_a_mapping_and_notes_its_choices(kind):
    p = problem(kind, constraints=CONSTRAINTS)
    data, first = placement_data(p), start(p)
    scale = temperature_scale(data)

    def searched():
        context = FakeContext(p, seconds=0.3, questions=500)
        context.offer(first, "first fit")
        Neighbourhoods(new_local_search(data, 1), first, context, 0.3 * scale, 0.01 * scale, 1e7).run()
        return context

    context, again = searched(), searched()
    assert context.value < objective_value(p, first) and "tries" in context.notes[-1]
    assert [(m, c) for m, c, _ in again.offers] == [(m, c) for m, c, _ in context.offers]
    assert again.notes == context.notes


@pytest.mark.parametrize("engine", [Tabu, Anneal])
def test_engines_never_lose_a_good_start(engine):
    p = problem("mesh")
    good = FakeContext(p, questions=300)
    Tabu().run(p, good)
    context = FakeContext(p, seconds=0.05, questions=40)
    context.offer(good.best, "warm start")
    engine().run(p, context)
    assert context.value == good.value
