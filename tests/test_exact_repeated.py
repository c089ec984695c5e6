"""The second search: it confirms what branch and bound proved, and refuses what is false, against trying every mapping."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from exact_support import Recorder, optimum, random_graph, small_problem

from nmsolve.check.mapping.bounds import repeated
from nmsolve.check.mapping.bounds.exhaustion import BANNED, reduced
from nmsolve.check.mapping.bounds.partial import PARTS, Multipliers, Relaxed
from nmsolve.check.mapping.bounds.parts import granularity
from nmsolve.check.mapping.bounds.symmetry import Board
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound, best_first, engine

WHOLE = ("mesh", "spare-cores", "torus", "faults", "dead-link", "matrix", "constraints")
LONG = {"status": "optimal", "nodes": 10**6}


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", WHOLE)
def test_confirms_the_optimum_and_nothing_above(
    kind: str, seed: int, split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """True for the optimum, False for the next value; by the plain search, and by split bounds at three open nodes or more."""
    if split:
        monkeypatch.setattr(repeated, "EASY", 0)
        monkeypatch.setattr(repeated, "SMALL", 2)
        monkeypatch.setattr(repeated, "PROBE", 0)
    problem = replace(small_problem(kind, seed), node_limit=1)
    best = optimum(problem)
    if not np.isfinite(best):
        return
    step = max(1.0, granularity(problem))
    found = repeated.search_again(problem, best, LONG, 60.0)
    if found is None:  # of this kind some have several nodes on a core
        assert best == np.rint(best)
        return
    assert found
    assert repeated.search_again(problem, best + step, LONG, 60.0) is False
    assert repeated.search_again(problem, best - 3 * step, LONG, 60.0)


@pytest.mark.parametrize("seed", range(24))
def test_decimals_are_told_as_exactly_as_floats_are(seed: int) -> None:
    """Tenths, thousandths, thirds, decimal links, one or several nodes per core: told at the optimum, and 1e-11 above."""
    rng = np.random.default_rng(seed)
    unit, several = (0.1, 0.001, 1 / 3)[seed % 3], seed % 2 == 1
    graph = random_graph(rng, 6)
    graph = LogicGraph.from_edges(
        6, graph.edge_source, graph.targets, rng.integers(1, 10**4, len(graph.targets)) * unit
    )
    machine = Machine("m", (1, 1), (2, 3), link_weight=(1.0, 0.7, 1.25)[seed // 8])
    problem = MappingProblem(graph, machine, "hops", (), 3 if several else 1)
    best = optimum(problem)
    assert repeated.search_again(problem, best, LONG, 60.0) is True
    assert repeated.search_again(problem, best * (1 + 1e-11), LONG, 60.0) is False
    claim = Bound(best, "branch-bound", "full", LONG)
    assert check_bound(problem, claim).ok and not check_bound(problem, claim).word
    odd = replace(problem, graph=LogicGraph.from_edges(6, [0, 2], [1, 3], [np.pi, 1.0]))
    assert repeated.search_again(odd, optimum(odd), LONG, 60.0) is None


def test_multiples_are_the_data_times_their_factor() -> None:
    """The least power of ten or a common denominator; numbers that are off by more than floats round are none."""
    for values, factor in (
        ([1.0, 4.0], 1),
        ([0.5, 2.0], 2),
        ([0.1 + 0.2, 7.25], 20),
        ([1e-12], 10**12),
        ([1 / 7, 2 / 3], 21),
    ):
        found = repeated.whole_multiples(np.array(values))
        assert found is not None and found.factor == factor
        assert (
            found.numbers / factor == pytest.approx(np.array(values), rel=1e-12)
        ) and found.numbers.dtype == np.int64
    for none in (np.pi, 1e-13, 0.3 + 1e-14, 1e14 + 0.5):
        assert repeated.whole_multiples(np.array([none])) is None
    empty = repeated.whole_multiples(np.zeros(0))
    assert empty is not None and empty.factor == 1


def test_symmetries_are_those_of_all_permutations() -> None:
    """Which cores are alike with others fixed, on meshes, rings and random boards, with and without kinds of cores."""
    rng = np.random.default_rng(5)
    for trial in range(40):
        k = 6
        if trial % 2:
            far = distances_of((2, 3))
        else:
            far = rng.integers(1, 3, (k, k))
            np.fill_diagonal(far, 0)
        allowed = np.ones((2, k), bool)
        allowed[0, rng.integers(0, k, 2)] = trial % 3 > 0
        fixed = tuple(int(p) for p in rng.permutation(k)[: trial % 3])
        kept = [
            g
            for g in itertools.permutations(range(k))
            if (far[np.ix_(g, g)] == far).all()
            and (allowed[:, g] == allowed).all()
            and all(g[p] == p for p in fixed)
        ]
        board = Board(far, allowed)
        for p, q in itertools.product(range(k), repeat=2):
            if p not in fixed and q not in fixed:
                assert board.alike(fixed, p, q) == any(g[p] == q for g in kept)


def distances_of(shape: tuple[int, int]) -> np.ndarray:
    """Hops between the cores of a mesh."""
    at = np.stack(np.divmod(np.arange(shape[0] * shape[1]), shape[1]), axis=1)
    return np.abs(at[:, None] - at).sum(axis=2)


def test_most_kinds_are_told() -> None:
    """The test above would pass if nothing was ever told."""
    told = [
        repeated.search_again(replace(small_problem(kind, seed), node_limit=1), 1.0, LONG, 60.0)
        for kind in WHOLE
        for seed in range(4)
    ]
    assert sum(found is not None for found in told) >= 20


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_children_are_below_every_completion(seed: int) -> None:
    """For any multipliers, also wild ones, partial mappings and excluded cores."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(4, 8))
    n = int(rng.integers(3, min(k, 6) + 1))
    w = np.triu(rng.integers(0, 9, (n, n)), 1)
    w = w + w.T
    at = rng.integers(0, 4, (k, 2))
    far = np.abs(at[:, None] - at[None]).sum(axis=2) + 1 - np.eye(k, dtype=np.int64)
    if seed % 2:
        far = np.triu(rng.integers(0, 9, (k, k)), 1)
        far = far + far.T
    left = rng.random((n, k)) < 0.85
    place = np.full(n, -1)
    for u, p in zip(rng.permutation(n)[: rng.integers(0, n - 1)], rng.permutation(k), strict=False):
        place[u] = p
    wide = 10.0 ** rng.integers(-1, 3)
    three = n * (n - 1) * (n - 2) // 6
    given = Multipliers(*(wide * rng.normal(size=(2, n, n))), wide * rng.normal(size=(three, 4)))
    bound, nodes, cores = Relaxed(w, far).children(place, left, given)
    for rest in itertools.permutations(cores.tolist(), len(nodes)):
        if all(left[u, p] for u, p in zip(nodes, rest, strict=True)):
            full = place.copy()
            full[nodes] = rest
            cost = int((w * far[np.ix_(full, full)]).sum()) * PARTS
            assert all(bound[i, np.flatnonzero(cores == p)[0]] <= cost for i, p in enumerate(rest))


