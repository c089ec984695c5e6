"""Large-neighbourhood search: pieces against brute force, claimed gains against costs, the bandit, the engine."""

import itertools

import numpy as np
import pytest
from test_placement import FakeContext
from test_placement_kernels import CONSTRAINTS, KINDS, problem, start

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.lns.assignment import assign
from nmsolve.heuristics.mapping.lns.bandit import FLOOR, Bandit
from nmsolve.heuristics.mapping.lns.branch import best_seats, new_scratch
from nmsolve.heuristics.mapping.lns.engine import Lns
from nmsolve.heuristics.mapping.lns.piece import value
from nmsolve.heuristics.mapping.lns.pieces import ASSIGNMENT, GRAPH, WINDOW, apply_seats, solve_piece
from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import Anneal
from nmsolve.heuristics.mapping.placement.tabu import Tabu
from nmsolve.heuristics.mapping.placement.walker import DirectWalker, TableWalker
from nmsolve.hw.scores import objective_value
from nmsolve.model.mapping.solution import check_mapping


def random_piece(rng):
    """Up to 5 nodes on up to 7 cores: unary costs, traffic both ways, distances."""
    m = int(rng.integers(1, 6))
    size = m + int(rng.integers(0, 3))
    pair = rng.integers(0, 9, (m, m)).astype(float)
    np.fill_diagonal(pair, 0)
    dist = rng.integers(1, 9, (size, size)).astype(float)
    unary = rng.integers(0, 50, (m, size)).astype(float)
    return unary, pair, pair.T.copy(), dist


def test_branch_and_bound_finds_the_best_of_all_assignments():
    rng, scratch = np.random.default_rng(0), new_scratch()
    for _ in range(150):
        piece = random_piece(rng)
        m, size = piece[0].shape
        best = min(value(np.array(s), *piece) for s in itertools.permutations(range(size), m))
        seat = np.full(m, -1)
        cost, _ = best_seats(*piece, 1e9, 10**9, seat, scratch)
        assert cost == best == value(seat, *piece) and len(set(seat.tolist())) == m
        untouched = np.full(m, -1)
        assert best_seats(*piece, best, 10**9, untouched, scratch)[0] == best and (untouched == -1).all()


def test_a_branch_and_bound_that_is_cut_short_says_nothing_false():
    rng, scratch = np.random.default_rng(1), new_scratch()
    for _ in range(50):
        piece = random_piece(rng)
        seat = np.full(len(piece[0]), -1)
        cost, visited = best_seats(*piece, 1e9, 8, seat, scratch)
        assert visited <= 8
        assert cost == 1e9 or cost == value(seat, *piece)


def test_linear_assignment_is_optimal():
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(2)
    for _ in range(200):
        m = int(rng.integers(1, 12))
        cost = rng.integers(0, 20, (m, m + int(rng.integers(0, 4)))).astype(float)
        column = np.full(m, -1)
        assert assign(cost, column) == cost[linear_sum_assignment(cost)].sum()
        assert len(set(column.tolist())) == m


def walkers(data):
    """Every walker that takes the problem."""
    return [cls(data, 3) for cls in (TableWalker, DirectWalker) if data.separable or cls is DirectWalker]


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
@pytest.mark.parametrize("kind", KINDS)
def test_large_moves_keep_the_rules_and_gain_what_they_claim(kind, constraints):
    p = problem(kind, constraints=constraints)
    data = placement_data(p)
    for w in walkers(data):
        w.place(start(p))
        for name in w.kinds():
            before = objective_value(p, w.core())
            change = w.large_moves(name, 30)
            core = w.core()
            assert check_mapping(p, core) == [] and len(set(core.tolist())) == p.n
            assert change <= 0 and objective_value(p, core) == pytest.approx(before + change, rel=1e-5)
        assert w.work > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_is_reassigned_as_well_as_by_brute_force(kind):
    """Five cores of a placement, idle ones among them: nothing better than the piece's answer is allowed."""
    p = problem(kind, constraints=CONSTRAINTS)
    data = placement_data(p)
    rng = np.random.default_rng(4)
    w = walkers(data)[-1]
    for _ in range(6):
        w.place(start(p, int(rng.integers(100))))
        core, solver = w.core(), w._pieces
        chosen = rng.choice(data.free, 5, replace=False)
        solver._piece.cores[:5] = chosen
        m, gain, _, _ = solve_piece(WINDOW, 5, solver._least, solver._links, w._grid, w._seats, solver._piece)
        inside = np.flatnonzero(np.isin(core, chosen))
        assert m == len(inside)
        best = placement_cost(data, core)
        for cores in itertools.permutations(chosen.tolist(), m):
            other = core.copy()
            other[inside] = cores
            if not check_mapping(p, other):
                best = min(best, placement_cost(data, other))
        assert gain == pytest.approx(placement_cost(data, core) - best, abs=1e-6)
        if gain > 0:
            apply_seats(m, solver._links, w._grid, w._seats, w._net, w._no_tables, solver._piece)
        assert placement_cost(data, w.core()) == pytest.approx(best) and check_mapping(p, w.core()) == []


def test_assignments_take_no_two_nodes_with_traffic():
    from nmsolve.heuristics.mapping.lns.pieces import _strangers

    p = problem("mesh")
    w = DirectWalker(placement_data(p), 1)
    w.place(start(p))
    piece, rng = w._pieces._piece, new_rng(1)
    for _ in range(50):
        size = _strangers(rng, w._links, w._grid, w._seats, piece.local, piece.cores)
        nodes = [int(u) for u in w._seats.node[piece.cores[:size]] if u >= 0]
        for u in nodes:
            near = set(w.data.indices[w.data.indptr[u] : w.data.indptr[u + 1]].tolist())
            assert not near & set(nodes)
        assert (piece.local == -1).all() and len(set(piece.cores[:size].tolist())) == size
    assert {WINDOW, GRAPH, ASSIGNMENT} == {0, 1, 2}


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
def test_the_engine_improves_a_warm_start_and_notes_its_choices(kind):
    p = problem(kind, constraints=CONSTRAINTS)
    warm = start(p)
    context = FakeContext(p, seconds=0.3, questions=500)
    context.offer(warm, "warm start")
    first = context.best
    assert Lns().refuses(p) is None
    Lns().run(p, context)
    assert context.best < first and "tries" in context.notes[-1]
    again = FakeContext(p, seconds=0.3, questions=500)
    again.offer(warm, "warm start")
    Lns().run(p, again)
    assert [(m, c) for m, c, _ in again.offers] == [(m, c) for m, c, _ in context.offers]
    assert again.notes == context.notes


def test_the_engine_begins_without_a_mapping():
    p = problem("mesh")
    context = FakeContext(p, seconds=0.3, questions=500)
    Lns().run(p, context)
    assert context.core is not None and "annealing" in {move for move, _, _ in context.offers}


@pytest.mark.parametrize("engine", [Tabu, Lns, Anneal])
def test_engines_never_lose_a_good_start(engine):
    p = problem("mesh")
    good = FakeContext(p, questions=300)
    Tabu().run(p, good)
    context = FakeContext(p, seconds=0.05, questions=40)
    context.offer(good.core, "warm start")
    engine().run(p, context)
    assert context.best == good.best
