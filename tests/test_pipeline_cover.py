"""Blocks of groups of any size: what engine and re-check say of them, beside all sets of items tried out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import Recorder, optimum, random_dag

from nmsolve.check.pipeline import cover as recheck_cover
from nmsolve.check.pipeline import sweep as recheck_sweep
from nmsolve.check.pipeline.blocks import blocks_of
from nmsolve.check.pipeline.recheck import recheck_bound
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline import cover_engine
from nmsolve.solvers.pipeline.blocks import Cover, cover_of, kinds_of, needed
from nmsolve.solvers.pipeline.bounds import work_bound
from nmsolve.solvers.pipeline.cover_engine import CoverBound
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.pricing import Pricing
from nmsolve.solvers.pipeline.sweep import sweep_of


def drawn(seed: int) -> PipelineProblem:
    """Two to seven layers on groups of up to three of four cores, with and without memory and overlap."""
    rng = np.random.default_rng(seed)
    rules: dict[str, object] = {"split": ("any", "contiguous")[seed % 2], "overlap": seed % 3 == 0}
    if seed % 4 < 2:
        rules["memory"] = 2.5
    return random_dag(seed, int(rng.integers(2, 8)), 4, 3, **rules)


def most_valuable(cover: Cover, price: IntArray, ceiling: int) -> IntArray:
    """(S,) the most that prices of a block add up to, on groups of every size, by trying all sets; -1: there is none."""
    count, data = cover.data.count, cover.data
    reach = np.eye(count, dtype=bool)
    for _ in range(count):
        for a, b in data.uses.tolist():
            reach[a] |= reach[b]
    best = np.full(len(cover.sizes), -1)
    for mask in range(2**count):
        block = np.array([mask >> k & 1 for k in range(count)], bool)
        between = reach[block].any(axis=0) & (reach & block).any(axis=1) & ~block
        if data.ordered and between.any():
            continue
        for s in range(len(cover.sizes)):
            if cover.fits(block, s, ceiling):
                best[s] = max(best[s], price[block].sum())
    return best


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_sweep_finds_the_most_valuable_block_of_every_size(seed: int) -> None:
    problem, rng = drawn(seed), np.random.default_rng(seed)
    cover = cover_of(pipeline_data(problem))
    sweep = sweep_of(cover.data, cover.cost, 10**5)
    assert sweep is not None
    pricing = Pricing(cover, sweep, lambda: False)
    price = rng.integers(0, 100, cover.data.count)
    ceiling = int(rng.integers(1, 80) * cover.factor)
    best = most_valuable(cover, price, ceiling)
    for room in (10**4, 2):
        assert pricing.better(price, np.maximum(1, best + 1), ceiling, room).blocks == []
    assert pricing.better(price, np.maximum(1, best + 1), ceiling, 10**4).none
    for s in np.flatnonzero(best > 0).tolist():
        least = np.full(len(best), 10**6)
        least[s] = best[s]
        answer = pricing.better(price, least, ceiling, 10**4)
        assert [int(price[block].sum()) for block in answer.blocks] == [best[s]]
        assert cover.fits(answer.blocks[0], s, ceiling)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_ways_taken_together_are_worth_no_less_than_the_best_block(seed: int) -> None:
    """With room for hardly any way something of that price is found, a block or not."""
    problem, rng = drawn(seed), np.random.default_rng(seed)
    cover = cover_of(pipeline_data(problem))
    sweep = sweep_of(cover.data, cover.cost, 10**5)
    assert sweep is not None
    pricing = Pricing(cover, sweep, lambda: False)
    price = rng.integers(1, 100, cover.data.count)
    ceiling = int(rng.integers(20, 80) * cover.factor)
    for s, best in enumerate(most_valuable(cover, price, ceiling).tolist()):
        asked = pricing.asked(s, price, ceiling)
        if best > 0:
            pricing.relaxed(asked, s, best)
            found, _ = pricing.exact(asked, s, best, 1)
            assert found is not None and price[found].sum() >= best


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_re_check_sees_a_block_where_there_is_one_and_none_where_there_is_none(seed: int) -> None:
    problem, rng = drawn(seed), np.random.default_rng(seed)
    price = [int(p) for p in rng.integers(0, 100, problem.count)]
    sizes, _ = blocks_of(problem, price, int(rng.integers(1, 80)), Fraction(1), 0)
    for size in sizes:
        for least in (1, 20, 50, 100, 150, 200, sum(price)):
            asked = replace(size, least=max(1, least))
            place = rng.permutation(problem.count).tolist()
            swept = recheck_cover._none_swept([asked], problem, place, clock.now() + 60)
            assert swept == recheck_cover._none_of_all(asked)


@pytest.mark.parametrize("partial", [1, 2])
@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_partial_blocks_taken_together_never_hide_one(partial: int, seed: int) -> None:
    """With next to no room the re-check may not decide, but it does not decide wrongly."""
    problem, rng = drawn(seed), np.random.default_rng(seed)
    price = [int(p) for p in rng.integers(1, 100, problem.count)]
    sizes, _ = blocks_of(problem, price, int(rng.integers(10, 80)), Fraction(1), 0)
    before = recheck_sweep.PARTIAL, recheck_sweep.MORE
    recheck_sweep.PARTIAL, recheck_sweep.MORE = partial, 1
    try:
        for size in sizes:
            asked = replace(size, least=max(1, sum(price) // 2))
            swept = recheck_cover._none_swept(
                [asked], problem, list(range(problem.count)), clock.now() + 0.05
            )
            assert swept is None or swept == recheck_cover._none_of_all(asked)
    finally:
        recheck_sweep.PARTIAL, recheck_sweep.MORE = before


def test_the_re_check_gives_a_group_the_memory_of_its_cores() -> None:
    problem = random_dag(1, 6, 4, 3, memory=2.5)
    total = float(problem.storage.sum())
    sizes, _ = blocks_of(problem, [1] * 6, 30, Fraction(1), 0)
    assert [size.memory for size in sizes] == [
        pytest.approx(min(total, 2.5 * c) * 2**46 / total) for c in (1, 2, 3)
    ]


def test_too_many_states_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [([a, a + 3], 1) for a in range(3)]
    assert recheck_sweep.states_of(6, pairs, [], list(range(6))) is not None
    monkeypatch.setattr(recheck_sweep, "STATES", 10)
    assert recheck_sweep.states_of(6, pairs, [], list(range(6))) is None


def bounds_of(problem: PipelineProblem) -> Recorder:
    """What ``cover`` says."""
    context = Recorder(problem)
    CoverBound().run(problem, context)
    return context


@pytest.mark.parametrize("split", ["any", "contiguous"])
def test_groups_are_bounded_better_than_by_work(split: str) -> None:
    """Over ten random problems most of what work alone leaves open is closed."""
    left, closed = 0.0, 0.0
    for seed in range(10):
        problem = random_dag(seed, 5, 4, 3, split=split)
        best, work = optimum(problem), work_bound(problem).value
        value = max((bound.value for bound in bounds_of(problem).bounds), default=work)
        assert value <= best
        left, closed = left + best - work, closed + value - work
    assert closed > 0.6 * left > 0


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_numbers_of_stages_and_cores_only_raise_the_optimum(seed: int) -> None:
    """Exact stages, all cores in use, few stages: the bound holds, and its certificate says the same."""
    rng = np.random.default_rng(seed)
    rules = {"stages": 2, "exact_stages": bool(seed % 2), "use_all": bool(seed % 3 == 0)}
    problem = random_dag(seed, int(rng.integers(2, 6)), 3, 3, split=("any", "contiguous")[seed % 2], **rules)
    best = optimum(problem)
    for bound in bounds_of(problem).bounds[-1:]:
        assert bound.value <= best
        again = recheck_bound(problem, "cover", bound.certificate)
        assert again is not None and bound.value <= again <= best


def test_where_the_sweep_is_too_large_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounds_of(random_dag(3, 6, 3, 1, split="any")).bounds
    monkeypatch.setattr(cover_engine, "NODES", 3)
    assert bounds_of(random_dag(3, 6, 3, 1, split="any")).bounds == []


def test_what_groups_must_hold_by_their_size() -> None:
    """Prices of 10 on three cores at 2: 4 are left for at most two groups, so one holds 2 and 2 for each of its cores."""
    cover = cover_of(pipeline_data(random_dag(1, 4, 3, 3, stages=2)))
    price = np.array([4, 3, 2, 1])
    assert needed(cover, price, 5, core=2).tolist() == [2 * c + 2 for c in cover.sizes.tolist()]
    assert needed(cover, price, 5, core=4).tolist() == [0] * len(cover.sizes)


def test_items_of_a_kind_cannot_be_told_apart_by_times() -> None:
    cover = cover_of(pipeline_data(random_dag(5, 6, 3, 2)))
    kind = kinds_of(cover, tensors=False)
    for i in range(6):
        for j in range(6):
            assert (kind[i] == kind[j]) == (cover.time[i] == cover.time[j]).all()
    finer = kinds_of(cover, tensors=True)
    assert all(kind[i] == kind[j] for i in range(6) for j in range(6) if finer[i] == finer[j])


def test_a_price_of_cores_that_is_no_number_is_refused() -> None:
    problem = random_dag(3, 5, 3, 2)
    honest: dict[str, object] = {
        "ceiling": 5,
        "factor": 1.0,
        "price": [9] * 5,
        "item": list(range(5)),
        "core": 3,
    }
    assert recheck_bound(problem, "cover", honest) is not None
    assert recheck_bound(problem, "cover", honest | {"core": 10**9}) is None
    for bad in (None, "x", True, -1, 0.5, np.nan, 2**53, [1]):
        with pytest.raises(InputError):
            recheck_bound(problem, "cover", honest | {"core": bad})
    for turn in ([], "x", [9], [0.5] * 5):
        with pytest.raises(InputError):
            recheck_bound(problem, "cover", honest | {"turn": turn})
    assert recheck_bound(problem, "cover", honest | {"turn": [4, 4, 0]}) is not None
