"""Replicas of stages: the exact chain, the evaluator and both proofs against plans written out in plain Python."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from pipelines_support import best_chain, random_dag
from test_pipeline_chain import chains
from test_pipeline_live import chains as lives

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.check.pipeline.reevaluate import reevaluated_loads, reevaluated_value
from nmsolve.hw.pipeline.batches import batch_time, start_times
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.goals import Batch
from nmsolve.model.pipeline.groups import Groups
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

Called = Any


@st.composite
def replicated(draw: st.DrawFn) -> PipelineProblem:
    """Small chains in whole numbers, with any mix of limits and up to four replicas of a stage."""
    problem = draw(chains(largest=4))
    whole = replace(
        problem,
        time=np.floor(problem.time),
        storage=np.floor(problem.storage),
        memory=None if problem.memory is None else math.floor(problem.memory),
        tensors=replace(problem.tensors, time=np.floor(problem.tensors.time)),
        host_time=None,
        hosts=0,
        exact_stages=problem.exact_stages and problem.stages <= problem.cores,
    )
    return replace(whole, groups=replace(whole.groups, replicas=draw(st.integers(2, 4))))


def groupings(problem: PipelineProblem, cores: int) -> Iterator[tuple[int, int]]:
    """(replicas, cores of each) of a stage."""
    for many in range(1, min(problem.groups.replicas, cores) + 1):
        for each in range(1, min(problem.largest_group, cores // many) + 1):
            yield many, each


def reference(problem: PipelineProblem, stage: list[int], cores: list[int]) -> float:
    """The least period over all ways to make replicas of the stages; inf if memory does not allow any."""
    worst = 0.0
    tensors = problem.tensors
    for s, c in enumerate(cores):
        own = [layer for layer, at in enumerate(stage) if at == s]
        move = 0.0
        for t in range(tensors.count):
            home = stage[tensors.source[t]] == s
            uses = [stage[v] for v in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]]
            if (home and any(u != s for u in uses)) or (not home and s in uses):
                move += tensors.time[t]
        best = math.inf
        for many, each in groupings(problem, c):
            if problem.memory is not None and problem.storage[own].sum() > each * problem.memory:
                continue
            work = problem.time[own, each - 1].sum()
            side = max(a for a in range(1, each + 1) if a * a <= each) if problem.groups.border else 1
            parts = work, move / side
            best = min(best, (max(parts) if problem.overlap else sum(parts)) / many)
        worst = max(worst, best)
    return worst


def every_stage(problem: PipelineProblem) -> Iterator[tuple[list[int], list[int]]]:
    """All runs of layers and all numbers of cores."""
    for marks in itertools.product((0, 1), repeat=problem.count - 1):
        stage = np.cumsum([0, *marks]).tolist()
        for cores in itertools.product(range(1, problem.largest_stage + 1), repeat=stage[-1] + 1):
            yield stage, list(cores)


def best_of_all(problem: PipelineProblem) -> None:
    """The chain has the least period over all cuts, cores and replicas; the proof holds there and not above."""
    expected = math.inf
    for stage, cores in every_stage(problem):
        plan = PipelinePlan(np.array(stage), np.array(cores))
        if plan_complaint(problem, plan) is None:
            value = reference(problem, stage, cores)
            assert objective(problem, plan) == pytest.approx(value, rel=1e-12)
            assert reevaluated_value(problem, plan) == pytest.approx(value, rel=1e-12)
            expected = min(expected, value)
    answer = best_chain(problem)
    assert answer.value == pytest.approx(expected, rel=1e-12)
    assert chain_bound_holds(problem, answer.value)
    if answer.plan is not None:
        assert plan_complaint(problem, answer.plan) is None
        assert objective(problem, answer.plan) == answer.value
        assert not chain_bound_holds(problem, answer.value * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("memory", [None, 14.0, 22.0])
def test_small_chains_from_seeds(memory: float | None, border: bool) -> None:
    for seed in range(12):
        problem = random_dag(
            seed, 4, 6, 4, split="chain", memory=memory, stages=3, groups=Groups(border=border)
        )
        best_of_all(replace(problem, groups=Groups(2 + seed % 3, border)))


@given(replicated())
@settings(max_examples=120, deadline=None, report_multiple_bugs=False)
def test_the_chain_is_the_best_of_all_plans_with_replicas(problem: PipelineProblem) -> None:
    """Any mix of limits."""
    best_of_all(problem)


@given(lives(), st.integers(2, 4))
@settings(max_examples=80, deadline=None, report_multiple_bugs=False)
def test_replicas_of_live_ranges_and_off_chip_memory(problem: PipelineProblem, replicas: int) -> None:
    """Every stage is the best of its replicas, each a stage of its own on as many cores; the chain is the best of all."""
    problem = replace(problem, groups=replace(problem.groups, replicas=replicas))
    alone = replace(problem, groups=replace(problem.groups, replicas=1))
    expected = math.inf
    for stage, cores in every_stage(problem):
        plan = PipelinePlan(np.array(stage), np.array(cores))
        if plan_complaint(problem, plan) is not None:
            continue
        best = np.full(len(cores), math.inf)
        for many in range(1, replicas + 1):
            each = np.minimum(plan.cores // many, problem.largest_group)
            single = replace(plan, cores=np.maximum(each, 1))
            loads = stage_loads(alone, single)
            fits = (each > 0) & (
                (loads.storage <= each * (problem.memory or 0.0)) | problem.streams | (problem.memory is None)
            )
            best = np.where(fits, np.minimum(best, loads.load / many), best)
        found = stage_loads(problem, plan)
        assert found.load == pytest.approx(best, rel=1e-12)
        assert reevaluated_loads(problem, plan) == pytest.approx(best.tolist(), rel=1e-9)
        expected = min(expected, float(best.max()))
    answer = best_chain(problem)
    assert answer.value == pytest.approx(expected, rel=1e-12)
    assert chain_bound_holds(problem, answer.value)
    if answer.plan is not None:
        assert not chain_bound_holds(problem, answer.value * (1 + 1e-9) + 1e-9)


def test_what_does_not_fit_beside_itself_has_fewer_replicas() -> None:
    """Three layers of 4 bytes on cores of 6: two cores hold them once, so six cores are three replicas, not six."""
    base = random_dag(1, 3, 6, 6, split="chain", memory=6.0, stages=1)
    problem = replace(
        base, time=np.repeat([[3.0], [3.0], [3.0]], 6, axis=1), storage=np.full(3, 4.0), groups=Groups(6)
    )
    plan = PipelinePlan(np.zeros(3, np.int64), np.array([6]))
    loads = stage_loads(problem, plan)
    assert loads.replicas.tolist() == [3] and loads.load[0] == pytest.approx(3.0)
    assert loads.storage.tolist() == [36.0]
    assert plan_complaint(problem, replace(plan, cores=np.array([1]))) is not None
    assert reevaluated_loads(problem, plan) == pytest.approx([3.0])


def test_more_replicas_never_hurt_and_one_is_the_problem_without() -> None:
    """The optimum falls with the number of replicas allowed; with one it is that of the chain."""
    for seed in range(12):
        base = random_dag(seed, 7, 9, 4, split="chain", memory=30.0)
        values = [best_chain(replace(base, groups=Groups(r))).value for r in (1, 2, 3, 9)]
        assert values == sorted(values, reverse=True) and values[0] == best_chain(base).value
        assert values[-1] < values[0]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"groups": Groups(0)}, "1 to"),
        ({"groups": Groups(2), "split": "any"}, "--split chain"),
        ({"groups": Groups(2), "goal": Batch(4)}, "--objective period"),
        ({"groups": Groups(2), "hosts": 1}, "no hosts"),
    ],
)
def test_what_replicas_do_not_go_with_is_refused(changes: dict[str, object], word: str) -> None:
    base = random_dag(3, 4, 4, 4, split="chain")
    with pytest.raises(InputError, match=word):
        replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "method", ["work", "layer", "layer-cut", "cover", "chain-batch", "pipeline-cpsat", "downsets"]
)
def test_bounds_without_replicas_are_refused(method: str) -> None:
    """A bound that looks at one group per stage is none here: the heaviest layer of all may be in replicas."""
    base = random_dag(5, 5, 6, 3, split="chain")
    problem = replace(base, time=np.vstack([np.full(3, 90.0), base.time[1:]]), groups=Groups(3))
    least = float(problem.time[:, -1].max())
    assert best_chain(problem).value < least
    forged = Bound(
        min(least, best_chain(problem).value),
        method,
        certificate={"method": method, "status": "optimal", "rate": 0.0},
    )
    assert not check_plan_bound(problem, forged).ok
    assert check_plan_bound(problem, replace(forged, method="chain")).ok


def test_the_batch_is_laid_out_with_replicas() -> None:
    """Two stages of 4 and 6 with 2 and 3 replicas: their micro-batches go through as a second program lays them out."""
    rng = np.random.default_rng(4)
    problem = random_dag(2, 6, 12, 3, split="chain", memory=None)
    for _ in range(20):
        stage = np.sort(rng.integers(0, 3, 6))
        stage = np.unique(stage, return_inverse=True)[1]
        count = int(stage.max()) + 1
        plan, many = PipelinePlan(stage, np.ones(count, np.int64)), rng.integers(1, 5, count)
        load, batches = rng.integers(1, 9, count).astype(float), int(rng.integers(1, 12))
        start = start_times(problem, plan, load, batches, many)
        found = batch_time(problem, plan, load, batches, many)
        assert start is not None and found is not None
        assert found.total == (start + load[:, None]).max()
        assert found.steady == batches * (load / many).max()
        for k in range(count):
            ends = start[k] + load[k]
            assert all((start[k] <= s).sum() - (ends <= s).sum() <= many[k] for s in start[k])


def test_the_command_plans_replicas_and_verify_recomputes_them(call: Called, tmp_path: Path) -> None:
    """A better period than without, by replicas that the report names; a report that names others is refused."""
    words = [
        "pipeline",
        "tests/data/onnx/mobilenet_v2.onnx",
        "--cores",
        "48",
        "--core-memory",
        "3MiB",
        "--group-sync",
        "0ns",
    ]
    out = str(tmp_path / "run")
    assert call(*words, "-o", out)[0] == 0
    before = json.loads((tmp_path / "run" / "pipeline-report.json").read_text())
    assert {s["replicas"] for s in before["stages"]} == {1}
    code, text, _ = call(*words, "--replicas", "4", "-o", out)
    assert code == 0 and "have replicas, up to" in text and "PipeDream" in text
    report = json.loads((tmp_path / "run" / "pipeline-report.json").read_text())
    assert report["objective"] < before["objective"] and report["gap"] == 0
    several = [s for s in report["stages"] if s["replicas"] > 1]
    assert several and all(s["replicas"] * s["group"] <= s["cores"] for s in report["stages"])
    assert call("verify", out, "--bound")[0] == 0
    several[0]["replicas"] -= 1
    (tmp_path / "run" / "pipeline-report.json").write_text(json.dumps(report))
    code, text, _ = call("verify", out)
    assert code == 1 and "replicas takes" in text


def test_replicas_that_take_as_long_but_do_not_fit_are_found(call: Called, tmp_path: Path) -> None:
    """Two tiles take half as long on two cores as on one, so two replicas of one core would do as well: but they do not fit."""
    weights = helper.make_tensor(
        "w", TensorProto.FLOAT, [64, 32], np.zeros(2048, np.float32).tobytes(), raw=True
    )
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [16, size]) for n, size in (("x", 64), ("y", 32))
    ]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    words = ["pipeline", str(tmp_path / "m.onnx"), "--cores", "2", "--core-memory", "8KiB", "--replicas", "2"]
    assert call(*words, "-o", str(tmp_path / "run"))[0] == 0
    path = tmp_path / "run" / "pipeline-report.json"
    report = json.loads(path.read_text())
    (stage,) = report["stages"]
    assert (stage["cores"], stage["replicas"], stage["group"]) == (2, 1, 2)
    assert call("verify", str(tmp_path / "run"))[0] == 0
    stage.update(
        replicas=2, group=1, weights=2 * stage["weights"], live=2 * stage["live"], load=stage["load"] / 2
    )
    path.write_text(json.dumps(report))
    code, text, _ = call("verify", str(tmp_path / "run"))
    assert code == 1 and "a replica of stage 0 needs" in text


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--replicas", "0"], "--replicas"),
        (["--replicas", "2000"], "1024"),
        (["--replicas", "2", "--split", "any"], "--split chain"),
        (["--replicas", "2", "--objective", "batch"], "--objective period"),
        (["--replicas", "2", "--pareto", "period,core-memory", "--core-memory", "9MiB"], "--replicas"),
    ],
)
def test_what_does_not_go_with_replicas_is_one_line(
    call: Called, tmp_path: Path, words: list[str], word: str
) -> None:
    model = "tests/data/onnx/mobilenet_v2.onnx"
    code, _, line = call("pipeline", model, "--cores", "8", *words, "-o", str(tmp_path / "o"))
    assert code == 2 and word in line and len(line.strip().splitlines()) <= 4
    assert not (tmp_path / "o").exists()
