"""ONNX models as operator graphs: names, weights, order, bodies of control flow, data types, and ways a file can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_support import bound, bound_shape, ints, loaded, model, saved, shape_of, tensor, value, weight

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.graph import OperatorGraph

DATA = Path(__file__).parent / "data" / "onnx"
BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def mlp() -> Any:
    """Two layers; the second one's weights are an input, as in models of IR version 3."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="fc1", transB=1),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w2"], ["y"], name="fc2"),
    ]
    weights = [weight("w1", np.zeros((300, 8), np.float32)), weight("b1", np.zeros(300, np.float32)),
               weight("w2", np.zeros((300, 4), np.float16))]  # fmt: skip
    inputs = [value("x", "batch", 8), value("w2", 300, 4, dtype=TensorProto.FLOAT16)]
    return model(nodes, inputs, ["y"], weights)


def test_an_mlp(tmp_path: Path) -> None:
    g = loaded(mlp(), tmp_path)
    assert [op.name for op in g.operators] == ["fc1", "relu", "fc2"] and [op.kind for op in g.operators] == [
        "Gemm",
        "Relu",
        "MatMul",
    ]
    assert [g.tensors[k].name for k in g.inputs] == ["x"] and g.symbols == ("batch",) and not g.warnings
    assert {t.name: t.shape for t in g.tensors if t.weight} == {"w1": (300, 8), "b1": (300,), "w2": (300, 4)}
    assert all(t.value is None for t in g.tensors if t.name != "b1")  # small ones are kept
    assert [str(d) for d in shape_of(g, "y")] == ["batch", "4"] and tensor(g, "r").dtype == "float32"
    assert (
        tensor(g, "h").producer == 0
        and tensor(g, "h").consumers == (1,)
        and tensor(g, "w2").consumers == (2,)
    )
    assert g.operators[0].attributes == {"transB": 1}
    assert g.operators[0].inputs == tuple(
        k for name in ("x", "w1", "b1") for k, t in enumerate(g.tensors) if t.name == name
    )


def test_weights_named_in_the_metadata_are_no_inputs(tmp_path: Path) -> None:
    proto = mlp()
    del proto.graph.initializer[:]
    proto.graph.input.extend([value("w1", 300, 8), value("b1", 300)])
    helper.set_model_props(proto, {"stripped_initializers": "w1|b1|w2"})
    g = loaded(proto, tmp_path)
    assert [g.tensors[k].name for k in g.inputs] == ["x"] and {t.name for t in g.tensors if t.weight} == {
        "w1",
        "b1",
        "w2",
    }


def test_missing_external_weights_are_no_trouble(tmp_path: Path) -> None:
    proto = mlp()
    for t in proto.graph.initializer:
        t.ClearField("raw_data")
        t.data_location = TensorProto.EXTERNAL
        t.external_data.add(key="location", value="gone.bin")
    g = loaded(proto, tmp_path)
    assert [str(d) for d in shape_of(g, "y")] == ["batch", "4"] and tensor(g, "b1").value is None


def test_operators_are_put_in_order_and_names_made_unique(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["a", "b"], ["y"]),
        helper.make_node("Neg", ["a"], ["b"], name="n"),
        helper.make_node("Abs", ["x"], ["a"], name="n"),
        helper.make_node("Clip", ["x", "", "top"], ["c"], name="n_1"),
    ]
    g = loaded(model(nodes, [value("x", 2)], ["y", "c"], [weight("top", np.float32(1))]), tmp_path)
    assert [op.kind for op in g.operators] == ["Abs", "Neg", "Add", "Clip"]
    assert len({op.name for op in g.operators}) == 4 and g.operators[3].inputs[1] == -1
    for k, op in enumerate(g.operators):
        assert all(g.tensors[t].producer < k for t in op.inputs if t >= 0)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(7)))
def test_the_order_in_the_file_does_not_matter(order: list[int]) -> None:
    from nmsolve.model.formats.onnx.build import build_graph
    from nmsolve.model.operators.symbols import Names

    nodes = [
        helper.make_node("Add", [f"t{max(k - 2, 0)}", f"t{k}"], [f"t{k + 1}"], name=f"n{k}") for k in range(7)
    ]
    g = build_graph(model([nodes[k] for k in order], [value("t0", 2)], ["t7"]), Names(), "test")
    assert [op.name for op in g.operators] == [f"n{k}" for k in range(7)]