@pytest.mark.parametrize("size", [1, 4, 9])
def test_reduction_ends_at_the_least_assignment(size: int) -> None:
    """Value as of SciPy's solver; what is left is >= 0 and says no more than any assignment with that entry costs."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(size)
    for _ in range(30):
        cost = rng.integers(-5, 30, (size, size))
        cost[rng.random((size, size)) < 0.2] = BANNED
        left = cost.copy()
        i, j = linear_sum_assignment(cost)
        value = reduced(left, size, np.zeros((7, size), np.int64))
        if cost[i, j].max() >= BANNED:
            assert value >= BANNED // 2
            continue
        assert value == cost[i, j].sum() and left.min() >= 0
        assert (left[i, j] == 0).all()


def test_symmetries_are_found_and_broken_by_what_nodes_may_use() -> None:
    """A 3x3 board has three kinds of cores, a 2x3 board two; a core that one node may not use is like no other."""
    row, col = np.divmod(np.arange(9), 3)
    far = np.abs(row[:, None] - row) + np.abs(col[:, None] - col)
    every = np.ones(9, bool)
    assert Board(far, np.ones((2, 9), bool)).unlike((), every) == [0, 1, 4]
    assert Board(far, np.ones((2, 9), bool)).unlike((0,), every) == [0, 1, 2, 4, 5, 8]
    allowed = np.ones((2, 9), bool)
    allowed[1, 0] = False
    assert Board(far, allowed).unlike((), every) == [0, 1, 2, 4, 5, 8]
    one_way = far.copy()
    one_way[0, 1] = 5
    assert Board(one_way, np.ones((2, 9), bool)).unlike((), every) == list(range(9))


def _dense(nodes: int, seed: int = 3) -> MappingProblem:
    return MappingProblem(
        random_graph(np.random.default_rng(seed), nodes), Machine("m", (1, 1), (2, 4)), node_limit=1
    )


def test_forged_claims_are_refused_and_honest_ones_need_nobodys_word() -> None:
    """The claim of a run is recomputed, whatever its certificate says; one step more is refused."""
    problem = _dense(7)
    context = Recorder(problem)
    BranchBound().run(problem, context)
    true = context.bounds[-1]
    found = check_bound(problem, true)
    assert found.ok and not found.trusted and found.value == context.value
    above = replace(true, value=true.value + 1)
    assert not check_bound(problem, above).ok
    assert not check_bound(problem, replace(above, certificate=LONG), about=problem.hash).ok
    for forged in (
        {"status": "optimal"},
        {"nodes": "many"},
        {"nodes": -1},
        {"nodes": [3, 4]},
        {"nodes": 1e300},
    ):
        assert not check_bound(problem, replace(above, certificate=forged)).ok
    assert not check_bound(_dense(7, seed=4), replace(true, value=1e6)).ok


def test_what_is_left_out_in_time_stays_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that may bound nothing tells nothing: the claim is the engine's word, about its own problem only."""
    problem = _dense(7)
    claim = Bound(1000.0, "branch-bound", certificate={"status": "optimal", "nodes": 5})
    for easy in (16, 0):
        monkeypatch.setattr(repeated, "EASY", easy)
        found = check_bound(problem, claim, about=problem.hash, seconds=0.0)
        assert found.ok and found.word == "branch-bound"
        assert not check_bound(problem, claim, about="another", seconds=0.0).ok


