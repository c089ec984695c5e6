"""``nmsolve pipeline`` and ``info`` with training graphs: from file to stages, and what is wrong with a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called
from hypothesis import given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx_support import loaded, saved, value, weight  # noqa: E402
from training_reference import bound, reference  # noqa: E402
from training_support import Perceptron, parts_of, rows  # noqa: E402

from nmsolve.hw.pipeline.tiles import pipeline_problem  # noqa: E402
from nmsolve.hw.pipeline.training import Step  # noqa: E402
from nmsolve.model.errors import InputError  # noqa: E402
from nmsolve.model.formats.onnx import load_onnx  # noqa: E402
from nmsolve.model.operators.backward import trained_layers  # noqa: E402
from nmsolve.model.operators.training_graph import training_graph  # noqa: E402
from nmsolve.model.pipeline.figures import ASSUMED  # noqa: E402

DATA = Path(__file__).parent / "data" / "onnx"
TRIES = int(os.environ.get("NMSOLVE_TRAINING", "40"))


def broken(kind: str) -> Any:
    """A training graph with one mistake."""
    made = Perceptron(["dense", "relu", "dense"])
    proto = made.training()
    graph = proto.graph
    node = {n.name: n for n in graph.node}
    if kind == "no loss":
        del graph.initializer[:]
        graph.input.append(value("loss_grad"))
        graph.node.remove(node["loss_node"])
        graph.input.append(value("log", 3, 4))
        graph.output.remove(graph.output[0])
    elif kind == "no layer":
        graph.node.remove(node["relu1"])
        graph.input.append(value("t1", 3, 4))
    elif kind == "control flow":
        body = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "body", [], [value("z", 3, 4)])
        graph.initializer.append(weight("yes", np.array(True)))
        graph.node.append(
            helper.make_node("If", ["yes"], ["q"], then_branch=body, else_branch=body, name="fork")
        )
    elif kind == "cycle":
        node["relu1"].input[0] = "t2"
    elif kind == "loss of a gradient":
        node["loss_node"].input[0] = "t1_grad"
    elif kind == "unknown gradient":
        node["relu1_Grad/ReluGrad_0"].op_type = "MysteryGrad"
    return proto


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no loss", "a training graph without a loss"),
        ("no layer", "operator 'relu1_Grad/ReluGrad_0' (ReluGrad) is the gradient of no layer"),
        ("control flow", "a training graph with control flow"),
        ("cycle", "in a cycle"),
        ("loss of a gradient", "cycle"),
        ("unknown gradient", "not known"),
    ],
)
def test_each_mistake_is_one_line(call: Called, tmp_path: Path, kind: str, words: str) -> None:
    path = saved(broken(kind), tmp_path, "wrong.onnx")
    code, _, error = call("pipeline", path, "--cores", "4", "--training", "1f1b", "-o", tmp_path / "out")
    lines = [line for line in error.strip().splitlines() if not line.startswith("warning")]
    assert code == 2 and len(lines) == 1 and words in lines[0]


def test_training_must_be_asked_for_and_unknown_gradients_are_told(call: Called, tmp_path: Path) -> None:
    code, _, error = call("pipeline", DATA / "small_cnn_training.onnx", "--cores", "4", "--bind", "batch=2")
    assert code == 2 and "holds its backward pass" in error and "--training 1f1b or gpipe" in error
    path = saved(broken("unknown gradient"), tmp_path, "wrong.onnx")
    assert "unknown kind com.microsoft.MysteryGrad" in call("info", path)[2]
    code, _, error = call("pipeline", path, "--cores", "4", "--training", "1f1b", "--strict")
    assert code == 2 and "unknown operator com.microsoft.MysteryGrad" in error
    code, _, error = call(
        "pipeline",
        DATA / "small_cnn_training.onnx",
        "--cores",
        "4",
        "--bind",
        "batch=2",
        "--training",
        "gpipe",
        "--split",
        "any",
    )
    assert code == 2 and "--split chain" in error


def test_from_a_file_to_stages_of_all_nodes(call: Called, tmp_path: Path) -> None:
    source, out, copy = DATA / "small_transformer_training.onnx", tmp_path / "out", tmp_path / "staged.onnx"
    code, text, _ = call(
        "pipeline", source, "--bind", "batch=64,rows=384", "-m", "mesh:4x4", "--training", "1f1b", "--core-memory", "150KiB",
        "--stages", "4", "--exact-stages", "--group-sync", "10ns", "--write-onnx", copy, "-t", "600s", "-o", out, "--place",
    )  # fmt: skip
    assert code == 0 and "The backward pass is that of the model's file: 93 operators" in text
    report = json.loads((out / "pipeline-report.json").read_text())
    assert (
        report["status"] == "optimal" and report["training"]["operators"] == 93 and len(report["stages"]) == 4
    )
    plan = json.loads((out / "plan.json").read_text())
    layers = trained_layers(parts_of(load_onnx(source)), {"batch": 64, "rows": 384})
    stage = dict(zip(layers.names, plan["stage"], strict=True))
    expected = reference(
        onnx.load(source), onnx.load(DATA / "small_transformer.onnx"), {"batch": 3, "rows": 18}
    )
    marked = {n.name: n.device_configurations[0].pipeline_stage for n in onnx.load(copy).graph.node}
    assert len(marked) == 127 and {name: marked[name] for name in stage} == stage
    assert {name: marked[name] for name in expected.owner} == {
        name: stage[own] for name, own in expected.owner.items()
    }
    assert "backward" in (out / "pipeline.html").read_text()
    for folder in (out, out / "placement"):
        code, text, _ = call("verify", folder, "--bound")
        assert code == 0 and "FAILED" not in text


def test_info_says_what_it_is(call: Called) -> None:
    code, text, _ = call("info", DATA / "small_cnn_training.onnx", "--bind", "batch=4")
    line = next(x for x in text.splitlines() if x.startswith("training"))
    assert code == 0 and "forward 442,848 MACs in 10 operators, backward 664,512 MACs in 24 operators" in line
    code, text, _ = call("info", DATA / "small_cnn_training.onnx", "--json")
    first = json.loads(text.splitlines()[0])
    assert (
        first["training"]["backward"] == {"operators": 24, "macs": "166128*batch"}
        and first["training"]["loss"]
    )
    assert json.loads(call("info", DATA / "small_cnn.onnx", "--json")[1].splitlines()[0])["training"] is None


def test_times_of_layers_in_training_are_recomputed(call: Called, tmp_path: Path) -> None:
    """By rule, too: what verify says of times holds for both passes."""
    path = saved(bound(onnx.load(DATA / "small_cnn.onnx"), {"batch": 4}), tmp_path)
    out = tmp_path / "out"
    code, _, _ = call(
        "pipeline",
        path,
        "--cores",
        "4",
        "--training",
        "gpipe",
        "--group-sync",
        "10ns",
        "-t",
        "600s",
        "-o",
        out,
    )
    code, text, _ = call("verify", out)
    assert code == 0 and "recomputed: times of 9 layers" in text and TensorProto.FLOAT


@given(st.data())
@settings(max_examples=TRIES, deadline=None, report_multiple_bugs=False)
def test_damaged_graphs_are_planned_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Nodes that are gone, read something else or are of another kind: gradients still go back, or an InputError says why not."""
    proto = bound(onnx.load(DATA / "small_cnn_training.onnx"), {"batch": 2})
    for _ in range(data.draw(st.integers(1, 3))):
        nodes = list(proto.graph.node)
        one, other = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes))
        change = data.draw(st.sampled_from(["gone", "reads", "kind"]))
        if change == "gone":
            proto.graph.node.remove(one)
        elif change == "reads" and one.input:
            one.input[0] = data.draw(st.sampled_from([n for n in other.output if n]))
        else:
            one.op_type = other.op_type
    made = {n for node in proto.graph.node for n in node.output} | {t.name for t in proto.graph.initializer}
    made |= {i.name for i in proto.graph.input}
    lost = {n for node in proto.graph.node for n in node.input if n} - made
    proto.graph.input.extend(value(n, 2, 8) for n in sorted(lost))
    try:
        parts = training_graph(loaded(proto, tmp_path_factory.mktemp("graphs")))
        layers = None if parts is None else trained_layers(parts)
    except InputError:
        return
    if layers is not None and layers.backward is not None:
        pipeline_problem(layers, ASSUMED, 2, step=Step("1f1b", 2, False, 2.0))
        assert all(a < b for a, b, _ in rows(layers.backward.returned))
