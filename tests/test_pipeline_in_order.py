"""Several objectives of pipelines in order: against all plans there are, and what their proofs are worth."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from conftest import Called
from hypothesis import assume, given, settings
from pipelines_support import every_chain
from test_cli_pipeline import cost_graph
from test_pipeline_batch import batches
from test_pipeline_energy import powered
from test_pipeline_live import pair

from nmsolve.check.pipeline.recheck import check_plan_bound, check_stage_bound
from nmsolve.cli.resume import _proved
from nmsolve.hw.pipeline.stages import objective
from nmsolve.kinds.pipeline.statement import PipelineInputs, state_problem
from nmsolve.model.bound import Bound, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.goals import SLOWEST, Batch, Goal
from nmsolve.model.pipeline.objectives import EQUAL, aimed
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.multi_objective import lexicographic
from nmsolve.solvers.pipeline.multi_objective import PlanObjectives
from nmsolve.solvers.run import Options

TRIES = int(os.environ.get("NMSOLVE_IN_ORDER", "40"))
MODEL = "tests/data/onnx/mobilenet_v2.onnx"


def least(problem: PipelineProblem, first: Goal, second: Goal) -> tuple[float, float]:
    """The values of the best of all chains, by the first goal and then by the second."""
    plans = [p for p in every_chain(problem) if plan_complaint(problem, p) is None]
    values = [[objective(replace(problem, goal=goal), p) for goal in (first, second)] for p in plans]
    best = min((one for one, _ in values), default=math.inf)
    return best, min((two for one, two in values if one <= best * (1 + EQUAL)), default=math.inf)


def in_order_is_least(problem: PipelineProblem, names: tuple[str, str]) -> None:
    """Both stages end proved at the values of the best of all plans; every bound is recomputed, and nothing above it."""
    goals = {goal.name: goal for goal in (SLOWEST, problem.goal)}
    alone = replace(problem, goal=SLOWEST)
    best = least(alone, *(goals[name] for name in names))
    assume(math.isfinite(best[0]))
    try:
        stages = lexicographic(PlanObjectives(alone, Options(time_limit=9), None, goals), names, 9.0)
    except InputError:
        assume(False)
    assert len(stages) == 2
    ceilings: tuple[tuple[str, float], ...] = ()
    for (stage, result), name, value in zip(stages, names, best, strict=True):
        assert result.objective == pytest.approx(value, rel=1e-9, abs=1e-12) and result.status == "optimal"
        here = aimed(alone, goals, name, ceilings)
        assert stage == Stage(name, ceilings, alone.content_hash, result.bounds)
        for bound in result.bounds:
            assert check_stage_bound(here, stage, bound, result.objective).ok, bound
            for above in (max(value, 1e-9) * (1 + 1e-6), 2 * value + 1, math.inf):
                assert not check_plan_bound(here, replace(bound, value=above)).ok, (bound, above)
        ceilings = ((name, result.objective),)


@pytest.mark.parametrize("names", [("energy", "period"), ("period", "energy")])
def test_energy_and_period_of_all_chains(names: tuple[str, str]) -> None:
    @given(powered())
    @settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
    def try_one(problem: PipelineProblem) -> None:
        in_order_is_least(problem, names)

    try_one()


@pytest.mark.parametrize("names", [("batch", "period"), ("period", "batch")])
def test_batch_and_period_of_all_chains(names: tuple[str, str]) -> None:
    @given(batches())
    @settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
    def try_one(problem: PipelineProblem) -> None:
        in_order_is_least(problem, names)

    try_one()


def four() -> tuple[PipelineProblem, dict[str, Goal]]:
    """Four equal layers that hardly share: the period wants four stages, one micro-batch one group."""
    tensors = replace(pair().tensors, time=np.zeros(1))
    time = np.tile([[4.0, 3.0, 3.0, 3.0]], (4, 1))
    problem = PipelineProblem("four", tuple("abcd"), time, np.zeros(4), tensors, 4, 4, split="chain")
    return problem, {"period": SLOWEST, "batch": Batch(1)}


def test_what_is_held_tells_problems_apart() -> None:
    """Also where the same two goals change places at one value."""
    problem, goals = four()
    asked = (
        ("batch", ()),
        ("batch", (("period", 9.0),)),
        ("period", (("batch", 9.0),)),
        ("period", (("batch", 8.0),)),
    )
    assert len({aimed(problem, goals, name, held).content_hash for name, held in asked}) == 4


def test_a_proof_under_a_loose_ceiling_is_none_under_a_tight_one() -> None:
    """The least batch within a long period says too little of plans within a short one, and too much without any."""
    problem, goals = four()
    objectives = PlanObjectives(problem, Options(time_limit=9), None, goals)
    (_, fast), (_, within) = lexicographic(objectives, ("period", "batch"), 9.0)
    _, alone = objectives.minimise("batch", (), 9.0, None)
    assert fast.objective is not None and within.objective is not None and alone.objective is not None
    assert (fast.objective, within.objective, alone.objective) == (4.0, 16.0, 12.0)
    bound = max(within.bounds, key=lambda b: b.value)
    assert check_plan_bound(aimed(problem, goals, "batch", (("period", fast.objective),)), bound).ok
    for looser in (2 * fast.objective, 10 * fast.objective):
        assert not check_plan_bound(aimed(problem, goals, "batch", (("period", looser),)), bound).ok
    assert not check_plan_bound(aimed(problem, goals, "batch", ()), bound).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"within": 0}, {"within": 1.5}, {"within": None}, {"within": 2.0**63}, {"least": 0.0}, {"least": "x"}, {"least": None},
        {"ceiling": []},
    ],
)  # fmt: skip
def test_broken_certificates_of_a_held_sum(changes: dict[str, object]) -> None:
    """None is accepted, none ends in an exception."""
    problem, goals = four()
    (_, first), (_, second) = lexicographic(
        PlanObjectives(problem, Options(time_limit=9), None, goals), ("batch", "period"), 9.0
    )
    assert first.objective is not None and second.objective is not None
    held = aimed(problem, goals, "period", (("batch", first.objective),))
    good = second.bounds[-1]
    assert good.method == "chain-batch" and check_plan_bound(held, good).ok
    forged = Bound(good.value, good.method, certificate={**good.certificate, **changes})
    assert not check_plan_bound(held, forged).ok
    assert not check_plan_bound(problem, good).ok  # without what is held there are faster plans


def test_the_command(call: Called, tmp_path: Path) -> None:
    """Held, proved, verified and run again; a plan that does not keep what is held, and a claim about it, are found."""
    words = ("pipeline", MODEL, "--cores", 12, "-t", 20)
    alone, out = tmp_path / "alone", tmp_path / "out"
    assert call(*words, "--objective", "energy", "-o", alone)[0] == 0
    code, _, told = call(*words, "--objective", "energy,period", "-o", out)
    assert code == 0 and "then period" in told
    least = json.loads((alone / "pipeline-report.json").read_text())
    report = json.loads((out / "pipeline-report.json").read_text())
    assert report["minimised"] == "period" and report["energy"]["total"] == pytest.approx(least["objective"])
    assert report["inputs"]["before"][0]["objective"] == "energy" and report["status"] == "optimal"
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "held energy bound" in text
    for key, factor in (("value", 0.9), ("value", 1.1), ("bound", 1.1)):
        forged(out, report, key, factor)
        code, text, _ = call("verify", out, "--bound")
        wrong = [line for line in text.splitlines() if line.startswith("FAILED")]
        assert code == 1 and any(" held energy" in line for line in wrong), wrong
    forged(out, report, "value", 1.0)
    told = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    values = [e["objective"] for e in told if e["type"] == "incumbent"]
    assert values == sorted(values, reverse=True) and values[-1] == pytest.approx(report["objective"])
    assert (
        {e["engine"] for e in told if e["type"] == "engine"}
        <= {e["engine"] for e in report["engines"]}
        != set()
    )
    assert call("export", out, "--to", "perfetto", "-o", tmp_path / "trace")[0] == 0
    assert call("resume", out, "-t", 9)[0] == 0
    assert json.loads((out / "pipeline-report.json").read_text())["inputs"]["before"]


def forged(out: Path, report: dict[str, Any], key: str, factor: float) -> None:
    """Write a run again with another claim about the objective that was minimised first, whatever hashes that takes."""
    said = json.loads(json.dumps(report))
    said["inputs"]["before"][0][key] *= factor
    now = state_problem(msgspec.convert(said["inputs"], PipelineInputs)).problem.content_hash
    for name in ("pipeline-report.json", "plan.json", "certificates.json"):
        path = out / name
        text = json.dumps(said) if name.startswith("pipeline") else path.read_text()
        content = json.loads(text)
        if name == "plan.json":
            content["problem"]["hash"] = now
        else:
            content["problem"] = now
        path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("energy,batch", "expected period and another one"),
        ("period,energy,batch", "expected period and another one"),
        ("period,period", "repeat one"),
        ("period,cores", "unknown objective 'cores'"),
    ],
)
def test_what_has_no_order_is_refused(call: Called, tmp_path: Path, names: str, words: str) -> None:
    code, _, error = call("pipeline", MODEL, "--cores", 4, "--objective", names, "-o", tmp_path / "out")
    assert code == 2 and words in error and error.count("error:") == 1


def test_what_the_second_objective_lacks_is_said_before_the_first_is_searched(
    call: Called, tmp_path: Path
) -> None:
    graph = cost_graph(tmp_path / "graph.json")
    for words, wanted in (
        ((graph, "--objective", "period,batch"), "--split chain"),
        ((graph, "--split", "chain", "--objective", "period,energy"), "says nothing of energy"),
        ((MODEL, "--cores", 4, "--replicas", 2, "--objective", "period,batch"), "replicas"),
        ((MODEL, "--cores", 4, "--use-all", "--objective", "period,energy"), "--use-all"),
    ):
        code, _, error = call("pipeline", *words, "-t", 5, "-o", tmp_path / "out")
        assert code == 2 and wanted in error and "at most" not in error
        assert not (tmp_path / "out" / "plan.json").exists()


@pytest.mark.parametrize("names", ["energy,period", "period,energy"])
def test_an_engine_that_takes_neither_problem_is_named_before_the_search(
    call: Called, tmp_path: Path, names: str
) -> None:
    words = ("pipeline", MODEL, "--cores", 12, "--objective", names, "--engines", "chain", "-t", 20)
    code, _, error = call(*words, "-o", tmp_path / "out")
    assert code == 2 and "no engine takes this problem (chain: " in error and "at most" not in error


def test_what_is_held_is_in_the_words_and_a_run_says_how_long_it_took(call: Called, tmp_path: Path) -> None:
    """Least of all plans is only what nothing is held for; rules of thumb that keep less are no plans of this problem."""
    out = tmp_path / "out"
    words = ("--cores", 16, "--group-sync", 100, "--objective", "energy,period", "-t", 20, "-o", out)
    code, text, told = call("pipeline", MODEL, *words)
    assert code == 0 and "Among plans with energy at most" in text + told
    report = json.loads((out / "pipeline-report.json").read_text())
    assert 0 < report["wall_seconds"] < 15 and report["cpu_seconds"] > 0
    assert all(b["objective"] is None or b["objective"] >= report["objective"] for b in report["baselines"])
    assert any("held at" in b["trouble"] for b in report["baselines"])


def test_a_run_is_resumed_while_its_first_objective_is_not_proved() -> None:
    proved = {"status": "optimal", "inputs": {"before": [{"objective": "energy", "status": "optimal"}]}}
    assert _proved(proved) and _proved({"status": "optimal"}) and _proved({"status": "infeasible"})
    assert not _proved({"status": "feasible"})
    assert not _proved({**proved, "inputs": {"before": [{"objective": "energy", "status": "feasible"}]}})