def counted_loop() -> Any:
    """Ten turns; every turn appends a row to a growing state, and an If picks one of two results by a condition from outside."""
    then = helper.make_graph(
        [helper.make_node("MatMul", ["row", "w"], ["p"], name="matmul")], "then", [], [value("p")]
    )
    other = helper.make_graph([helper.make_node("Identity", ["row"], ["q"])], "else", [], [value("q")])
    body = helper.make_graph(
        [
            helper.make_node("If", ["flag"], ["picked"], name="pick", then_branch=then, else_branch=other),
            helper.make_node("Concat", ["state", "picked"], ["longer"], axis=0),
            helper.make_node("ReduceSum", ["longer"], ["total"], keepdims=0),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body", [value("turn", dtype=INT64), value("go", dtype=BOOL), value("state", None, 4)],
        [value("on", dtype=BOOL), value("longer", None, 4), value("total")],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["row"], axes=[0], keepdims=1),
        helper.make_node("Loop", ["ten", "", "x"], ["final", "sums"], name="loop", body=body),
    ]
    inputs = [value("x", "batch", 4), value("flag", dtype=BOOL)]
    return model(
        nodes,
        inputs,
        ["final", "sums"],
        [weight("w", np.zeros((4, 4), np.float32)), weight("ten", np.int64(10))],
    )


def test_bodies_of_control_flow_are_graphs_of_their_own(tmp_path: Path) -> None:
    g = loaded(counted_loop(), tmp_path)
    (loop,) = (op for op in g.operators if op.kind == "Loop")
    (body,) = loop.bodies
    (pick,) = (op for op in body.operators if op.kind == "If")
    assert [b.name for b in pick.bodies] == ["then", "else"] and not {"body", "then_branch"} & {
        *loop.attributes,
        *pick.attributes,
    }
    assert {body.tensors[k].name for k in body.captured} == {"flag", "row", "w"}
    assert {pick.bodies[0].tensors[k].name for k in pick.bodies[0].captured} == {"row", "w"}
    assert tensor(pick.bodies[0], "w").weight and tensor(pick.bodies[0], "w").shape == (4, 4)
    assert (
        g.operators.index(loop) in tensor(g, "row").consumers
        and g.operators.index(loop) in tensor(g, "w").consumers
    )
    assert tensor(pick.bodies[0], "p").shape == (1, 4) == tensor(body, "picked").shape
    assert shape_of(g, "sums") == (10,) and tensor(g, "sums").dtype == "float32" and not g.warnings
    assert [str(d) for d in shape_of(g, "final")] == ["batch + 10", "4"]
    assert [str(d) for d in shape_of(body, "longer")] == ["final_0 + 1", "4"]


def test_a_loop_that_may_stop_early_has_a_symbol_for_its_turns(tmp_path: Path) -> None:
    proto = counted_loop()
    body = proto.graph.node[1].attribute[0].g
    body.node[3].CopyFrom(helper.make_node("Less", ["total", "limit"], ["on"]))
    proto.graph.input.append(value("limit"))
    g = loaded(proto, tmp_path)
    assert [str(d) for d in shape_of(g, "sums")] == ["trips_loop"]
    assert bound_shape(tensor(g, "final"), {"batch": 3, "trips_loop": 5}) == (8, 4)


def test_a_state_that_grows_unevenly_has_a_symbol(tmp_path: Path) -> None:
    """Doubled every turn: no expression of the number of turns that is worth having."""
    proto = counted_loop()
    body = proto.graph.node[1].attribute[0].g
    body.node[1].CopyFrom(helper.make_node("Concat", ["state", "state"], ["longer"], axis=0))
    assert [str(d) for d in shape_of(loaded(proto, tmp_path), "final")] == ["final_0", "4"]


