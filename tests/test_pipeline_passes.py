"""Passes of a step of training laid out one by one, and what the backward pass of a model needs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_support import model, saved, value, weight
from test_pipeline_training import trained

from nmsolve.hw.pipeline.passes import laid_out, training_passes
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.hw.pipeline.to_graph import tile_graph
from nmsolve.hw.pipeline.training import Step
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray

Called = Any


def total(forward: FloatArray, backward: FloatArray, batches: int, gpipe: bool = False) -> float:
    """The time of a step on stages with these passes."""
    k = len(forward)
    window = np.full(k, batches) if gpipe else np.minimum(batches, np.arange(k, 0, -1))
    start = laid_out(forward, backward, window.astype(np.int64), batches)
    return float((start[:, 1] + backward[:, None]).max())


passes = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=6)


@given(passes, st.integers(1, 12), st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_pass_begins_too_early(pairs: list[tuple[float, float]], batches: int, gpipe: bool) -> None:
    """Each waits for the stage before or behind it and for its own stage, and no more are in flight than the schedule says."""
    forward, backward = (np.array(x) for x in zip(*pairs, strict=True))
    k = len(pairs)
    window = np.full(k, batches) if gpipe else np.minimum(batches, np.arange(k, 0, -1))
    start = laid_out(forward, backward, window.astype(np.int64), batches)
    for s in range(k):
        for m in range(batches):
            if s:
                assert start[s, 0, m] >= start[s - 1, 0, m] + forward[s - 1]
            after = start[s + 1, 1, m] + backward[s + 1] if s + 1 < k else start[s, 0, m] + forward[s]
            assert start[s, 1, m] >= after
            flying = [n for n in range(m + 1) if start[s, 1, n] + backward[s] > start[s, 0, m]]
            assert backward[s] == 0 or len(flying) <= window[s]
        spans = [(start[s, 0, m], forward[s]) for m in range(batches)]
        spans += [(start[s, 1, m], backward[s]) for m in range(batches)]
        spans.sort()
        assert all(a + long <= b + 1e-9 for (a, long), (b, _) in itertools.pairwise(spans))


@given(passes, st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_gpipe_has_a_formula(pairs: list[tuple[float, float]], batches: int) -> None:
    """All forward passes fill the pipeline once, all backward passes once more."""
    forward, backward = (np.array(x) for x in zip(*pairs, strict=True))
    expected = sum(float(x.sum() + (batches - 1) * x.max()) for x in (forward, backward))
    assert total(forward, backward, batches, gpipe=True) == pytest.approx(expected, abs=1e-9)


def test_one_forward_one_backward_reaches_the_period() -> None:
    """However unequal the stages: a hundred micro-batches more take a hundred periods more. In proportion, the formula holds."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        k = int(rng.integers(1, 8))
        forward, backward = rng.random(k) * (rng.random(k) < 0.8), rng.random(k) * rng.choice([0.1, 1, 5], k)
        period = (forward + backward).max()
        more = total(forward, backward, 200) - total(forward, backward, 100)
        assert more == pytest.approx(100 * period, abs=1e-6)
    for _ in range(2000):
        k, batches = int(rng.integers(1, 8)), int(rng.integers(1, 20))
        forward = rng.random(k)
        backward = 2 * forward * rng.uniform(0.85, 1.15, k)
        both = forward + backward
        formula = both.sum() + (batches - 1) * both.max()
        assert total(forward, backward, batches) <= 1.003 * formula
    same = np.full(5, 3.0)
    assert total(same / 3, 2 * same / 3, 8) == pytest.approx(3.0 * (8 + 4))


