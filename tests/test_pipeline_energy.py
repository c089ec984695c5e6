"""Energy as objective: formulas, the search against all plans, and the proof against both.

``NMSOLVE_ENERGY=5000 pytest tests/test_pipeline_energy.py`` tries longer.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pipelines_support import Recorder, batch_is_least, every_chain, least_chain, random_dag
from test_pipeline_live import chains, pair

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.reevaluate import reevaluated_energy, reevaluated_value
from nmsolve.heuristics.pipeline.batch import fastest_batch
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.goals import SLOWEST, Energy
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.pipeline.partition import ChainBatch, bound_of
from nmsolve.solvers.pipeline.registry import plan_of

TRIES = int(os.environ.get("NMSOLVE_ENERGY", "200"))


@st.composite
def powered(draw: st.DrawFn) -> PipelineProblem:
    """Small chains of all kinds; what cores exchange rises and falls with their number."""
    problem = draw(chains(4))
    number = draw(st.sampled_from([st.integers(0, 5).map(float), st.floats(0, 10, width=32)]))
    layers, sizes = problem.time.shape
    exchanged = [draw(st.lists(number, min_size=sizes, max_size=sizes)) for _ in range(layers)]
    volume = np.array([draw(number) for _ in range(problem.tensors.count)])
    energy = Energy(
        np.array([draw(number) for _ in range(layers)]), np.array(exchanged), draw(st.sampled_from([0.0, 1.0, 0.3])),
        draw(st.sampled_from([0.0, 1.0, 0.7])), draw(st.sampled_from([0.0, 0.1, 1.0, 3.0])),
    )  # fmt: skip
    return replace(problem, use_all=False, tensors=replace(problem.tensors, volume=volume), goal=energy)


@given(powered())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_search_and_proof_against_all_plans(problem: PipelineProblem) -> None:
    """The search ends at the least energy of all plans, its certificate proves it, and nothing above it."""
    batch_is_least(problem, 1 + 1e-9)


@given(powered(), st.lists(st.floats(0, 1), min_size=1, max_size=3), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_any_certificate_proves_no_more_than_the_truth(
    problem: PipelineProblem, parts: list[float], price: float, share: float
) -> None:
    """Whatever ceilings and prices are claimed: a value above the optimum is never accepted."""
    expected = least_chain(problem)
    assume(0 < expected < math.inf)
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    top = 2.0 * found.floor + 1.0
    ceilings = [2**62, *sorted((int(p * top) for p in parts), reverse=True)]
    certificate = {
        **good.certificate, "ceiling": ceilings, "price": [price * found.value] * len(ceilings),
        "floor": int(share * found.floor),
    }  # fmt: skip
    claim = replace(good, value=expected * (1 + 1e-9), certificate=certificate)
    assert not check_plan_bound(problem, claim).ok


@given(powered())
@settings(max_examples=100, deadline=None)
def test_formulas(problem: PipelineProblem) -> None:
    """Evaluator and walk add up alike, part by part."""
    assert isinstance(problem.goal, Energy)
    for number, plan in enumerate(every_chain(problem)):
        if number > 40:
            break
        parts = problem.goal.parts(plan.stage, stage_loads(problem, plan))
        assert reevaluated_energy(problem, plan, problem.goal) == pytest.approx(
            list(parts), rel=1e-12, abs=1e-12
        )
        assert objective(problem, plan) == parts.total
        assert reevaluated_value(problem, plan) == pytest.approx(parts.total, rel=1e-12)


def test_layers_that_take_no_time() -> None:
    """Ceilings cannot fall below 0: the search ends, though nobody stops it, also where stages cost something."""
    still = replace(pair(), time=np.zeros((2, 4)), goal=simple(1.0, 1.0, (0.0, 1.0, 2.0, 3.0)))
    still = replace(still, tensors=replace(still.tensors, time=np.zeros(1)))
    *_, found = fastest_batch(still, lambda: 1.0)
    assert found.plan is not None and objective(still, found.plan) == least_chain(still)
    assert check_plan_bound(still, bound_of(still, found)).ok


def test_engine() -> None:
    """It offers plans and bounds; others do not know the objective; where time is over it stops with what it has."""
    problem = replace(pair(), goal=simple(4.0, 1.0))
    recorder = Recorder(problem)
    ChainBatch().run(problem, recorder)
    assert recorder.value == least_chain(problem) and not recorder.complaints
    assert "chain-batch" not in plan_of(problem, None)[1]
    for name in ("chain", "pipeline-counting", "pipeline-cpsat"):
        assert "energy" in plan_of(replace(problem, memory=None), [name])[1][name]
    *_, found = fastest_batch(problem, lambda: -1.0)
    assert found.bound <= least_chain(problem) * 2.0**problem.sums.exponent


def simple(byte: float, power: float, exchanged: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)) -> Energy:
    """Of :func:`pair`: 10 for each of the two layers."""
    return Energy(np.full(2, 10.0), np.tile(exchanged, (2, 1)), byte, 0.0, power)


@pytest.mark.parametrize(
    ("energy", "cores", "expected"),
    [
        (simple(0.0, 1.0), [2, 2], 20 + 5.0),  # 4 and the tensor, or 2 + 2 on a group of four
        (simple(0.0, 1.0), [4], 20 + 4.0),
        (simple(0.0, 1.0, (0.0, 0.0, 0.0, 1.0)), [4], 20 + 4.0),  # bytes for nothing
        (simple(0.5, 1.0, (0.0, 1.0, 2.0, 9.0)), [3], 20 + 2.0 + 6.0),  # fewer cores exchange less
        (simple(0.5, 1.0, (0.0, 1.0, 2.0, 9.0)), [2, 2], 20 + 25.0 + 1.0 + 5.0),
        (simple(0.5, 0.0), [1], 20.0),
    ],
)  # fmt: skip
def test_by_hand(energy: Energy, cores: list[int], expected: float) -> None:
    """Operations, 50 bytes between two stages, what groups exchange, and power for the largest load."""
    problem = replace(pair(memory=None), goal=energy)
    plan = PipelinePlan(np.arange(2) if len(cores) == 2 else np.zeros(2, np.int64), np.array(cores))
    assert objective(problem, plan) == expected
    assert least_chain(problem) <= expected


def test_more_cores_may_cost_more() -> None:
    """The least energy has three of four cores: the fourth makes groups exchange more than it saves in time."""
    problem = replace(pair(memory=None), goal=simple(0.5, 1.0, (0.0, 1.0, 2.0, 9.0)))
    *_, found = fastest_batch(problem, lambda: 1.0)
    assert found.plan is not None and found.plan.cores.tolist() == [3]
    assert objective(problem, found.plan) == 28.0 == least_chain(problem)


def test_what_does_not_fit_costs_nothing_less() -> None:
    """Both layers need three cores, which exchange 2 bytes for each; fewer would be cheaper, and do not count in the proof."""
    problem = replace(pair(), goal=simple(1.0, 0.0, (0.0, 1.0, 2.0, 9.0)))
    *_, found = fastest_batch(problem, lambda: 1.0)
    assert found.plan is not None and found.plan.cores.tolist() == [3]
    assert objective(problem, found.plan) == 24.0 == least_chain(problem)
    assert check_plan_bound(problem, bound_of(problem, found)).ok


def test_a_stage_takes_a_tensor_in_once() -> None:
    """Of 50 bytes for two layers that share a stage, whatever a certificate claims; two stages, so they have to move."""
    tensors = Tensors(np.zeros(1, np.int64), np.array([0, 2]), np.array([1, 2]), np.ones(1), np.array([50.0]))
    problem = PipelineProblem(
        "three", tuple("abc"), np.full((3, 2), 4.0), np.zeros(3), tensors, 2, 2, exact_stages=True, split="chain",
        together=np.array([-1, 0, 0]), goal=Energy(np.full(3, 10.0), np.zeros((3, 2)), 1.0, 0.0, 0.0),
    )  # fmt: skip
    *_, found = fastest_batch(problem, lambda: 1.0)
    bound = bound_of(problem, found)
    assert bound.value == pytest.approx(80.0) and check_plan_bound(problem, bound).ok
    assert not check_plan_bound(problem, replace(bound, value=90.0)).ok


def test_of_plans_with_the_least_costs_the_fastest_is_found() -> None:
    """Without transfer and exchange all plans cost the same: what is left is the least period, at any power."""
    for power in (1e-9, 1.0, 1e9):
        problem = replace(pair(memory=None), goal=simple(0.0, power))
        *_, found = fastest_batch(problem, lambda: 1.0)
        assert found.plan is not None and objective(problem, found.plan) == pytest.approx(20 + 4 * power)
        assert check_plan_bound(problem, bound_of(problem, found)).ok


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"split": "any"}, "another split"),
        ({"hosts": 1, "buffers": None}, "hosts"),
        ({"use_all": True}, "--use-all"),
        ({"goal": replace(simple(1.0, 1.0), byte=-1.0)}, "negative or not finite"),
        ({"goal": replace(simple(1.0, 1.0), power=math.inf)}, "negative or not finite"),
        ({"goal": replace(simple(1.0, 1.0), layer=np.zeros(3))}, "energies of shapes"),
    ],
)
def test_what_makes_no_sense(changes: dict[str, object], text: str) -> None:
    """One line each."""
    with pytest.raises(InputError, match=text):
        pair(**{"goal": simple(1.0, 1.0), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"floor": -1}, {"floor": 1.5}, {"floor": None}, {"floor": 2**61},
        {"ceiling": []}, {"ceiling": "all"}, {"ceiling": [2**70]}, {"ceiling": [5]},
        {"price": []}, {"price": [-1.0]}, {"price": [math.nan]}, {"price": ["x"]},
    ],
)  # fmt: skip
def test_broken_certificates(changes: dict[str, object]) -> None:
    """None is accepted, none ends in an exception."""
    problem = replace(pair(), goal=simple(0.5, 1.0))
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    assert check_plan_bound(problem, good).ok
    assert not check_plan_bound(problem, replace(good, certificate={**good.certificate, **changes})).ok


def test_bounds_of_other_objectives_are_refused() -> None:
    """A bound on a time is none on energy, nor the other way round; energies are part of the problem."""
    problem = replace(pair(), goal=simple(0.5, 1.0))
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    assert not check_plan_bound(replace(problem, goal=SLOWEST), replace(good, value=1.0)).ok
    assert not check_plan_bound(problem, replace(good, method="chain", value=1.0)).ok
    assert not check_plan_bound(
        problem, replace(good, method="work", value=1.0, certificate={"rate": 0.0})
    ).ok
    others = [replace(problem, goal=simple(0.5, 2.0)), replace(problem, goal=SLOWEST)]
    assert len({p.content_hash for p in (problem, *others)}) == 3


@pytest.mark.parametrize("power", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("byte", [0.3, 1.0])
def test_larger_chains_are_proved_twice(byte: float, power: float) -> None:
    """Chains of 40 layers in tiles on 40 cores: what the search ends with is an optimum to the second proof, too."""
    sizes = np.arange(1, 41)
    for seed in range(9):
        rng, alone = np.random.default_rng(seed), random_dag(seed, 40, 40, 40, split="chain")
        tiles, work = rng.integers(3, 40, 40)[:, None], rng.integers(5, 60, 40)[:, None]
        exchanged = (0.02, 0.2, 1.0)[seed % 3] * np.minimum(sizes - 1, 3) * rng.integers(0, 9, 40)[:, None]
        problem = replace(
            alone, time=np.ceil(tiles / sizes) * work / tiles, tensors=replace(alone.tensors, volume=alone.tensors.time),
            goal=Energy(np.full(40, 5.0), exchanged, byte, 0.0, power),
        )  # fmt: skip
        *_, found = fastest_batch(problem, lambda: 100.0)
        assert found.bound == found.value and check_plan_bound(problem, bound_of(problem, found)).ok
