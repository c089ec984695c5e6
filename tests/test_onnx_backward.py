"""Models that hold their own backward pass are not read: one line says why, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Called

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx_support import loaded, model, saved, value  # noqa: E402

from nmsolve.model.errors import InputError  # noqa: E402

DATA = Path(__file__).parent / "data" / "onnx"


def product(*more: Any, outputs: tuple[str, ...] = (), domains: tuple[str, ...] = ()) -> Any:
    """y = x w and what comes after it."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product"), *more]
    inputs = [value(name, 4, 4) for name in ("x", "w", "y_grad", "c")]
    return model(nodes, inputs, ["y", *outputs], domains=list(domains))


def own(kind: str, *inputs: str, domain: str = "") -> Any:
    return helper.make_node(kind, inputs, ["made"], name="it", domain=domain)


def branched() -> Any:
    """A gradient in the branch of an If."""
    body = helper.make_graph(
        [own("ReluGrad", "y_grad", "y", domain="com.microsoft")], "body", [], [value("made", 4, 4)]
    )
    other = helper.make_graph([own("Relu", "y")], "other", [], [value("made", 4, 4)])
    both = helper.make_node("If", ["yes"], ["z"], name="if", then_branch=body, else_branch=other)
    proto = product(both, outputs=("z",), domains=("com.microsoft",))
    proto.graph.input.append(helper.make_tensor_value_info("yes", onnx.TensorProto.BOOL, []))
    return proto


@pytest.mark.parametrize(
    ("proto", "sign"),
    [
        (branched(), "operator .*it.* is ReluGrad"),
        (
            product(
                own("InPlaceAccumulatorV2", "c", "y", domain="com.microsoft"), domains=("com.microsoft",)
            ),
            "InPlaceAcc",
        ),
        (
            product(own("AdamWOptimizer", "c", "y", domain="com.microsoft"), domains=("com.microsoft",)),
            "AdamWOptimizer",
        ),
        (
            product(
                own("Momentum", "c", "y", domain="ai.onnx.preview.training"),
                domains=("ai.onnx.preview.training",),
            ),
            "Momentum",
        ),
    ],
    ids=["in a branch", "accumulated", "optimiser", "domain"],
)
def test_what_tells_a_backward_pass(proto: Any, sign: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"holds its backward pass: .*{sign}"):
        loaded(proto, tmp_path)


def test_commands(call: Called, tmp_path: Path) -> None:
    """One line of error, nothing written; the forward model is taken."""
    out = ("-o", tmp_path / "out")
    pipeline, assign = ("--cores", 4, "--bind", "batch=2"), ("-m", "laptop-npu", "--bind", "batch=2")
    path = saved(
        product(own("ReluGrad", "c", "y", domain="com.microsoft"), domains=("com.microsoft",)),
        tmp_path,
        "m.onnx",
    )
    for command, *words in (
        ("pipeline", path, *pipeline, *out), ("explain", "pipeline", path, *pipeline, *out), ("info", path),
        ("assign", path, *assign, *out),
    ):  # fmt: skip
        code, _, error = call(command, *words)
        assert code == 2 and error.count("error:") == 1 and not (tmp_path / "out").exists()
        assert "m.onnx: the model holds its backward pass: operator 'it' is ReluGrad" in error
        assert "expected the forward model, exported alone" in error
    assert call("pipeline", DATA / "small_cnn.onnx", *pipeline, *out)[0] == 0


def test_standard_operators_are_no_backward_pass(call: Called, tmp_path: Path) -> None:
    """A gradient of standard operators is planned as they are; names do not matter, nor does an operator of another domain."""
    loaded(product(own("FancyGrad", "y", domain="custom"), domains=("custom",)), tmp_path)
    given = helper.make_node("Add", ["y", "y_grad"], ["w_grad"], name="sum")
    path = saved(product(given, outputs=("w_grad",)), tmp_path, "sum.onnx")
    assert call("pipeline", path, "--cores", 2, "-o", tmp_path / "out")[0] == 0


def test_older_runs(call: Called, tmp_path: Path) -> None:
    """Runs from before training was removed: those for inference are verified, of training nothing is read."""
    out = tmp_path / "out"
    assert call("pipeline", DATA / "small_cnn.onnx", "--cores", 4, "--bind", "batch=2", "-o", out)[0] == 0
    path = out / "pipeline-report.json"
    report = json.loads(path.read_text())
    for stage in report["stages"]:
        stage |= {"kept": 0, "flights": 1, "again": 0.0}
    path.write_text(json.dumps(report | {"training": None, "inputs": report["inputs"] | {"training": None}}))
    assert call("verify", out, "--bound")[0] == 0
    trained = {"status": "feasible", "inputs": report["inputs"] | {"training": "1f1b"}}
    path.write_text(json.dumps(report | trained))
    for command in (("verify", out), ("resume", out, "-t", 1), ("gap", out, "-t", 1), ("score", out)):
        code, _, error = call(*command)
        assert (
            code == 2
            and "no option 'training', the report has '1f1b' for it" in error
            and error.count("error:") == 1
        )