def test_a_condition_that_follows_from_shapes_decides(tmp_path: Path) -> None:
    """As exporters write squeeze: only if the length is 1."""
    then = helper.make_graph([helper.make_node("Squeeze", ["x", "one"], ["p"])], "then", [], [value("p")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["q"])], "else", [], [value("q")])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["d"]),
        helper.make_node("Equal", ["d", "one"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    for length, expected in ((1, 1), (3, 2)):
        g = loaded(model(nodes, [value("x", "b", length)], ["y"], [ints("one", 1)]), tmp_path)
        assert len(shape_of(g, "y")) == expected


def test_scan_stacks_its_results(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["r"])],
        "body", [value("s"), value("e")], [value("t"), value("r")],
    )  # fmt: skip
    nodes = [
        helper.make_node(
            "Scan",
            ["s0", "x"],
            ["last", "all"],
            body=body,
            num_scan_inputs=1,
            scan_input_axes=[1],
            scan_output_axes=[-1],
        )
    ]
    g = loaded(model(nodes, [value("s0", "b", 5), value("x", "b", "time", 5)], ["last", "all"]), tmp_path)
    assert [str(d) for d in shape_of(g, "all")] == ["b", "5", "time"] and [
        str(d) for d in shape_of(g, "last")
    ] == ["b", "5"]


