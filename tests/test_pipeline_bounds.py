"""Bounds of pipelines: never above the optimum, as good as they should be, and the same from their certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import Recorder, optimum, random_dag

from nmsolve.check.pipeline.recheck import recheck_bound
from nmsolve.heuristics.pipeline.local import PipelineLocal
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.pipeline.blocks import best_prices, cover_of, host_share
from nmsolve.solvers.pipeline.bounds import CountingBounds, cheapest_company, layer_bound, work_bound
from nmsolve.solvers.pipeline.cover_engine import CoverBound
from nmsolve.solvers.pipeline.data import pipeline_data


def varied(seed: int, layers: int, largest: int) -> PipelineProblem:
    """Problems of all kinds: hosts, memory, overlap, classes, both splits."""
    rng = np.random.default_rng(seed)
    given: dict[str, object] = {"split": ("contiguous", "any")[seed % 2], "overlap": seed % 5 == 0}
    if seed % 3 == 0:
        host_time = rng.integers(2, 60, layers).astype(np.float64)
        host_time[rng.random(layers) < 0.2] = np.inf
        given |= {"hosts": 1, "host_time": host_time, "stages": 3}
    if seed % 4 == 1:
        given["memory"] = 16.0
    if seed % 7 < 2:
        given["together"] = rng.integers(-1, 2, layers)
    return random_dag(seed, layers, 2 + seed % 2, largest, **given)


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_counting_is_never_above_the_optimum_and_its_certificates_say_the_same(
    seed: int, layers: int
) -> None:
    problem = varied(seed, layers, 1 + seed % 2)
    best = optimum(problem)
    context = Recorder(problem)
    CountingBounds().run(problem, context)
    for bound in context.bounds:
        assert bound.value <= best
        again = recheck_bound(problem, bound.method, bound.certificate)
        assert again is not None and bound.value <= again <= best


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_blocks_are_never_above_the_optimum_and_their_certificates_say_the_same(
    seed: int, layers: int, largest: int, known: bool
) -> None:
    problem = varied(seed, min(layers, 5 if largest > 1 else 6), largest)
    best = optimum(problem)
    context = Recorder(problem)
    if known:
        PipelineLocal().run(problem, context)
    CoverBound().run(problem, context)
    for bound in context.bounds:
        assert bound.value <= best * (1 + 1e-12)
    for bound in context.bounds[-1:]:
        again = recheck_bound(problem, bound.method, bound.certificate)
        assert again is not None
        assert bound.value <= again <= best or best == np.inf
        assert again == pytest.approx(bound.value, rel=1e-6) or best == np.inf


def test_blocks_prove_optima_that_counting_does_not() -> None:
    """Five equal layers in a row for two cores: one core gets three, and a tensor is cut."""
    problem = random_dag(3, 5, 2, 1)
    tensors = problem.tensors
    chain = type(tensors)(np.arange(4), np.arange(5), np.arange(1, 5), np.full(4, 2.0), np.ones(4))
    problem = type(problem)("five", problem.labels, np.full((5, 1), 10.0), np.ones(5), chain, 2, 2)
    assert work_bound(problem).value == pytest.approx(25)
    assert layer_bound(problem).value == pytest.approx(14)
    context = Recorder(problem)
    CoverBound().run(problem, context)
    assert context.bound() == pytest.approx(32)
    assert optimum(problem) == 32


def test_decimals_that_fit_to_the_last_digit_are_in_the_blocks() -> None:
    """1.9 + 0.3, rounded once, is the memory of a core: both share one, and no bound is above that plan."""
    none = np.empty(0, np.int64)
    problem = PipelineProblem(
        "decimals", ("a", "b", "c"), np.array([[1.0], [1.0], [2.0]]), np.array([1.9, 0.3, 1.0]),
        Tensors(none, np.zeros(1, np.int64), none, np.empty(0), np.empty(0)), 2, 2, split="any", memory=1.9 + 0.3,
    )  # fmt: skip
    assert optimum(problem) == 2.0
    cover = cover_of(pipeline_data(problem))
    assert cover.time[0, 0] > cover.time[1, 0]  # c is the first item
    assert cover.storage[1:].sum() <= cover.room[0] < cover.storage.sum()
    context = Recorder(problem)
    CoverBound().run(problem, context)
    assert context.bound() <= 2.0


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_cheapest_company_is_the_cheapest_of_all_sets(seed: int, layers: int) -> None:
    problem = random_dag(seed, layers, 3, 2, split="any")
    tensors = problem.tensors
    for layer in range(layers):
        costs = []
        for mask in range(2**layers):
            if not mask >> layer & 1:
                continue
            inside = np.array([mask >> k & 1 for k in range(layers)], bool)
            cost = problem.time[inside, 1].sum()
            for t in range(tensors.count):
                ends = {
                    int(tensors.source[t]),
                    *tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist(),
                }
                cost += tensors.time[t] if 0 < sum(inside[k] for k in ends) < len(ends) else 0
            costs.append(cost)
        assert cheapest_company(problem, layer) == pytest.approx(min(costs), rel=1e-6)
        assert cheapest_company(problem, layer) <= min(costs)


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_hosts_hold_no_more_than_the_best_choice_of_parts(seed: int, layers: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_dag(
        seed, layers, 2, 1, hosts=2, host_time=rng.integers(0, 9, layers).astype(float), stages=4
    )
    cover = cover_of(pipeline_data(problem))
    price = rng.integers(0, 100, cover.data.count)
    ceiling = int(rng.integers(0, 20) * cover.factor)
    share = host_share(cover, price, ceiling)
    for mask in range(2**layers):
        inside = np.array([mask >> k & 1 for k in range(layers)], bool)
        if cover.host[inside].sum() <= cover.hosts * ceiling:
            assert price[inside].sum() <= share * (1 + 1e-9)
    every = np.arange(cover.data.count), np.ones((1, cover.data.count), bool), np.ones(1, np.int64)
    best = best_prices(cover, *every, max(1, ceiling))
    assert (
        best.item.sum() <= best.core * (1 + 1e-9) + (1 - 2 * best.core) / cover.groups + 1e-9
        and best.worth <= 1 + 1e-9
    )


def test_what_cover_refuses() -> None:
    assert "exactly" in str(CoverBound().refuses(random_dag(1, 4, 2, 1, split="chain")))
    assert CoverBound().refuses(random_dag(1, 4, 2, 2)) is None
    assert CoverBound().refuses(random_dag(1, 4, 2, 1)) is None


def test_wrong_certificates_prove_nothing() -> None:
    problem = random_dag(3, 5, 2, 1)
    best = optimum(problem)
    price, item = [1] * 5, list(range(5))
    lie = {
        "method": "cover",
        "ceiling": int(best),
        "factor": 1.0,
        "price": price,
        "item": item,
        "below": float("inf"),
    }
    assert recheck_bound(problem, "cover", lie) is None
    with pytest.raises(InputError, match="unknown method"):
        recheck_bound(problem, "faith", {})
    with pytest.raises(InputError, match="do not fit"):
        recheck_bound(problem, "cover", lie | {"item": [0, 1]})
    with pytest.raises(InputError, match="rate is -1"):
        recheck_bound(problem, "work", {"method": "work", "rate": -1.0})
    with pytest.raises(InputError, match="its method is 'work'"):
        recheck_bound(problem, "layer", {"method": "work", "layer": 0})
    wrong: list[object] = [None, "x", True, np.nan, np.inf, -1.0, 10**400, 5.5, [1], 7]
    for value in wrong:
        with pytest.raises(InputError):
            recheck_bound(problem, "layer", {"layer": value})
    for name in ("ceiling", "factor"):
        for bad in (None, "x", True, np.nan, np.inf, -1.0, 10**400, [1], 1e-320):
            if (name, bad) != ("factor", 10**400):
                with pytest.raises(InputError):
                    recheck_bound(problem, "cover", lie | {name: bad})
    for name in ("price", "item"):
        for bad in (
            None,
            "x",
            3,
            [],
            [1, 2],
            [0.5] * 5,
            [-1] * 5,
            ["a"] * 5,
            [10**400] * 5,
            [np.nan] * 5,
            [[1]] * 5,
        ):
            with pytest.raises(InputError):
                recheck_bound(problem, "cover", lie | {name: bad})


def test_nothing_is_rounded_up_where_prices_or_times_are_not_whole() -> None:
    """Prices that are not whole bought any bound: the part of one group was rounded up as if they were."""
    problem = random_dag(3, 5, 2, 1)
    best = optimum(problem)
    total = float(problem.time.sum() + problem.tensors.time.sum())
    for price in ([1e-7] * 5, [0.2] * 5, [1, 1, 1, 1, 0.5]):
        for ceiling in range(int(best), int(total) + 1):
            forged = {"ceiling": ceiling, "factor": 1.0, "price": price, "item": list(range(5))}
            with pytest.raises(InputError, match="whole numbers"):
                recheck_bound(problem, "cover", forged)
    sent = problem.tensors
    sent = type(sent)(sent.source, sent.indptr, sent.targets, sent.time * 1e-12, sent.volume)
    tiny = type(problem)("tiny", problem.labels, problem.time * 1e-12, problem.storage, sent, 2, 2)
    least = optimum(tiny)
    for ceiling in range(40):
        for factor in (1.0, 1e9, 1e11, 1e12, 3e12, 1e13):
            forged = {"ceiling": ceiling, "factor": factor, "price": [3, 2, 2, 1, 1], "item": list(range(5))}
            found = recheck_bound(tiny, "cover", forged)
            assert found is None or found <= least