def test_a_search_within_limits_is_no_claim_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a region the claim counts for what the region leaves; without it the same number is refused."""
    free = _dense(6)
    rule = SideConstraint("r", "region", (0, 1), (0, 7))
    bound_to = replace(free, constraints=(rule,))
    context = Recorder(bound_to)
    BranchBound().run(bound_to, context)
    assert check_bound(bound_to, context.bounds[-1]).ok
    assert context.value > optimum(free)
    assert not check_bound(free, context.bounds[-1]).ok


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_threads_proves_the_same(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Best first with the split bound forced, from a poor start; no bound on the way is above the optimum."""
    problem = MappingProblem(
        random_graph(np.random.default_rng(8), 11), Machine("m", (1, 1), (3, 4)), node_limit=1
    )
    plain = Recorder(problem)
    BranchBound().run(problem, plain)
    monkeypatch.setattr(engine, "ALONE_EASY", 10)
    monkeypatch.setattr(engine, "_SLICE", 1)
    monkeypatch.setattr(engine, "PAUSE", 0.0)
    monkeypatch.setattr(best_first, "PROBE", 20)
    monkeypatch.setattr(best_first, "SMALL", 4)
    start = np.arange(11)
    context = Recorder(problem, start=start)
    context.workers = workers
    BranchBound().run(problem, context)
    assert context.value == context.low == plain.value < objective_value(problem, start)
    assert max(b.value for b in context.bounds) <= plain.value
    assert context.bounds[-1].certificate["status"] == "optimal"


def test_a_thread_that_fails_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a helper raises reaches the engine's caller; nothing is claimed as proved."""
    problem = MappingProblem(
        random_graph(np.random.default_rng(8), 11), Machine("m", (1, 1), (3, 4)), node_limit=1
    )
    monkeypatch.setattr(engine, "ALONE_EASY", 10)
    monkeypatch.setattr(engine, "_SLICE", 1)
    monkeypatch.setattr(engine, "PAUSE", 0.0)
    advance = best_first.BestFirstSearch.advance

    def broken(self: best_first.BestFirstSearch, number: int = 0) -> bool:
        if number:
            raise ValueError("helper")
        return advance(self, number)

    monkeypatch.setattr(best_first.BestFirstSearch, "advance", broken)
    context = Recorder(problem, start=np.arange(11))
    context.workers = 2
    with pytest.raises(ValueError, match="helper"):
        BranchBound().run(problem, context)
    assert all(b.certificate["status"] == "running" for b in context.bounds)
