"""``--bind`` takes effect before shapes are inferred: branches on lengths are decided as if the file had the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nmsolve.hw.assignment.flatten import program_of
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import require_symbols, symbols_of
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.operators.table import table_of

NODE, INFO = helper.make_node, helper.make_tensor_value_info


def weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def number(name: str, value: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value), name)


def model(path: Path, length: object, test: str, limit: int, branches: list[list[onnx.NodeProto]]) -> Path:
    """x (length, 8): if length ``test`` limit, then the first branch, else the second; then a product with weights v."""
    bodies = [
        helper.make_graph(nodes, name, [], [INFO(nodes[-1].output[0], TensorProto.FLOAT, None)])
        for name, nodes in zip(("t", "e"), branches, strict=True)
    ]
    nodes = [
        NODE("Shape", ["x"], ["s"]), NODE("Gather", ["s", "zero"], ["l"]), NODE(test, ["l", "limit"], ["c"]),
        NODE("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1]), NODE("MatMul", ["y", "v"], ["z"], "mm"),
    ]  # fmt: skip
    given = [weights("w", 8, 8), weights("v", 8, 4), number("zero", 0), number("limit", limit)]
    graph = helper.make_graph(
        nodes, "m", [INFO("x", TensorProto.FLOAT, [length, 8])], [INFO("z", TensorProto.FLOAT, None)], given
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


SQUEEZE = [[NODE("Squeeze", ["x"], ["t1"]), NODE("Relu", ["t1"], ["t"])], [NODE("Identity", ["x"], ["e"])]]
TWICE = [
    [NODE("MatMul", ["x", "w"], ["t1"]), NODE("MatMul", ["t1", "w"], ["t"])],
    [NODE("MatMul", ["x", "w"], ["e"])],
]


@pytest.mark.parametrize(
    ("test", "limit", "branches", "macs"),
    [
        ("Equal", 1, SQUEEZE, 4 * 8 * 4),  # the branch for length 1 has no shape for length 4
        ("Greater", 3, TWICE, 2 * 4 * 8 * 8 + 4 * 8 * 4),
        ("Greater", 4, TWICE, 4 * 8 * 8 + 4 * 8 * 4),
    ],
)
def test_a_bound_length_is_as_good_as_one_in_the_file(
    test: str, limit: int, branches: list[list[onnx.NodeProto]], macs: int, tmp_path: Path
) -> None:
    """For pipelines, assignments and the table; the work is that of the branch that runs, counted by hand."""
    bindings = {"L": 4}
    bound = load_onnx(model(tmp_path / "a.onnx", "L", test, limit, branches), bindings=bindings)
    fixed = load_onnx(model(tmp_path / "b.onnx", 4, test, limit, branches))
    assert bound.bound == bindings and symbols_of(bound) == ()
    layers = [layers_of(bound, bindings), layers_of(fixed)]
    assert layers[0].macs.tolist() == layers[1].macs.tolist() and layers[0].names == layers[1].names
    assert layers[0].macs.sum() == macs
    tables = [table_of(bound, bindings), table_of(fixed)]
    rows = [[(row.name, row.macs, row.shapes) for row in table.rows] for table in tables]
    assert tables[0].macs == tables[1].macs and rows[0] == rows[1]
    programs = [program_of(bound, bindings), program_of(fixed)]
    assert [s.label for s in programs[0].steps] == [s.label for s in programs[1].steps]
    flows = [[(f.source, f.held, f.moved, f.runs, f.users) for f in p.flows] for p in programs]
    assert flows[0] == flows[1]


def test_expressions_of_bound_names_are_numbers(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [NODE("Relu", ["x"], ["y"]), NODE("Relu", ["k"], ["l"])], "m",
        [INFO("x", TensorProto.FLOAT, ["past"]), INFO("k", TensorProto.FLOAT, ["past + new", "new"])],
        [INFO("y", TensorProto.FLOAT, None), INFO("l", TensorProto.FLOAT, None)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    found = load_onnx(tmp_path / "m.onnx", bindings={"past": 3})
    assert [str(t.shape) for t in found.tensors if t.name in "xyl"] == ["(3,)", "(3,)", "(new + 3, new)"]
    assert symbols_of(found) == ("new",)
    with pytest.raises(InputError, match="no symbol 'old'; expected one of new, past"):
        require_symbols(found, {"past": 3, "old": 1})


@pytest.mark.parametrize("filler", ["?", "None", "-1", "unknown", "*", " ? "])
def test_fillers_are_lengths_of_their_own(filler: str, tmp_path: Path) -> None:
    """They have the names that lengths without a name have; a name that is taken gets an underscore."""
    info = INFO("x", TensorProto.FLOAT, [1, filler, filler, "unk__12", "x_1"])
    graph = helper.make_graph(
        [NODE("Relu", ["x"], ["y"])],
        "m",
        [info],
        [INFO("y", TensorProto.FLOAT, [1, filler, filler, "a", "b"])],
    )
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert load_onnx(tmp_path / "m.onnx").symbols == ("x_1_", "x_2", "unk__12", "x_1")
    found = load_onnx(tmp_path / "m.onnx", bindings={"x_1_": 48, "x_2": 192})
    assert str(found.tensors[found.outputs[0]].shape) == "(1, 48, 192, unk__12, x_1)"
    with pytest.raises(InputError, match=r"no symbol '\?'; expected one of x_1_, x_2, unk__12, x_1"):
        require_symbols(load_onnx(tmp_path / "m.onnx"), {"?": 48})
