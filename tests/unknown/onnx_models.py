"""ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from nmsolve.model.formats.onnx import load_onnx
from unknown import Row


def _strict(path: Path) -> object:
    """Read as ``--strict`` does: of a kind of operator that is not known, the graph itself has a warning."""
    return load_onnx(path, strict=True)


def _model(opset: int = 17, kind: str = "Relu", **attributes: Any) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    node = helper.make_node(kind, ["x"], ["y"], name="only", **attributes)
    graph = helper.make_graph(
        [node], "m", [info("x", TensorProto.FLOAT, [2])], [info("y", TensorProto.FLOAT, [2])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _saved(model: onnx.ModelProto, more: bytes = b"") -> Callable[[Path], None]:
    return lambda path: path.write_bytes(model.SerializeToString() + more) and None


def _training() -> onnx.ModelProto:
    model = _model()
    model.training_info.add()
    return model


ROWS = [
    Row("model.formats.onnx", _strict, name, write, unknown)
    for name, write, unknown in (
        ("attribute.onnx", _saved(_model(slope=0.5)), "slope"),
        ("operator.onnx", _saved(_model(kind="Rectify")), "Rectify"),
        ("domain.onnx", _saved(_model(domain="org.example")), "org.example"),
        ("opset.onnx", _saved(_model(opset=2000)), "2000"),
        ("field.onnx", _saved(_model(), b"\xf8\x3f\x01"), "ModelProto.1023"),
        ("section.onnx", _saved(_training()), "training_info"),
    )
]