def test_unknown_operators_are_opaque_or_errors(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Wobble", ["a"], ["b"], name="w1", domain="com.acme"),
        helper.make_node("Wobble", ["b"], ["c"], name="w2", domain="com.acme"),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    proto = model(nodes, [value("x", "b", 4)], [value("y", "b", 7)], domains=["com.acme"])
    g = loaded(proto, tmp_path)
    assert [op.opaque for op in g.operators] == [False, True, True, False]
    assert "2 operators of unknown kind com.acme.Wobble (the first is 'w1')" in g.warnings[0]
    assert shape_of(g, "b") is None and [str(d) for d in shape_of(g, "y")] == ["b", "7"]  # what the file says
    assert "the shapes of 2 tensors are not known" in g.warnings[1]
    with pytest.raises(InputError, match=r"unknown operator com\.acme\.Wobble \(node 'w1'\)"):
        loaded(proto, tmp_path, strict=True)


def test_a_crash_of_the_onnx_package_is_a_warning(tmp_path: Path) -> None:
    """Its native inference fails on this Split with more outputs than it says."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b", "c"], num_outputs=1),
        helper.make_node("Wobble", ["a"], ["y"], domain="com.acme"),
    ]
    g = loaded(model(nodes, [value("x", 6)], ["y", "b", "c"], domains=["com.acme"], opset=18), tmp_path)
    assert shape_of(g, "a") == (2,) and "the onnx package cannot infer shapes of this model" in g.warnings[-1]


def test_the_onnx_package_is_asked_where_the_own_rules_say_nothing(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceAt", ["s", "zero"], ["e"]),
        helper.make_node("Relu", ["e"], ["y"]),
    ]
    g = loaded(model(nodes, [value("x", "n", 6)], ["y"], [weight("zero", np.int64(0))]), tmp_path)
    assert (
        [str(d) for d in shape_of(g, "y")] == ["n", "6"]
        and tensor(g, "y").dtype == "float32"
        and not g.warnings
    )


def test_local_functions_are_written_out(tmp_path: Path) -> None:
    double = helper.make_function(
        "local",
        "Twice",
        ["v"],
        ["o"],
        [helper.make_node("Add", ["v", "v"], ["o"])],
        [helper.make_opsetid("", 17)],
    )
    proto = model(
        [helper.make_node("Twice", ["x"], ["y"], domain="local")], [value("x", "n")], ["y"], domains=["local"]
    )
    proto.functions.append(double)
    g = loaded(proto, tmp_path, strict=True)
    assert [op.kind for op in g.operators] == ["Add"] and [str(d) for d in shape_of(g, "y")] == ["n"]


def test_names_of_lengths(tmp_path: Path) -> None:
    """Sums of other lengths are expressions, anything else is a name; a length without a name gets one."""
    inputs = [value("x", "past", None), value("m", "past + 1", "st.41-a"), value("u", "seq//2", 3)]
    g = loaded(model([helper.make_node("Neg", ["m"], ["y"])], inputs, ["y"]), tmp_path)
    assert g.symbols == ("past", "x_1", "st.41-a", "seq//2")
    assert bound_shape(tensor(g, "y"), {"past": 4, "st.41-a": 2}) == (5, 2)


def test_a_decoder_with_loop_and_ifs() -> None:
    """Every length inside and outside is an expression of batch and width."""
    g = load_onnx(DATA / "loop_if_decoder.onnx", strict=True)
    assert (
        g.symbols == ("batch", "width")
        and not g.warnings
        and [str(d) for d in shape_of(g, "logits")] == ["batch", "97"]
    )
    seen = set()

    def visit(part: OperatorGraph) -> int:
        for t in part.tensors:
            assert t.shape is not None and t.dtype
            seen.update(str(s) for d in t.shape if not isinstance(d, int) for s in d.free_symbols)
        return len(part.operators) + sum(visit(b) for op in part.operators for b in op.bodies)

    assert visit(g) == 33 + 111 + 10 and seen == {"batch", "width"}
    assert {op.kind: len(op.bodies) for op in g.operators if op.bodies} == {"Loop": 1}
    conv = [t for t in g.tensors if t.producer >= 0 and g.operators[t.producer].kind == "Conv"]
    assert [bound(d, {"batch": 2, "width": 7}) for t in conv for d in t.shape] == [2, 32, 16, 4, 2, 64, 8, 2]


def test_reading_twice_gives_the_same() -> None:
    one, two = (load_onnx(DATA / "mobilenet_v2.onnx") for _ in range(2))
    assert [(t.name, t.dtype, t.shape, t.producer, t.consumers) for t in one.tensors] == [
        (t.name, t.dtype, t.shape, t.producer, t.consumers) for t in two.tensors
    ]
    assert [
        (op.name, op.inputs, op.outputs, dict(op.attributes)) for op in one.operators if op.kind != "Constant"
    ] == [
        (op.name, op.inputs, op.outputs, dict(op.attributes)) for op in two.operators if op.kind != "Constant"
    ]


def wrong(proto: Any, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        loaded(proto, folder)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(folder))
    return str(error.value)


def test_broken_graphs(tmp_path: Path) -> None:
    x = [value("x", 2)]
    circle = [helper.make_node("Add", ["x", "c"], ["a"], name="A"), helper.make_node("Neg", ["a"], ["b"], name="B"),
              helper.make_node("Abs", ["b"], ["c"], name="C"), helper.make_node("Abs", ["c"], ["y"], name="D")]  # fmt: skip
    text = wrong(model(circle, x, ["y"]), tmp_path)
    assert any(
        f"nodes depend on each other in a cycle: {c}" in text
        for c in ("A -> B -> C -> A", "B -> C -> A -> B", "C -> A -> B -> C")
    )
    nothing = [helper.make_node("Add", ["x", "ghost"], ["y"], name="A")]
    assert "operator 'A' (Add) uses tensor 'ghost', which nothing produces" in wrong(
        model(nothing, x, ["y"]), tmp_path
    )
    twice = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    assert "tensor 'y' is produced twice" in wrong(model(twice, x, ["y"]), tmp_path)
    assert "nothing produces output 'z'" in wrong(model(twice[:1], x, ["z"]), tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"3 nodes\n0 1\n1 2\n", "not an ONNX model"),
        (b'{"nodes": [], "links": []}', "not an ONNX model"),
        (bytes(range(256)), "not an ONNX model"),
        (b"\x08\x08", "holds no graph"),
    ],
)
def test_files_of_another_kind(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        load_onnx(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_every_truncation_is_an_input_error_or_a_smaller_model(tmp_path: Path) -> None:
    data = saved(mlp(), tmp_path).read_bytes()
    path = tmp_path / "cut.onnx"
    seen = set()
    for size in range(1, len(data), max(1, len(data) // 30)):
        path.write_bytes(data[:size])
        try:
            load_onnx(path)
        except InputError as error:
            assert "\n" not in str(error)
            seen.add("truncated" in str(error))
    assert True in seen


@settings(max_examples=25, deadline=None)  # each in a process of its own
@given(st.integers(0, 2000), st.integers(0, 255))
def test_damaged_bytes_give_one_line_or_a_graph(place: int, byte: int) -> None:
    import tempfile

    data = bytearray(counted_loop().SerializeToString())
    data[place % len(data)] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(bytes(data))
        try:
            load_onnx(path)
        except InputError as error:
            assert "\n" not in str(error)


def test_files_that_are_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_onnx(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="directory"):
        load_onnx(tmp_path)
    path = tmp_path / "large.onnx"
    with open(path, "wb") as file:
        file.truncate(2**31 + 5)  # takes no room on the disk
    with pytest.raises(InputError, match=r"2147483653 bytes.*at most 2 GB"):
        load_onnx(path)


def test_the_onnx_package_is_not_needed_for_other_files() -> None:
    import subprocess
    import sys

    code = (
        "import sys, nmsolve.model.formats, nmsolve.model.operators.graph\n"
        "sys.exit('onnx' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert onnx.__version__
