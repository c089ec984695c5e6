"""Searches for pipelines: every plan they offer is allowed, small problems end at the optimum, seeds decide everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import Recorder, best_chain, optimum, random_dag

from nmsolve.heuristics.pipeline.local import GroupsLocal, PipelineLocal, polish
from nmsolve.heuristics.pipeline.moves import energy, ground_of, load, shift, state_of
from nmsolve.heuristics.pipeline.orders import Breeding, Orders, depth_first, ready_order
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=15, deadline=None)
def test_small_contiguous_problems_end_at_the_optimum(seed: int, memory: bool) -> None:
    problem = random_dag(seed, 5, 3, 2, memory=12.0 if memory else None, overlap=seed % 3 == 0)
    context = Recorder(problem, seed=1)
    Orders().run(problem, context)
    assert not context.complaints
    assert context.value == optimum(problem)


def test_moves_find_most_optima_where_no_order_is_asked() -> None:
    found = 0
    for seed in range(12):
        problem = random_dag(
            seed, 5, 3, 2, split="any", memory=16.0 if seed % 3 == 0 else None, overlap=seed % 2 == 0
        )
        context, best = Recorder(problem, seed=1), optimum(problem)
        PipelineLocal().run(problem, context)
        assert not context.complaints
        assert context.value >= best
        found += context.value == best
    assert found >= 10


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_hosts_and_classes_are_searched_by_their_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_dag(seed, 6, 2, 1, stages=3, hosts=1, host_time=rng.integers(5, 60, 6).astype(float),
                         together=rng.integers(-1, 2, 6))  # fmt: skip
    context = Recorder(problem, seed=1)
    Orders().run(problem, context)
    assert context.value == optimum(problem)
    PipelineLocal().run(problem, context)
    assert not context.complaints


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(2, 6))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_actions_end_at_the_optimum_of_small_chains(seed: int, layers: int, cores: int) -> None:
    problem = random_dag(seed, layers, cores, 3, split="chain")
    context = Recorder(problem, seed=seed)
    GroupsLocal().run(problem, context)
    assert not context.complaints
    assert context.value == best_chain(problem).value


@given(st.integers(0, 10**6), st.integers(2, 12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_loads_follow_every_move(seed: int, layers: int, overlap: bool) -> None:
    problem = random_dag(
        seed, layers, 4, 2, split="any", overlap=overlap, hosts=1, host_time=np.arange(1.0, layers + 1)
    )
    rng = np.random.default_rng(seed)
    cores = np.array([1, 2, 0, 1])
    merged = merge(problem)
    stage = rng.integers(0, 4, problem.count)
    ground = ground_of(merged, 1.0)
    state = state_of(ground, PipelinePlan(stage, cores))
    for _ in range(30):
        shift(ground, state, int(rng.integers(layers)), int(rng.integers(4)))
        loads = stage_loads(merged.problem, PipelinePlan(state.stage, cores))
        np.testing.assert_allclose([load(ground, state, k) for k in range(4)], loads.load)
    out = np.zeros(2)
    energy(ground, state, out)
    np.testing.assert_allclose(out, [loads.load.max(), (loads.load**12).sum()])
    fresh = state_of(ground, PipelinePlan(state.stage, cores))
    for kept, again in zip(state, fresh, strict=True):
        np.testing.assert_allclose(kept, again, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 40))
@settings(max_examples=60, deadline=None)
def test_keys_and_topological_orders_turn_into_each_other(seed: int, layers: int) -> None:
    merged = merge(random_dag(seed, layers, 2, 1))
    waits = np.bincount(merged.after, minlength=layers)
    start = np.searchsorted(merged.before, np.arange(layers + 1))
    keys = np.random.default_rng(seed).random(layers)
    for order in (ready_order(keys, waits, start, merged.after), depth_first(waits, start, merged.after)):
        place = np.argsort(order)
        np.testing.assert_array_equal(np.sort(order), np.arange(layers))
        assert (place[merged.before] < place[merged.after]).all()
        again = ready_order(Breeding.as_keys(order), waits, start, merged.after)
        np.testing.assert_array_equal(again, order)


@pytest.mark.parametrize("engine", [Orders, PipelineLocal])
def test_the_seed_decides_and_more_time_is_never_worse(engine: type) -> None:
    problem = random_dag(7, 30, 5, 1, split="contiguous")
    found = []
    for _ in range(2):
        context = Recorder(problem, seed=3)
        engine().run(problem, context)
        assert not context.complaints
        found.append((context.value, context.values))
    assert found[0] == found[1]
    start = PipelinePlan.unpacked(problem, context.best)
    better = polish(merge(problem), merge(problem).lower(start), context, np.random.default_rng(0))
    assert objective(problem, merge(problem).lift(better)) <= context.value


def test_what_engines_refuse() -> None:
    chain = random_dag(1, 5, 3, 1, split="chain")
    assert "--split chain" in str(Orders().refuses(chain))
    assert "exactly" in str(PipelineLocal().refuses(chain))
    assert GroupsLocal().refuses(chain) is None
    assert "single core" in str(GroupsLocal().refuses(random_dag(1, 5, 1, 1, split="chain")))
    assert "fixed" in str(
        GroupsLocal().refuses(random_dag(1, 5, 3, 1, split="chain", stages=2, exact_stages=True))
    )


def test_fixed_numbers_of_stages_and_cores_are_kept() -> None:
    for seed in range(5):
        problem = random_dag(seed, 6, 4, 3, stages=3, exact_stages=True, use_all=True)
        context = Recorder(problem, seed=1)
        Orders().run(problem, context)
        PipelineLocal().run(problem, context)
        assert not context.complaints and np.isfinite(context.value)


def test_without_room_nothing_is_offered() -> None:
    problem = random_dag(2, 6, 2, 1, memory=0.5)
    for engine in (Orders(), PipelineLocal(), GroupsLocal()):
        context = Recorder(problem, seed=1)
        engine.run(problem, context)
        assert context.best is None and not context.complaints
