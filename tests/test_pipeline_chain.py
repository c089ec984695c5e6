"""The exact chain partition against enumeration and against the plain dynamic program."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines_support import best_chain, best_is_least, every_chain

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.groups import ONE_GROUP, Groups
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors


@st.composite
def chains(draw: st.DrawFn, largest: int = 5) -> PipelineProblem:
    """Small chains with tensors that skip layers, fractions whose sums are exact or whole numbers, and any mix of the limits."""
    count, cores = draw(st.integers(1, largest)), draw(st.integers(1, 4))
    number = draw(st.sampled_from([st.integers(0, 20).map(float), st.floats(0, 10, width=16)]))
    size = draw(st.integers(1, cores))
    rows = [sorted(draw(st.lists(number, min_size=size, max_size=size)), reverse=True) for _ in range(count)]
    source = sorted(draw(st.lists(st.integers(0, count - 2), max_size=6))) if count > 1 else []
    uses = [sorted(draw(st.sets(st.integers(s + 1, count - 1), max_size=3))) for s in source]
    tensors = Tensors(
        np.array(source, np.int64),
        np.cumsum([0, *map(len, uses)]),
        np.array([v for u in uses for v in u], np.int64),
        np.array([draw(number) for _ in source]),
        np.ones(len(source)),
    )
    hosts = draw(st.integers(0, 2))
    host_time = np.array([draw(st.one_of(number, st.just(math.inf))) for _ in range(count)])
    stages = draw(st.integers(1, count))
    return PipelineProblem(
        name="small",
        labels=tuple(f"l{k}" for k in range(count)),
        time=np.array(rows),
        storage=np.array([draw(number) for _ in range(count)]),
        tensors=tensors,
        cores=cores,
        stages=stages,
        exact_stages=draw(st.booleans()) and stages <= cores + hosts,
        use_all=draw(st.booleans()),
        memory=draw(st.one_of(st.none(), number)),
        overlap=draw(st.booleans()),
        split="chain",
        groups=Groups(border=draw(st.booleans())),
        host_time=draw(st.sampled_from([None, host_time])),
        hosts=hosts,
        together=draw(
            st.sampled_from(
                [None, np.array([draw(st.sampled_from([-1, 0, 1, 10**15])) for _ in range(count)])]
            )
        ),
    )


@given(chains())
@settings(max_examples=150, deadline=None)
def test_no_chain_of_stages_is_better(problem: PipelineProblem) -> None:
    """Least objective over all plans without a complaint, of those fewest stages; none where none is allowed."""
    best_is_least(problem)


@given(chains())
@settings(max_examples=100, deadline=None)
def test_the_second_look_agrees(problem: PipelineProblem) -> None:
    """The bound holds at the optimum and at nothing above it, down to the next float."""
    value = best_chain(problem).value
    assert chain_bound_holds(problem, value)
    if math.isfinite(value):
        assert not chain_bound_holds(problem, math.nextafter(value, math.inf))


@given(chains(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_layers_in_another_order(problem: PipelineProblem, random: Random) -> None:
    """An order of the layers gives what the chain gives whose layers are numbered so; tensors may then point backwards."""
    order, problem = (
        list(range(problem.count)),
        replace(problem, groups=ONE_GROUP),
    )  # which is for chains alone
    random.shuffle(order)
    place = np.argsort(order)
    contiguous = replace(
        problem,
        split="any",
        labels=tuple(problem.labels[k] for k in order),
        time=problem.time[order],
        storage=problem.storage[order],
        tensors=replace(
            problem.tensors, source=place[problem.tensors.source], targets=place[problem.tensors.targets]
        ),
        host_time=None if problem.host_time is None else problem.host_time[order],
        together=None if problem.together is None else problem.together[order],
    )
    plan, value = ChainPartition(problem).in_order(np.array(order))
    other, same = ChainPartition(contiguous).in_order(np.arange(problem.count))
    assert value == same
    if plan is not None and other is not None:
        assert plan.stage[order].tolist() == other.stage.tolist()
        assert plan_complaint(replace(problem, split="any"), plan) is None
        assert objective(problem, plan) == value
    allowed = (p for p in every_chain(contiguous) if plan_complaint(contiguous, p) is None)
    assert value == min((objective(contiguous, p) for p in allowed), default=math.inf)


def plain_program(problem: PipelineProblem) -> float:
    """O(L^2 N^2): best[j][n], the least largest load of the first j layers on n cores. No limits but the cores."""
    count, cores = problem.count, problem.cores
    load = np.empty((count, count + 1, cores))
    source, target = problem.tensors.pairs
    for i in range(count):
        for j in range(i + 1, count + 1):
            inside = {k for k in range(problem.tensors.count) if i <= problem.tensors.source[k] < j}
            users = np.searchsorted(problem.tensors.indptr, np.arange(len(source)), side="right") - 1
            into = {t for t, v in zip(users, target, strict=True) if i <= v < j} - inside
            out = {t for t, v in zip(users, target, strict=True) if not i <= v < j} & inside
            move = sum(problem.tensors.time[t] for t in sorted(into | out))
            load[i, j] = problem.time[i:j].sum(axis=0) + move
    best = np.full((count + 1, cores + 1), math.inf)
    best[0] = 0.0
    for j in range(1, count + 1):
        for n in range(1, cores + 1):
            best[j, n] = min(
                max(best[i, n - c], load[i, j, c - 1]) for i in range(j) for c in range(1, n + 1)
            )
    return float(best[count, cores])


def tiled_chain(count: int, cores: int, seed: int) -> PipelineProblem:
    """Layers of up to 400 tiles, a third of them without work, and tensors that skip up to five layers."""
    draw = np.random.default_rng(seed)
    tiles = draw.integers(1, 400, count) * (draw.random(count) < 0.7)
    uses = [np.unique(np.minimum(k + draw.integers(1, 6, 2), count - 1)) for k in range(count - 1)]
    tensors = Tensors(
        np.arange(count - 1),
        np.cumsum([0, *map(len, uses)]),
        np.concatenate(uses),
        draw.random(count - 1) * 9,
        np.ones(count - 1),
    )
    return PipelineProblem(
        name="tiled",
        labels=tuple(map(str, range(count))),
        time=np.ceil(tiles[:, None] / np.arange(1, cores + 1)) * 1.37,
        storage=draw.random(count),
        tensors=tensors,
        cores=cores,
        stages=count,
        split="chain",
    )


@pytest.mark.parametrize("seed", range(4))
def test_forty_layers_as_the_plain_program_has_it(seed: int) -> None:
    """40 layers on 12 cores: the same optimum, but for the order in which floats are added."""
    problem = tiled_chain(40, 12, seed)
    assert best_chain(problem).value == pytest.approx(plain_program(problem), rel=1e-12)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"memory": 0.9},
        {"stages": 5},
        {"stages": 9, "exact_stages": True},
        {"use_all": True},
        {"overlap": True},
        {"hosts": 2, "host_time": np.full(150, 40.0)},
    ],
    ids=lambda limits: ",".join(limits) or "free",
)
def test_long_chains_are_certified(limits: dict[str, Any]) -> None:
    """150 layers on 96 cores, under every limit: an allowed plan, and a bound that the second look confirms."""
    problem = replace(tiled_chain(150, 96, 7), **limits)
    answer = best_chain(problem)
    assert answer.plan is not None and plan_complaint(problem, answer.plan) is None
    assert chain_bound_holds(problem, answer.value)
    assert not chain_bound_holds(problem, math.nextafter(answer.value, math.inf))
    if problem.use_all:
        assert answer.plan.cores.sum() == 96


def test_group_sizes_limit_the_number_of_stages() -> None:
    """All 6 cores in groups of at most 2 make at least three stages, although one group of two would be faster."""
    free = tiled_chain(4, 2, 1)
    tensors = replace(free.tensors, time=np.full(3, 1e4))
    problem = replace(free, cores=6, tensors=tensors)
    assert len(best_chain(problem).plan.cores) == 1  # type: ignore[union-attr]
    answer = best_chain(replace(problem, use_all=True))
    assert answer.plan is not None and answer.plan.cores.tolist() == [2, 2, 2]


def test_nothing_fits() -> None:
    """A layer that needs more memory than all cores have: no plan, and that is proved."""
    problem = replace(tiled_chain(5, 4, 0), memory=0.01)
    assert best_chain(problem) == (None, math.inf, True)
    assert chain_bound_holds(problem, math.inf)


def test_other_splits_allow_more() -> None:
    """The best chain is an answer to a problem that allows other stages too, but proves nothing there."""
    problem = tiled_chain(12, 4, 3)
    assert best_chain(problem).proved
    assert not best_chain(replace(problem, split="contiguous")).proved


def test_many_orders_of_one_problem() -> None:
    """A partition made ready once gives the same for every order, whatever it did before."""
    problem = replace(tiled_chain(30, 8, 2), split="any")
    ready, draw = ChainPartition(problem), np.random.default_rng(0)
    for _ in range(5):
        order = draw.permutation(problem.count)
        plan, value = ready.in_order(order)
        again, same = ChainPartition(problem).in_order(order)
        assert value == same and plan is not None and again is not None
        assert plan.stage.tolist() == again.stage.tolist()
