"""From plans to cores: traffic between tiles, and the time of several micro-batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans_support import four_layers, random_plan, random_problem

from nmsolve.hw.pipeline.batches import batch_time, start_times
from nmsolve.hw.pipeline.to_graph import crossings, overlaps, tile_graph
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_graph, save_graph
from nmsolve.model.pipeline.plan import PipelinePlan

SEEDS = st.integers(0, 2**32 - 1)


def plan_of(stage: list[int], cores: list[int]) -> PipelinePlan:
    return PipelinePlan(np.array(stage, np.int64), np.array(cores, np.int64))


@given(st.integers(1, 40), st.integers(1, 40))
def test_overlaps_cover_both_sides_in_equal_parts(a: int, b: int) -> None:
    left, right, share = overlaps(a, b)
    assert len(left) <= a + b - 1 and (share > 0).all()
    assert np.allclose(np.bincount(left, weights=share, minlength=a), 1 / a)
    assert np.allclose(np.bincount(right, weights=share, minlength=b), 1 / b)


def test_two_stages_of_two_and_three_tiles_by_hand() -> None:
    graph = tile_graph(four_layers(cores=5), plan_of([0, 0, 1, 1], [2, 3]))
    assert graph.ids == ("s0/0", "s0/1", "s1/0", "s1/1", "s1/2")
    assert graph.sizes[:, 0].tolist() == [15, 15, 24, 24, 24]  # 30 / 2; 70 / 3 rounded up
    sent = {
        (int(u), int(v)): w for u, v, w in zip(graph.edge_source, graph.targets, graph.weights, strict=True)
    }
    # a (100 bytes, to d) and b (50, to c) cross together
    assert sent == pytest.approx({(0, 2): 50, (0, 3): 25, (1, 3): 25, (1, 4): 50})


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans())
def test_bytes_are_conserved(seed: int, hosts: bool) -> None:
    """Between every two stages on cores flow the bytes of the tensors that cross, once per stage that takes them in."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 9)), 8)
    plan = random_plan(rng, problem, hosts)
    if not (plan.cores > 0).any():
        with pytest.raises(InputError, match="host"):
            tile_graph(problem, plan)
        return
    graph = tile_graph(problem, plan)
    k = len(plan.cores)
    wanted = np.zeros((k, k))
    tensors = problem.tensors
    for t in range(tensors.count):
        a = plan.stage[tensors.source[t]]
        users = {int(plan.stage[u]) for u in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]}
        for b in users - {int(a)}:
            if plan.cores[a] and plan.cores[b]:
                wanted[a, b] += tensors.volume[t]
    of = np.repeat(np.arange(k), plan.cores)
    found = np.zeros((k, k))
    np.add.at(found, (of[graph.edge_source], of[graph.targets]), graph.weights)
    assert np.allclose(found, wanted)
    assert graph.n == plan.cores.sum()
    assert (np.bincount(of, weights=graph.sizes[:, 0], minlength=k)[plan.cores > 0]
            >= np.bincount(plan.stage, weights=problem.storage, minlength=k)[plan.cores > 0]).all()  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_whole_tensors_are_multicast_once_and_reach_every_tile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 9)), 8)
    plan = random_plan(rng, problem)
    whole = rng.random(problem.tensors.count) < 0.5
    graph = tile_graph(problem, plan, whole)
    of = np.repeat(np.arange(len(plan.cores)), plan.cores)
    cross = crossings(problem, plan)
    many = whole[cross.tensor]
    volume = problem.tensors.volume
    sent = graph.rate[graph.multicast].sum()
    assert sent == pytest.approx(volume[np.unique(cross.tensor[many])].sum())
    rows = np.repeat(graph.multicast, np.diff(graph.indptr))
    taken = np.bincount(graph.targets[rows], weights=graph.weights[rows], minlength=graph.n)
    wanted = np.bincount(cross.target[many], weights=volume[cross.tensor[many]], minlength=len(plan.cores))
    assert np.allclose(taken, wanted[of])
    assert graph.weights[~rows].sum() == pytest.approx(volume[cross.tensor[~many]].sum())


def test_what_a_stage_exchanges_goes_round() -> None:
    """Each of three tiles receives a third of what the layers of its stage exchange on three cores, from the tile before it."""
    problem, plan = four_layers(cores=5), plan_of([0, 0, 1, 1], [1, 3])
    received = np.arange(4)[:, None] * np.array([0.0, 30.0, 300.0, 0.0, 0.0])
    without, graph = tile_graph(problem, plan), tile_graph(problem, plan, received=received)
    added = np.zeros((4, 4))
    for g, sign in ((graph, 1), (without, -1)):
        np.add.at(added, (np.repeat(g.source, np.diff(g.indptr)), g.targets), sign * g.weights)
    ring = added[[1, 2, 3], [2, 3, 1]]
    assert ring == pytest.approx((2 * 300 + 3 * 300) / 3) and added.sum() == pytest.approx(2 * 300 + 3 * 300)
    assert tile_graph(problem, plan_of([0, 0, 1, 1], [1, 1]), received=received).m == 1


def test_a_graph_of_tiles_survives_its_file(tmp_path: object) -> None:
    graph = tile_graph(four_layers(cores=5), plan_of([0, 0, 1, 1], [2, 3]), np.array([True, False, False]))
    path = f"{tmp_path}/tiles.json"
    save_graph(graph, path)
    assert load_graph(path).hash == graph.hash


def test_equal_stages_have_the_textbook_bubble() -> None:
    problem = four_layers()
    for batches in (1, 2, 7, 100):
        found = batch_time(problem, plan_of([0, 1, 2, 3], [1, 1, 1, 1]), np.full(4, 3.0), batches)
        assert found is not None
        assert found.share == pytest.approx(3 / (batches + 3))
        assert found.utilisation == pytest.approx(batches / (batches + 3))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_batch_time_is_what_a_simulation_of_the_stages_gives(seed: int, batches: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(2, 9)), 8)
    plan = random_plan(rng, problem)
    load = rng.integers(0, 9, len(plan.cores)).astype(float)
    found = batch_time(problem, plan, load, batches)
    start = start_times(problem, plan, load, batches)
    assert (found is None) == (start is None)
    if found is not None and start is not None:
        assert found.total == pytest.approx(float((start + load[:, None]).max()))
        assert found.bubble == pytest.approx(found.total - batches * load.max())


def test_stages_in_a_circle_have_no_batch_time() -> None:
    plan = plan_of([0, 1, 0, 1], [2, 2])
    assert batch_time(four_layers(), plan, np.ones(2), 3) is None
    assert start_times(four_layers(), plan, np.ones(2), 3) is None
