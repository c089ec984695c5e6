"""The exact models of pipelines against trying every plan; reductions and bounds that never claim too much."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.stop import Stop
from nmsolve.solvers.pipeline import cpsat, mip
from nmsolve.solvers.pipeline.bounds import cheapest_company as apart
from nmsolve.solvers.pipeline.checker import PipelineChecker
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.exact import PipelineCpSat, PipelineMip
from nmsolve.solvers.pipeline.resplit import Resplit
from nmsolve.solvers.pipeline.whole import whole_numbers
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.mip import solve_highs

SLOW = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def tensors_of(edges: dict[int, tuple[list[int], float]]) -> Tensors:
    """Tensors from ``{source: (users, time)}``."""
    users = [u for u, _ in edges.values()]
    return Tensors(
        np.array(list(edges), np.int64),
        np.concatenate([[0], np.cumsum([len(u) for u in users])]).astype(np.int64),
        np.array([b for u in users for b in u], np.int64),
        np.array([t for _, t in edges.values()], float),
        np.zeros(len(edges)),
    )


@st.composite
def problems(draw: st.DrawFn) -> PipelineProblem:
    """Problems of up to five layers in topological order, with every rule switched on and off."""
    n, groups = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    number = draw(
        st.sampled_from([st.integers(0, 9), st.floats(0, 9).map(lambda x: round(x, 3)), st.floats(0, 9)])
    )
    first = np.array([draw(number) for _ in range(n)], float)
    shrink = np.array([draw(st.floats(0.4, 1)) for _ in range(n)])
    time = np.stack([first, first * shrink], axis=1)[:, :groups]
    edges = {}
    for a in range(n - 1):
        users = [b for b in range(a + 1, n) if draw(st.booleans())]
        if users:
            edges[a] = (users, float(draw(number)))
    hosts = draw(st.integers(0, 1))
    host = np.array([draw(st.sampled_from([1.0, 5.0, 20.0, math.inf])) for _ in range(n)]) if hosts else None
    storage = np.array([float(draw(st.integers(0, 4))) for _ in range(n)])
    cores = draw(st.integers(1, 3))
    stages = draw(st.integers(1, min(3, n, cores + hosts)))
    split = draw(st.sampled_from(["chain", "contiguous", "any", "any"]))
    joined = draw(st.booleans()) and split == "any"
    return PipelineProblem(
        "small", tuple("abcde"[:n]), time, storage, tensors_of(edges), cores, stages,
        exact_stages=draw(st.booleans()) and draw(st.booleans()),
        use_all=draw(st.booleans()) and draw(st.booleans()),
        memory=draw(st.sampled_from([None, None, 3.0, 6.0])),
        overlap=draw(st.booleans()) and draw(st.booleans()),
        split=split, host_time=host, hosts=hosts,
        together=np.array([draw(st.integers(-1, 1)) for _ in range(n)]) if joined else None,
    )  # fmt: skip


def plans(problem: PipelineProblem) -> Iterator[PipelinePlan]:
    """Every plan that obeys the rules."""
    for used in range(1, problem.slots + 1):
        for stage in itertools.product(range(used), repeat=problem.count):
            if len(set(stage)) < used:
                continue
            if problem.split == "any" and [stage.index(s) for s in range(used)] != sorted(
                map(stage.index, range(used))
            ):
                continue
            for cores in itertools.product(range(problem.largest_group + 1), repeat=used):
                if sum(cores) <= problem.cores:
                    plan = PipelinePlan(np.array(stage), np.array(cores))
                    if plan_complaint(problem, plan) is None:
                        yield plan


def best_value(problem: PipelineProblem) -> float:
    """The optimum, by trying everything; inf if there is no plan."""
    return min((objective(problem, plan) for plan in plans(problem)), default=math.inf)


def by_cpsat(
    problem: PipelineProblem, below: float = math.inf, *, asks: bool = False
) -> tuple[str, float, float]:
    """Status, value of the plan (recomputed; inf without) and bound."""
    built = cpsat.build(pipeline_data(problem, below), below=below, asks=asks)
    end = solve(built, seconds=30)
    value = math.inf
    if end.core is not None:
        plan = PipelinePlan.unpacked(problem, end.core)
        assert plan_complaint(problem, plan) is None
        value = objective(problem, plan)
    return end.status, value, math.inf if end.bound is None else built.claim.bound(end.bound)


def by_highs(problem: PipelineProblem, below: float = math.inf) -> tuple[str, float]:
    """Status and value."""
    end = solve_highs(
        mip.build(pipeline_data(problem, below), below=below), seed=0, workers=1, seconds=30, should_stop=lambda: False,
        on_solution=lambda m: None,
    )  # fmt: skip
    if end.core is None:
        return end.status, math.inf
    plan = PipelinePlan.unpacked(problem, end.core)
    assert plan_complaint(problem, plan) is None
    return end.status, objective(problem, plan)


@SLOW
@given(problems())
def test_both_models_find_what_trying_every_plan_finds(problem: PipelineProblem) -> None:
    """The same optimum, or the same verdict that there is none."""
    best = best_value(problem)
    status, value, bound = by_cpsat(problem)
    other, second = by_highs(problem)
    if best == math.inf:
        assert (status, other) == ("INFEASIBLE", "infeasible")
        return
    assert (status, other) == ("OPTIMAL", "optimal")
    assert value == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert second == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert best * (1 - 1e-8) - 1e-8 <= bound <= best


@SLOW
@given(problems(), st.sampled_from([0.7, 1.0, 1.0 + 1e-6, 1.3]))
def test_what_is_merged_below_a_value_costs_no_better_plan(problem: PipelineProblem, part: float) -> None:
    """Under any ceiling above the optimum the optimum stays; at the optimum or lower nothing is left that is better."""
    best = best_value(problem)
    if not 0 < best < math.inf:
        return
    below = best * part
    status, value, _ = by_cpsat(problem, below, asks=True)
    if part > 1:
        assert value <= below * (1 + 1e-9)
        assert by_cpsat(problem, below)[1] == pytest.approx(best, rel=1e-9)
        assert by_highs(problem, below)[1] == pytest.approx(best, rel=1e-6)
    else:
        assert status == "INFEASIBLE" or value >= best


@SLOW
@given(problems())
def test_every_plan_can_be_a_hint_and_obeys_the_symmetry_rows(problem: PipelineProblem) -> None:
    """A plan put into slots and read again is the same up to the names of its stages."""
    data = pipeline_data(problem)
    for plan in itertools.islice(plans(problem), 40):
        known = data.slots_of(plan)
        assert known is not None
        again = data.plan(*known)
        assert objective(problem, again) == objective(problem, plan)
        assert sorted(again.cores.tolist()) == sorted(plan.cores.tolist())
        first = [int(np.flatnonzero(known[0] == s)[0]) for s in data.groups if (known[0] == s).any()]
        assert data.ordered or first == sorted(first)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(problems())
def test_engines_raise_no_bound_above_the_optimum_and_close_the_gap(problem: PipelineProblem) -> None:
    """From a bad plan; both engines."""
    every = sorted(plans(problem), key=lambda plan: objective(problem, plan))
    for engine in (PipelineCpSat(), PipelineMip()):
        budget = Stop(30.0)
        incumbent = Incumbent(PipelineChecker(problem), budget)
        if every:
            incumbent.offer("start", every[-1].packed(problem))
        engine.run(
            problem, LocalContext("engine", incumbent, budget, seed=1, workers=1, deadline=budget.deadline)
        )
        assert not [e for e in incumbent.events if e.kind == "error"]
        if not every:
            assert incumbent.infeasible
            continue
        best = objective(problem, every[0])
        assert incumbent.objective == pytest.approx(best, rel=1e-6, abs=1e-7)
        assert incumbent.bound == pytest.approx(best, rel=1e-5, abs=1e-5)
        assert all(b.value <= best * (1 + 1e-9) + 1e-9 for b in incumbent.bounds)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(problems(), st.randoms(use_true_random=False))
def test_dividing_stages_anew_gives_plans_of_the_problem(problem: PipelineProblem, random: Random) -> None:
    """From any plan of the small ones: what comes is a plan, lower in its loads, and kept stages stay as they are."""
    problem = replace(problem, split="any")
    every = [plan for plan in plans(problem) if len(plan.cores) == 3]
    if not every:
        return
    start = random.choice(every)
    budget = Stop(10.0)
    incumbent = Incumbent(PipelineChecker(problem), budget)
    incumbent.offer("start", start.packed(problem))
    context = LocalContext("resplit", incumbent, budget, seed=1, workers=1, deadline=budget.deadline)
    free = np.array([0, 2])
    better = Resplit()._divide(problem, start, free, context, 1.0)
    before = stage_loads(problem, start).load
    if better is not None:
        assert plan_complaint(problem, better) is None or problem.exact_stages
        kept = better.stage[start.stage == 1]
        assert len(set(kept.tolist())) == 1 and (better.stage == kept[0]).sum() == len(kept)
        after = stage_loads(problem, better).load
        assert after[kept[0]] == before[1]
        assert np.delete(after, kept[0]).max() <= before[free].max() * (1 + 1e-9)


def test_dividing_stages_anew_finds_what_single_moves_do_not() -> None:
    """Three bins of 6: 5 | 4 | 3 with 1 + 2 + 3 badly placed, to be put right two stages at a time."""
    times = np.array([[5.0], [4.0], [3.0], [1.0], [2.0], [3.0]])
    problem = PipelineProblem("bins", tuple("abcdef"), times, np.zeros(6), tensors_of({}), 3, 3, split="any")
    budget = Stop(20.0)
    incumbent = Incumbent(PipelineChecker(problem), budget)
    incumbent.offer("start", PipelinePlan(np.array([0, 1, 2, 1, 0, 2]), np.ones(3, np.int64)).packed(problem))
    Resplit().run(
        problem, LocalContext("resplit", incumbent, budget, seed=0, workers=1, deadline=budget.deadline)
    )
    assert incumbent.objective == 6.0


def test_a_dear_tensor_joins_its_ends_only_where_no_better_plan_cuts_it() -> None:
    """3 + 5 is 8: under 8 the pair is one item, under 8.1 it is not; a host that can take an end keeps them apart."""
    problem = PipelineProblem(
        "pair",
        ("a", "b", "c"),
        np.array([[3.0], [4.0], [1.0]]),
        np.zeros(3),
        tensors_of({0: ([1], 5.0)}),
        2,
        2,
        split="any",
    )
    assert pipeline_data(problem, 8.0).count == 2
    assert pipeline_data(problem, 9.1).count == 3
    with_host = replace(problem, hosts=1, host_time=np.full(3, 2.0), stages=3)
    assert pipeline_data(with_host, 8.0).count == 3


@SLOW
@given(problems(), st.integers(0, 4), st.integers(0, 4))
def test_the_least_load_apart_is_that_of_the_best_set(
    problem: PipelineProblem, inside: int, outside: int
) -> None:
    """The minimum cut against all sets with one layer and without the other."""
    inside, outside = inside % problem.count, outside % problem.count
    if inside == outside:
        return
    tensors, least = problem.tensors, math.inf
    for bits in itertools.product([0, 1], repeat=problem.count):
        if bits[inside] and not bits[outside]:
            load = sum(float(problem.time[k, problem.largest_group - 1]) for k, on in enumerate(bits) if on)
            for t in range(tensors.count):
                ends = {bits[int(k)] for k in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]}
                load += float(tensors.time[t]) if len(ends | {bits[int(tensors.source[t])]}) > 1 else 0.0
            least = min(least, load)
    found = apart(problem, inside, outside)
    assert found <= least * (1 + 1e-12) and found == pytest.approx(least, abs=1e-5)


def test_covers_count_how_many_large_items_a_group_holds() -> None:
    """Of times 5, 4, 4, 3, 1 at most 8 in a group: one of 5 and 4, two of the four largest (3 + 4), three of all (1 + 3 + 4)."""
    times = np.array([[5.0], [1.0], [4.0], [3.0], [4.0]])
    problem = PipelineProblem("five", tuple("abcde"), times, np.zeros(5), tensors_of({}), 2, 2, split="any")
    data = pipeline_data(problem)
    assert data.covers(data.time[:, -1], 8.0) == [(2, 1), (4, 2), (5, 3)]


def test_rounded_times_never_weigh_more_than_true_ones() -> None:
    """Thirds cannot be whole; they are rounded down, and the bound with them."""
    problem = PipelineProblem(
        "thirds",
        ("a", "b"),
        np.array([[1 / 3], [math.pi]]),
        np.zeros(2),
        tensors_of({0: ([1], 1 / 7)}),
        1,
        1,
        split="any",
    )
    whole = whole_numbers(pipeline_data(problem))
    assert not whole.exact
    total = int(whole.time[:, 0].sum())
    assert total <= whole.factor * (1 / 3 + math.pi) < total + 2
    assert whole.bound(total) <= 1 / 3 + math.pi


def test_large_coefficients_do_not_make_a_wrong_optimum() -> None:
    """With its presolve whole, CP-SAT 9.15 calls 1.626 or 3 the optimum of this one (or-tools issue 5293)."""
    problem = PipelineProblem(
        "four", tuple("abcd"), np.array([[0, 0], [0.188, 0.141], [1.438, 0.7639375], [0, 0]]), np.zeros(4),
        tensors_of({0: ([2], 3.0)}), 3, 2, split="any",
    )  # fmt: skip
    assert by_cpsat(problem)[1] == best_value(problem) == pytest.approx(0.7639375)


def test_a_group_holds_a_multiple_of_what_a_core_holds_not_of_what_is_rounded() -> None:
    """Seven cores of memory √2 hold 7 √2, and 7 times √2 rounded down is less: the only plan would be lost."""
    storage = math.sqrt(2) * 7
    problem = PipelineProblem(
        "tight", ("a",), 1.0 / np.arange(1.0, 8.0)[None, :], np.array([storage]), tensors_of({}), 7, 1,
        memory=math.sqrt(2), split="any",
    )  # fmt: skip
    assert storage <= 7 * problem.memory
    assert by_cpsat(problem)[:2] == ("OPTIMAL", best_value(problem)) == ("OPTIMAL", 1 / 7)
