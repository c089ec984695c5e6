"""``nmsolve info model.onnx``: the table, bindings, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmsolve.model.operators.layers import layers_of
from nmsolve.model.operators.table import table_of

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

DATA = Path(__file__).parent / "data" / "onnx"


def load(name: str):
    from nmsolve.model.formats.onnx import load_onnx

    return load_onnx(DATA / name)


@pytest.fixture
def perceptron(tmp_path: Path) -> Path:
    """Two matrix products over ``batch`` rows with a Relu between, and a product that only rearranges."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, bytes(4 * shape[0] * shape[1]), raw=True)
        for name, shape in (("w", (32, 64)), ("v", (64, 10)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], "second"),
    ]
    path = tmp_path / "perceptron.onnx"
    graph = helper.make_graph(nodes, "perceptron", [x], [y], weights)
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    return path


@pytest.fixture
def mystery(tmp_path: Path) -> Path:
    """An operator of a domain that nobody knows."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Riddle", ["x"], ["y"], "riddle", domain="nowhere")
    graph = helper.make_graph([node], "mystery", [x], [y])
    path = tmp_path / "mystery.onnx"
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("nowhere", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    return path


def test_mobilenet_agrees_with_torchvision(call) -> None:
    """torchvision: 0.30 G multiply-accumulates, 3,504,872 parameters; the file's batch norms are folded."""
    code, out, _ = call("info", DATA / "mobilenet_v2.onnx", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    model, operators = records[0], records[1:]
    assert code == 0 and model["type"] == "model" and {r["type"] for r in operators} == {"operator"}
    assert model["macs"] == 300_774_272 and abs(model["macs"] / 0.30e9 - 1) < 0.01
    assert abs(model["parameters"] / 3_504_872 - 1) < 0.01
    assert model["weight_bytes"] == 4 * model["parameters"]
    assert sum(r["macs"] for r in operators if r["depth"] == 0) == model["macs"]
    assert sum(r["parameters"] for r in operators if r["depth"] == 0) == model["parameters"]
    assert model["kinds"]["Conv"]["operators"] == 52 and model["unknown"] == 0 and model["symbols"] == []


def test_layers_of_mobilenet() -> None:
    """All work is in layers; the copies of shared weights that the file makes are none."""
    layers = layers_of(load("mobilenet_v2.onnx"))
    assert int(layers.macs.sum()) == 300_774_272
    assert layers.kinds.count("Conv") == 52 and "Identity" not in layers.kinds
    assert (layers.tensors.source < 0).sum() == 0
    sources, targets = layers.tensors.pairs
    assert (sources < targets).all()
    assert layers.tensors.volume.max() == 4 * 96 * 112 * 112


def test_the_table_of_a_perceptron(call, perceptron: Path) -> None:
    """Figures are expressions of batch; the hint says how to bind it."""
    code, out, _ = call("info", perceptron)
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert "2048*batch" in lines["first"] and "[batch,64]" in lines["first"] and "2,048" in lines["first"]
    assert lines["first"].endswith("tensor")
    assert "2688*batch" in lines["MACs"]
    assert "--bind batch=NUMBER" in lines["symbols"]
    code, out, _ = call("info", perceptron, "--bind", "batch=8")
    lines = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert "16,384" in lines["first"] and "[8,64]" in lines["first"]
    assert f"{16384 / (4 * (8 * 32 + 32 * 64 + 8 * 64)):.2f}" in lines["first"]  # MACs per byte
    assert "21,504" in lines["MACs"] and "none" in lines["symbols"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bind", "bach=8"], "no symbol 'bach'"),  # a typing error
        (["--bind", "batch"], "cannot read 'batch'"),  # no number
        (["--bind", "batch=0"], "cannot read 'batch=0'"),  # nothing to compute
        (["--bind", "batch=2,batch=3"], "bound twice"),
    ],
)
def test_wrong_bindings_are_refused(call, perceptron: Path, arguments: list[str], words: str) -> None:
    """Exit code 2 and one line."""
    code, out, err = call("info", perceptron, *arguments)
    assert code == 2 and out == "" and words in err and len(err.splitlines()) == 1


def test_bind_is_not_for_graphs(call, tmp_path: Path) -> None:
    """A graph of nodes has no symbols."""
    path = tmp_path / "net.json"
    path.write_text('{"nodes": [{"id": 0}], "edges": []}')
    code, _, err = call("info", path, "--bind", "batch=1")
    assert code == 2 and "--bind is for ONNX models" in err


def test_an_unknown_operator_is_a_question_mark_and_strict_refuses_it(call, mystery: Path) -> None:
    """The sums say what they leave out."""
    code, out, err = call("info", mystery)
    assert code == 0 and "(1 operator unknown)" in out and "Riddle" in err
    assert any(line.startswith("riddle") and " ? " in line for line in out.splitlines())
    code, _, err = call("info", mystery, "--strict")
    assert code == 2 and "Riddle" in err


def test_a_file_that_is_no_model_is_refused(call, tmp_path: Path) -> None:
    """Bytes that are not ONNX, and no file at all."""
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a model \xff\xff")
    for wrong in (path, tmp_path / "missing.onnx"):
        code, out, err = call("info", wrong)
        assert code == 2 and out == "" and wrong.name in err and len(err.splitlines()) == 1


def test_control_flow_is_listed_with_its_bodies(call) -> None:
    """A condition ends the loop, so its trips are a symbol; what is inside stands below it, for one run."""
    code, out, _ = call("info", DATA / "loop_if_decoder.onnx", "--bind", "batch=2,width=64")
    assert code == 0
    loop = next(line for line in out.splitlines() if " Loop" in line)
    assert "trips_Loop_32" in loop and loop.rstrip().endswith("scalar")
    assert any(line.startswith("    ") and " Gemm " in line for line in out.splitlines())
    table = table_of(load("loop_if_decoder.onnx"), {"batch": 2, "width": 64, "trips_Loop_32": 5})
    row = next(r for r in table.rows if r.kind == "Loop")
    once = table_of(load("loop_if_decoder.onnx"), {"batch": 2, "width": 64, "trips_Loop_32": 1})
    assert row.macs == 5 * next(r for r in once.rows if r.kind == "Loop").macs > 0
    assert table.parameters == once.parameters == sum(r.parameters for r in table.rows if r.depth == 0) > 0


def test_what_every_operator_does_is_said(call) -> None:
    _, out, _ = call("info", DATA / "loop_if_decoder.onnx", "--bind", "batch=2", "--json")
    model, *rows = [json.loads(line) for line in out.splitlines()]
    work = {(row["kind"], row["work"]) for row in rows}
    for pair in (
        ("Conv", "convolution"), ("MatMul", "matrix"), ("Relu", "vector"), ("ReduceMean", "reduction"), ("Transpose", "movement"),
        ("Loop", "control"), ("If", "control"), ("Shape", "shape"), ("Constant", "count"), ("Less", "condition"),
        ("Gather", "index"),
    ):  # fmt: skip
        assert pair in work
    assert model["arithmetic"]["passes"]["algebra"] <= model["arithmetic"]["steps"]
    assert any(line.endswith("lt 0 steps") for line in model["arithmetic"]["remaining"])
