"""The exact contiguous partition against all plans of small graphs, and what it says when it cannot finish."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.pipeline.downsets import best_contiguous
from nmsolve.heuristics.pipeline.lattice import lattice_of
from nmsolve.heuristics.pipeline.poset import poset_of
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors

BERT = Path(__file__).parents[1] / "nmsolve/benchmarks/instances/dnn/layer_bert24_inference.json"


def plenty() -> float:
    """Seconds that never end."""
    return 1e9


def tensors(uses: dict[int, set[int]], times: list[float]) -> Tensors:
    """One tensor per source."""
    targets = [sorted(used) for used in uses.values()]
    return Tensors(
        np.array(list(uses), np.int64), np.concatenate([[0], np.cumsum([len(t) for t in targets])]).astype(np.int64),
        np.array([t for used in targets for t in used], np.int64), np.array(times, np.float64), np.zeros(len(uses)),
    )  # fmt: skip


def all_plans(problem: PipelineProblem) -> Iterator[PipelinePlan]:
    """Every plan that the plain check lets pass."""
    for stages in range(1, min(problem.stages, problem.count) + 1):
        sizes = [
            c
            for c in itertools.product(range(problem.largest_group + 1), repeat=stages)
            if sum(c) <= problem.cores
        ]
        for stage in itertools.product(range(stages), repeat=problem.count):
            if len(set(stage)) < stages:
                continue
            for cores in sizes:
                plan = PipelinePlan(np.array(stage, np.int64), np.array(cores, np.int64))
                if plan_complaint(problem, plan) is None:
                    yield plan


@st.composite
def problems(draw: st.DrawFn) -> PipelineProblem:
    """Up to five layers with everything that the search must respect."""
    count = draw(st.integers(1, 5))
    numbers = st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.0, 3.5, 7.0])
    groups = draw(st.integers(1, 3))
    time = np.array([draw(st.lists(numbers, min_size=groups, max_size=groups)) for _ in range(count)])
    time = np.sort(time, axis=1)[:, ::-1].copy()
    uses = {u: draw(st.sets(st.integers(u + 1, count - 1), max_size=3)) for u in range(count - 1)}
    uses = {u: used for u, used in uses.items() if used}
    hosts = draw(st.integers(0, 2))
    cores = draw(st.integers(1, 3))
    host_time = np.array([draw(st.sampled_from([0.0, 1.0, 5.0, np.inf])) for _ in range(count)])
    together = np.array([draw(st.sampled_from([-1, -1, 0, 1])) for _ in range(count)], np.int64)
    return PipelineProblem(
        name="random",
        labels=tuple("abcde"[:count]),
        time=time,
        storage=np.array([draw(numbers) for _ in range(count)]),
        tensors=tensors(uses, [draw(numbers) for _ in uses]),
        cores=cores,
        stages=(stages := draw(st.integers(1, min(count, cores + hosts)))),
        exact_stages=draw(st.booleans()) and stages <= min(cores + hosts, count),
        use_all=draw(st.booleans()),
        memory=draw(st.sampled_from([None, None, 0.3, 2.0, 4.5, 8.0])),
        overlap=draw(st.booleans()),
        split=draw(st.sampled_from(["contiguous", "contiguous", "chain"])),
        host_time=host_time if hosts else None,
        hosts=hosts,
        together=together if draw(st.booleans()) else None,
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_the_best_of_all_plans_is_found_and_proved(problem: PipelineProblem) -> None:
    """Together, memory, hosts, groups, overlap, fixed numbers of stages and cores; or that there is none."""
    best = min((objective(problem, plan) for plan in all_plans(problem)), default=None)
    news: list[tuple[PipelinePlan | None, float]] = []
    plan, bound, proved = best_contiguous(problem, plenty, news=lambda *said: news.append(said))
    assert proved
    assert all(told <= bound for _, told in news)
    assert all(plan_complaint(problem, found) is None for found, _ in news if found is not None)
    if best is None:
        assert plan is None and bound == np.inf
        return
    assert plan is not None and plan_complaint(problem, plan) is None
    assert objective(problem, plan) == bound == best


def diamond(**more: object) -> PipelineProblem:
    """a -> b, c -> d; b and c beside each other."""
    problem = PipelineProblem(
        name="diamond",
        labels=("a", "b", "c", "d"),
        time=np.array([[2.0], [5.0], [5.0], [2.0]]),
        storage=np.array([1.0, 1.0, 1.0, 1.0]),
        tensors=tensors({0: {1, 2}, 1: {3}, 2: {3}}, [0.5, 0.25, 0.25]),
        cores=2,
        stages=2,
    )
    return replace(problem, **more)  # type: ignore[arg-type]


def value(problem: PipelineProblem) -> float:
    plan, bound, proved = best_contiguous(problem, plenty)
    assert proved and plan is not None and plan_complaint(problem, plan) is None
    assert objective(problem, plan) == bound
    return bound


def test_small_cases_worked_out_by_hand() -> None:
    """Each rule moves the optimum as it should."""
    assert value(diamond()) == 7 + 0.5 + 0.25
    assert value(diamond(overlap=True)) == 7
    assert value(diamond(together=np.array([-1, 3, 3, -1]))) == 12 + 0.5
    assert value(diamond(together=np.array([0, -1, -1, 0]))) == 14
    assert value(diamond(hosts=2, stages=4, host_time=np.array([3.0, 9.0, 9.0, 3.0]))) == 5 + 0.5 + 0.25
    assert value(diamond(memory=3.0)) == 7.75
    assert value(diamond(cores=1, stages=1)) == 14


def test_without_enough_memory_there_is_no_plan() -> None:
    """The proof says so."""
    assert best_contiguous(diamond(memory=1.5), plenty) == (None, np.inf, True)


def test_cyclic_classes_are_one() -> None:
    """b and c in one class with what is between them forces d in too."""
    problem = diamond(
        tensors=tensors({0: {1}, 1: {2}, 2: {3}}, [0.0, 0.0, 0.0]), together=np.array([-1, 1, -1, 1])
    )
    assert value(problem) == 12


def test_the_published_optimum_of_bert_24() -> None:
    """17.7899, from 30 downsets or fewer."""
    problem = load_cost_graph(BERT)
    assert value(problem) == pytest.approx(17.7899, abs=5e-5)
    lattice, seen = lattice_of(problem, poset_of(problem), 1000, plenty)
    assert lattice is not None and seen <= 30


def fork(width: int) -> PipelineProblem:
    """Two to the power of ``width`` downsets and two more."""
    count = width + 2
    uses = {0: set(range(1, count - 1))} | {u: {count - 1} for u in range(1, count - 1)}
    return PipelineProblem(
        name="fork",
        labels=tuple(f"layer {k}" for k in range(count)),
        time=np.arange(1.0, count + 1)[:, None],
        storage=np.zeros(count),
        tensors=tensors(uses, [1.0] * (count - 1)),
        cores=3,
        stages=3,
    )


def test_too_many_downsets_leave_a_plan_and_a_valid_bound() -> None:
    """The number seen is said; the plan of one order stands."""
    notes: list[str] = []
    news: list[float] = []
    plan, bound, proved = best_contiguous(
        fork(20), plenty, memory=1_000_000, note=notes.append, news=lambda plan, bound: news.append(bound)
    )
    assert not proved and plan is not None
    assert plan_complaint(fork(20), plan) is None
    assert 0 < bound <= objective(fork(20), plan)
    assert "no memory" in notes[0] and "seen" in notes[0]
    assert news == sorted(news)


@pytest.mark.parametrize("looks", range(1, 12))
def test_the_bound_is_valid_whenever_time_is_up(looks: int) -> None:
    """Guesses about one order bound nothing: cut short anywhere, the bound holds and the plan keeps the rules."""
    problem = fork(5)
    best = value(problem)
    left = iter([1.0] * looks)
    plan, bound, _ = best_contiguous(problem, lambda: next(left, 0.0))
    assert bound <= best
    assert plan is None or objective(problem, plan) >= best


def test_time_up_at_once_says_so() -> None:
    """No plan, but still a bound."""
    notes: list[str] = []
    plan, bound, proved = best_contiguous(fork(5), lambda: 0.0, note=notes.append)
    assert (plan, proved) == (None, False)
    assert 0 < bound < np.inf
    assert "time" in notes[0]


def test_groups_of_cores_on_a_wide_graph_match_the_core_count() -> None:
    """Perfectly divisible work on groups: one group of all cores is as good as the work allows."""
    problem = fork(6)
    time = problem.time / np.arange(1, 5)
    problem = replace(
        problem, time=time, cores=4, stages=4, tensors=replace(problem.tensors, time=np.ones(7))
    )
    assert value(problem) == pytest.approx(36 / 4)
