"""The time of a batch as objective: formulas, the search against all plans, and the proof against both.

``NMSOLVE_BATCH=5000 pytest tests/test_pipeline_batch.py`` tries longer.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pipelines_support import Recorder, batch_is_least, every_chain, least_chain
from test_pipeline_live import chains, pair

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.reevaluate import reevaluated_value
from nmsolve.heuristics.pipeline.batch import fastest_batch
from nmsolve.hw.pipeline.batches import batch_time
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.buffers import buffers_from
from nmsolve.model.pipeline.goals import SLOWEST, Batch
from nmsolve.model.pipeline.groups import OffChip
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.partition import ChainBatch, bound_of
from nmsolve.solvers.pipeline.registry import REGISTRY, plan_of

TRIES = int(os.environ.get("NMSOLVE_BATCH", "200"))


@st.composite
def batches(draw: st.DrawFn) -> PipelineProblem:
    """Small chains of all kinds, with a number of micro-batches."""
    return replace(draw(chains(4)), goal=Batch(draw(st.sampled_from([1, 2, 3, 7, 100]))))


@given(batches())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_search_and_proof_against_all_plans(problem: PipelineProblem) -> None:
    """The search ends at the least time of all plans, its certificate proves it, and nothing above it."""
    batch_is_least(problem, 1.0)


@given(batches(), st.lists(st.floats(0, 1), min_size=1, max_size=3), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_any_certificate_proves_no_more_than_the_truth(
    problem: PipelineProblem, parts: list[float], price: float, share: float
) -> None:
    """Whatever ceilings and prices are claimed: a value above the optimum is never accepted."""
    expected = least_chain(problem)
    assume(0 < expected < math.inf)
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    top = found.value if math.isfinite(found.value) else 1.0
    ceilings = [2**62, *sorted((int(p * top) for p in parts), reverse=True)]
    certificate = {
        **good.certificate, "ceiling": ceilings, "price": [price * top] * len(ceilings), "floor": int(share * found.floor),
    }  # fmt: skip
    claim = replace(good, value=math.nextafter(expected, math.inf), certificate=certificate)
    assert not check_plan_bound(problem, claim).ok


@given(batches())
@settings(max_examples=100, deadline=None)
def test_formulas(problem: PipelineProblem) -> None:
    """Evaluator and walk add up alike; a chain of which every stage hears from the one before takes no longer."""
    for number, plan in enumerate(every_chain(problem)):
        if number > 40:
            break
        loads = stage_loads(problem, plan).load
        assert isinstance(problem.goal, Batch)
        value = float(loads.sum() + (problem.goal.rounds - 1) * loads.max())
        assert objective(problem, plan) == pytest.approx(value, rel=1e-12)
        assert reevaluated_value(problem, plan) == pytest.approx(value, rel=1e-12)
        laid = batch_time(problem, plan, loads, problem.goal.rounds)
        assert laid is not None and laid.total <= value * (1 + 1e-12)


def test_engine() -> None:
    """It offers plans and bounds; others do not know the objective; where time is over it stops with what it has."""
    problem = replace(pair(), goal=Batch(8))
    recorder = Recorder(problem)
    ChainBatch().run(problem, recorder)
    assert recorder.value == least_chain(problem) and not recorder.complaints
    assert REGISTRY.keys() - plan_of(problem, None)[1].keys() >= {"chain-batch"}
    for name in ("chain", "pipeline-counting", "pipeline-cpsat"):
        assert "batch" in plan_of(replace(problem, memory=None), [name])[1][name]
    assert "chain-batch" in plan_of(pair(), None)[1]
    *_, found = fastest_batch(problem, lambda: -1.0)
    assert found.bound <= least_chain(problem) * 2.0**problem.ticks.exponent


def test_few_micro_batches_want_few_stages() -> None:
    """Four equal layers that do not share: the period wants four stages, one micro-batch one group."""
    chain = PipelineProblem(
        "four", tuple("abcd"), np.tile([[4.0, 3.0, 3.0, 3.0]], (4, 1)), np.zeros(4), replace(pair().tensors, time=np.zeros(1)),
        4, 4, split="chain",
    )  # fmt: skip
    stages = []
    for rounds in (1, 2, 100):
        *_, found = fastest_batch(replace(chain, goal=Batch(rounds)), lambda: 1.0)
        assert isinstance(found.plan, PipelinePlan)
        stages.append(len(found.plan.cores))
    assert stages[0] == 1 and stages[-1] == 4


def stubborn(memory: float | None, cores: int) -> PipelineProblem:
    """Two layers of 10 bytes that take 4 on any number of cores; 100 micro-batches want them in two stages."""
    buffers = buffers_from([(2, {0: True, 1: False})])
    return PipelineProblem(
        "stubborn", ("a", "b"), np.full((2, cores), 4.0), np.full(2, 10.0), replace(pair().tensors, time=np.zeros(1)), cores, 2,
        memory=memory, split="chain", buffers=buffers, goal=Batch(100),
    )  # fmt: skip


FALLING = np.array([[6.0, 6, 6], [6, 3, 2]])


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (stubborn(None, 3), 8.0 + 99 * 4),
        (stubborn(12.0, 2), 8.0 + 99 * 4),
        (stubborn(8.0, 3), 800.0),  # each needs two cores, both together three
        (replace(stubborn(8.0, 3), offchip=OffChip(0.5)), 4.0 + 6 + 99 * 6),  # 4 bytes do not fit on one core
        (replace(stubborn(None, 3), time=FALLING), 6.0 + 3 + 99 * 6),
        (
            replace(stubborn(6.0, 3), time=FALLING, storage=np.array([10.0, 1.0])),
            6.0 + 6 + 99 * 6,
        ),  # two cores for the first
        (replace(stubborn(None, 3), stages=1), 800.0),
        (replace(stubborn(None, 3), exact_stages=True, goal=Batch(1)), 8.0),
    ],
)
def test_memory_and_stages_decide(problem: PipelineProblem, expected: float) -> None:
    """By hand: what fits in two stages, and the proof knows what does not."""
    *_, found = fastest_batch(problem, lambda: 1.0)
    assert found.plan is not None and objective(problem, found.plan) == expected == least_chain(problem)
    bound = bound_of(problem, found)
    assert bound.value == pytest.approx(expected) and check_plan_bound(problem, bound).ok
    assert not check_plan_bound(problem, replace(bound, value=expected + 1e-3)).ok


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"goal": Batch(0)}, "0 micro-batches"),
        ({"goal": Batch(3), "split": "any"}, "another split"),
        ({"goal": Batch(3), "hosts": 1, "buffers": None}, "another split or hosts"),
    ],
)
def test_what_makes_no_sense(changes: dict[str, object], text: str) -> None:
    """One line each."""
    with pytest.raises(InputError, match=text):
        pair(**changes)


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
    problem = replace(pair(), goal=Batch(4))
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    assert check_plan_bound(problem, good).ok
    assert not check_plan_bound(problem, replace(good, certificate={**good.certificate, **changes})).ok


def test_bounds_of_the_other_objective_are_refused() -> None:
    """A bound on the period is none on a batch, nor the other way round."""
    problem = replace(pair(), goal=Batch(4))
    *_, found = fastest_batch(problem, lambda: 1.0)
    good = bound_of(problem, found)
    assert not check_plan_bound(replace(problem, goal=SLOWEST), replace(good, value=1.0)).ok
    assert not check_plan_bound(problem, replace(good, method="chain", value=1.0)).ok
    assert not check_plan_bound(
        problem, replace(good, method="work", value=1.0, certificate={"rate": 0.0})
    ).ok


MODEL = Path(__file__).parent / "data/onnx/mobilenet_v2.onnx"


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "pipeline-report.json").read_text())
    return report


def test_a_batch_from_the_command_line(call: Called, tmp_path: Path) -> None:
    """The time of the batch is proved and checked; the plan of the least period takes longer; gap and explain know batches."""
    out = tmp_path / "out"
    code, text, _ = call("pipeline", MODEL, "-n", 256, "--objective", "batch", "-B", 8, "-o", out)
    assert code == 0 and "8 micro-batches take" in text and "proved to be the least" in text
    report = report_of(out)
    assert report["rounds"] == 8 and report["batch"]["total"] == pytest.approx(report["objective"])
    assert "time of 8 micro-batches" in (out / "pipeline.html").read_text()
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "recomputed from" in text and "a batch of 8 takes" in text
    assert call("gap", out, "-t", 5, "-o", tmp_path / "gap")[0] == 0
    assert report_of(tmp_path / "gap")["objective"] == report["objective"]
    assert call("pipeline", MODEL, "-n", 256, "-B", 8, "-o", tmp_path / "period")[0] == 0
    assert report_of(tmp_path / "period")["batch"]["total"] > 1.1 * report["objective"]
    assert call("explain", "pipeline", MODEL, "-n", 16, "--objective", "batch")[0] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--objective", "makespan"], "unknown objective"),
        (["--objective", "batch", "--split", "any"], "another split"),
        (["--objective", "batch", "--pareto", "period,cores"], "--objective"),
    ],
)
def test_options_that_do_not_go_together(call: Called, tmp_path: Path, words: list[str], text: str) -> None:
    """One line, exit code 2, nothing written."""
    out = tmp_path / "out"
    code, _, error = call("pipeline", MODEL, "-n", 16, *words, "-o", out)
    assert code == 2 and text in error and error.count("error:") == 1 and not out.exists()