@given(trained(4), st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_passes_of_a_plan_add_up_to_its_loads(problem: PipelineProblem, count: int, random: Any) -> None:
    """Forward and backward are all of a stage's load; what is laid out in part goes on with a period each."""
    stage = sorted(random.randrange(count) for _ in range(problem.count))
    _, stage = np.unique(stage, return_inverse=True)
    plan = PipelinePlan(stage.astype(np.int64), np.ones(int(stage.max()) + 1, np.int64))
    found = training_passes(problem, plan)
    assert found.forward + found.backward == pytest.approx(stage_loads(problem, plan).load)
    assert problem.training is not None and found.start.shape[2] == problem.training.batches
    assert found.total >= stage_loads(problem, plan).load.max() * problem.training.batches * (1 - 1e-12)


def network(folder: Path) -> Path:
    """An embedding, two products with a Relu between, a product of two results divided by a number, a Softmax, a sum."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], "gather"),
        helper.make_node("MatMul", ["e", "w1"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w2"], ["k"], "second"),
        helper.make_node("Transpose", ["k"], ["t"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["r", "t"], ["s"], "both"),
        helper.make_node("Div", ["s", "eight"], ["d"], "scale"),
        helper.make_node("Softmax", ["d"], ["p"], "soft"),
        helper.make_node("Add", ["p", "p2"], ["y"], "sum"),
        helper.make_node("Exp", ["p2"], ["z"], "apart"),
    ]
    weights = [
        weight("table", np.zeros((50, 8), np.float32)),
        weight("w1", np.zeros((8, 8), np.float32)),
        weight("w2", np.zeros((8, 8), np.float32)),
        weight("eight", np.array(8.0, np.float32)),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT32, [16]), value("p2", 16, 16)]
    return saved(model(nodes, inputs, [value("y", 16, 16), value("z", 16, 16)], weights), folder, "m.onnx")


def needs(layers: Layers) -> dict[str, set[int]]:
    """Sizes of the buffers that the backward pass of each layer needs."""
    assert layers.gradients is not None and layers.buffers is not None
    out: dict[str, set[int]] = {name: set() for name in layers.names}
    for b, size in enumerate(layers.buffers.size.tolist()):
        for layer in layers.gradients.layer[layers.gradients.indptr[b] : layers.gradients.indptr[b + 1]]:
            out[layers.names[layer]].add(size)
    return out


def test_what_backward_passes_need(tmp_path: Path) -> None:
    """By the derivatives: factors of products, results of Relu and Softmax, indices; nothing where no weight is behind."""
    layers = layers_of(load_onnx(network(tmp_path)))
    assert layers.gradients is not None
    passes = dict(zip(layers.names, layers.gradients.passes.tolist(), strict=True))
    assert passes == {
        "gather": 1, "first": 2, "relu": 1, "second": 2, "turn": 1, "both": 2, "scale": 1, "soft": 1, "sum": 1, "apart": 0,
    }  # fmt: skip
    small, square, ids = 16 * 8 * 4, 16 * 16 * 4, 16 * 4
    assert needs(layers) == {
        "gather": {ids}, "first": {small}, "relu": {small}, "second": {small}, "turn": set(), "both": {small},
        "scale": set(), "soft": {square}, "sum": set(), "apart": set(),
    }  # fmt: skip


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "pipeline-report.json").read_text())
    return report


MODEL = Path(__file__).parent / "data/onnx/mobilenet_v2.onnx"


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_training_from_the_command_line(call: Called, tmp_path: Path, schedule: str) -> None:
    """A step is planned, proved, checked; its figures cannot be changed unnoticed; what does not fit says what would."""
    out = tmp_path / "out"
    words = [MODEL, "-n", 32, "--training", schedule, "-B", 6]
    code, text, _ = call("pipeline", *words, "--core-memory", "4MiB", "--recompute", "-o", out)
    assert code == 0 and "A step of 6 micro-batches" in text
    report = report_of(out)
    assert report["status"] == "optimal" and report["rounds"] == 6
    stated = {"schedule": schedule, "batches": 6, "recompute": True, "weight_copies": 4, "operators": None}
    assert report["training"] == stated
    assert report["batch"]["batches"] == 6
    page = (out / "pipeline.html").read_text()
    assert f"training by {schedule}" in page and "backward pale" in page
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "kept for backward passes" in text
    for name in ("kept", "flights", "again"):
        changed = json.loads(json.dumps(report))
        changed["stages"][0][name] += 1
        (out / "pipeline-report.json").write_text(json.dumps(changed))
        code, text, _ = call("verify", out)
        assert code == 1 and f"{name} of stage 0" in text
    (out / "pipeline-report.json").write_text(json.dumps(report))
    code, _, error = call("pipeline", *words, "--core-memory", "100KiB", "-o", out)
    line = next(line for line in error.splitlines() if line.startswith("error:"))
    assert code == 2 and "cannot be trained on 32 cores" in line and "--recompute" in line
    cores = int(line.split("expected ")[1].split()[0].replace(",", ""))
    few = [MODEL, "--training", schedule, "-B", 6, "--core-memory", "100KiB", "-o", out]
    assert call("pipeline", *few, "-n", cores)[0] == 0 and call("pipeline", *few, "-n", cores - 1)[0] == 2


def test_a_batch_from_the_command_line(call: Called, tmp_path: Path) -> None:
    """The time of the batch is proved and checked; a plan of the least period takes longer; resume and gap know the objective."""
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


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--objective", "makespan"], "unknown objective"),
        (["--objective", "batch", "--split", "any"], "another split"),
        (["--objective", "batch", "--pareto", "period,cores"], "--objective"),
        (["--training", "zero"], "unknown schedule"),
        (["--training", "1f1b", "--split", "contiguous"], "--split chain"),
        (["--training", "1f1b", "--offchip-bandwidth", "1GB/s", "--core-memory", "1MiB"], "--offchip-bandwidth"),
        (["--training", "1f1b", "--weight-copies", "0.5"], "copies of the weights"),
        (["--training", "1f1b", "--weight-copies", "0"], "copies of the weights"),
        (["--training", "1f1b", "--weight-copies", "nan"], "copies of the weights"),
        (["--training", "1f1b", "-B", "2000000000"], "2000000000 micro-batches: bytes in flight"),
        (["--training", "1f1b", "--recompute", "--pareto", "period,core-memory", "--core-memory", "9MiB"], "--recompute"),
        (["--recompute"], "--training"),
        (["--weight-copies", "2"], "--training"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(call: Called, tmp_path: Path, words: list[str], text: str) -> None:
    """One line, exit code 2, nothing written."""
    out = tmp_path / "out"
    code, _, error = call("pipeline", MODEL, "-n", 16, *words, "-o", out)
    assert code == 2 and text in error and error.count("error:") == 1 and not out.exists()


def test_models_that_are_not_trained(call: Called, tmp_path: Path) -> None:
    """Whole-number weights, control flow, cost graphs; explain says that it does not know."""
    folder = MODEL.parent
    cases = [
        (folder / "mobilenet_v2_int8.onnx", [], "weights in floats"),
        (folder / "loop_if_decoder.onnx", ["--bind", "batch=1,width=64,trips_Loop_32=8"], "control flow"),
        (Path("nmsolve/benchmarks/instances/dnn/layer_bert24_inference.json"), [], "for ONNX models"),
    ]
    for path, more, text in cases:
        code, _, error = call("pipeline", path, "-n", 16, "--training", "1f1b", *more, "-o", tmp_path / "out")
        assert code == 2 and text in error
    code, _, error = call("explain", "pipeline", MODEL, "-n", 16, "--training", "1f1b")
    assert code == 2 and "--training" in error
    assert call("explain", "pipeline", MODEL, "-n", 16, "--objective", "batch")[0] == 0


def test_a_front_of_training(call: Called, tmp_path: Path) -> None:
    """The period of a step against cores: micro-batches are part of the problem, and every point is proved."""
    words = [
        "--training",
        "1f1b",
        "-B",
        4,
        "--core-memory",
        "16MiB",
        "--pareto",
        "period,cores",
        "--points",
        3,
    ]
    code, text, _ = call("pipeline", MODEL, "-n", 16, *words, "-t", 20, "-o", tmp_path / "front")
    assert code == 0 and text.count("proved") >= 3
    assert call("verify", tmp_path / "front", "--bound")[0] == 0


def test_placement_of_training_counts_gradients(call: Called, tmp_path: Path) -> None:
    """The tiles send as many bytes back; everything is checked."""
    layers = layers_of(load_onnx(MODEL))
    forward, both = (
        pipeline_problem(layers, ASSUMED, 8, step=s) for s in (None, Step("1f1b", 2, False, 4.0))
    )
    plan = PipelinePlan((np.arange(layers.count) * 3) // layers.count, np.array([3, 2, 3]))
    one, two = (tile_graph(problem, plan) for problem in (forward, both))
    sent = np.zeros((8, 8))
    np.add.at(sent, (np.repeat(one.source, np.diff(one.indptr)), one.targets), one.weights)
    back = np.zeros((8, 8))
    np.add.at(back, (np.repeat(two.source, np.diff(two.indptr)), two.targets), two.weights)
    assert sent.any() and back == pytest.approx(sent + sent.T)
    out = tmp_path / "out"
    words = [
        "-m",
        "mesh:4x4",
        "--training",
        "1f1b",
        "-B",
        2,
        "--objective",
        "period",
        "--stages",
        3,
        "--exact-stages",
    ]
    assert call("pipeline", MODEL, *words, "--place", "-t", 6, "-o", out)[0] in (0, 3)
    assert call("verify", out)[0] == 0
