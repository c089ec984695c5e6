"""Split programs compute what the model computes, wherever it is cut."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_support import ints, loaded, model, saved, value, weight
from programs_support import (
    UNITS,
    loop_model,
    node,
    paths_of,
    placed,
    random_model,
    scan_model,
    split_and_run,
    written,
)

from nmsolve.hw.assignment.programs.manifest import all_pieces, read_manifest
from nmsolve.hw.assignment.programs.run import run_programs
from nmsolve.hw.assignment.programs.split import runs_of
from nmsolve.hw.assignment.programs.write import unit_entries, write_pieces
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.nodes import all_nodes, scope_of

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=15, deadline=None)
@given(SEEDS, SEEDS, st.booleans())
def test_random_models_under_random_assignments_equal_the_original(tmp_path_factory, seed, units, parallel):
    """Without graph optimisation bit for bit, in three bindings."""
    proto = random_model(seed)
    report = split_and_run(
        proto, placed(proto, units), tmp_path_factory.mktemp("p"), level="off", parallel=parallel, seed=seed
    )
    assert [case.bindings["batch"] for case in report.cases] == [1, 2, 3]
    assert report.equal and report.difference == 0 and all(o.finite for c in report.cases for o in c.outputs)
    assert {o.dtype for o in report.cases[0].outputs} == {"float32", "int64"}


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.booleans(), st.integers(0, 4))
def test_loops_with_branches_under_random_assignments_equal_the_original(
    tmp_path_factory, seed, parallel, steps
):
    """Also with no turn at all, and where a condition ends the loop."""
    proto = loop_model()
    bindings = [{"batch": b, "steps": steps} for b in (1, 2, 5)]
    report = split_and_run(
        proto, placed(proto, seed), tmp_path_factory.mktemp("p"), bindings=bindings, parallel=parallel
    )
    assert report.equal and report.difference < 1e-6
    assert report.cases[2].outputs[1].shape[0] <= steps and report.cases[2].outputs[0].shape == (5, 4)


@pytest.mark.parametrize(("back", "units"), [*product([False, True], [("host", "npu/0"), ("npu/1", "host")])])
def test_scans_are_cut_too(tmp_path: Path, back: bool, units: tuple[str, str]) -> None:
    proto = scan_model(back)
    placement = {(0,): "host", (1,): "npu/0", (1, 0, 0): units[0], (1, 0, 1): units[1]}
    report = split_and_run(proto, placement, tmp_path)
    assert report.equal and [c.outputs[1].shape for c in report.cases] == [(1, 16), (2, 24), (3, 40)]
    kinds = [p.kind for p in all_pieces(read_manifest(tmp_path / "programs").program)]
    assert kinds.count("scan") == 1 and kinds.count("graph") == 3


def test_control_flow_on_one_unit_stays_whole(tmp_path: Path) -> None:
    proto = loop_model()
    placement = {path: "npu/0" if path[0] == 1 else "host" for path in paths_of(proto)}
    manifest = written(proto, placement, tmp_path)
    assert [(p.kind, p.unit, p.operators) for p in manifest.program.pieces] == [
        ("graph", "host", ["neg"]), ("graph", "npu/0", ["loop"]), ("graph", "host", ["add"]),
    ]  # fmt: skip
    # operators of bodies that have no unit of their own have that of the operator around them
    assert len(written(proto, {(1,): "npu/0"}, tmp_path).program.pieces) == 3
    assert run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal


def test_a_cut_loop_is_told_with_what_goes_round_and_what_is_sent(tmp_path: Path) -> None:
    """The state is made on npu/1 in odd turns and on npu/0 in even ones; the loop and its condition are on the host."""
    proto = loop_model()
    titles = {n.title: n.path for n in all_nodes(scope_of(proto.graph, ""))}
    placement = dict.fromkeys(titles.values(), "host")
    for title in ("even_mul", "even_tanh"):
        placement[titles[f"loop/which/{title}"]] = "npu/0"
    placement[titles["loop/which/odd_add"]] = "npu/1"
    manifest = written(proto, placement, tmp_path, bindings={"batch": 2})
    before, loop, after = manifest.program.pieces
    assert (before.operators, loop.kind, after.operators) == (["neg"], "loop", ["add"])
    assert loop.operands == ["steps", "true/value", "x2"] and loop.results == ["last", "rows"]
    (body,) = loop.bodies
    assert [(p.kind, sorted(p.operators)) for p in body.pieces] == [
        ("graph", ["loop/mod", "loop/to_bool"]), ("if", ["loop/which"]), ("graph", ["loop/less", "loop/row", "loop/top"]),
    ]  # fmt: skip
    sent = {(t.tensor, t.origin, t.goal, t.bytes) for t in (*manifest.program.transfers, *body.transfers)}
    assert ("x2", "host", "npu/1", 32) in sent, "taken from outside the loop"
    assert {("state", "host", "npu/0", 32), ("state", "host", "npu/1", 32)} <= sent
    assert run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal


def test_pieces_say_where_they_belong_and_are_valid_models(tmp_path: Path) -> None:
    proto = random_model(5)
    manifest = written(proto, placed(proto, 6), tmp_path)
    for piece in all_pieces(manifest.program):
        part = onnx.load(tmp_path / "programs" / piece.file)
        onnx.checker.check_model(part, full_check=True)
        marks = {p.key: p.value for p in part.metadata_props}
        assert marks["nmsolve.piece"] == piece.name and marks["nmsolve.unit"] == piece.unit
        assert f"{marks['nmsolve.processor']}/{marks['nmsolve.core']}" in (piece.unit, f"{piece.unit}/0")
        assert [i.name for i in part.graph.input if "@" not in i.name] == piece.inputs
        assert all(i.type.tensor_type.elem_type for i in (*part.graph.input, *part.graph.output))
    done = [name for piece in all_pieces(manifest.program) for name in piece.operators]
    used, needed = {o.name for o in proto.graph.output}, set()
    for k, n in reversed([*enumerate(proto.graph.node)]):
        if used & set(n.output):
            used.update(n.input)
            needed |= {f"{n.op_type}_{k}"} if n.op_type != "Constant" else set()
    assert len(done) == len(set(done)) and set(done) == needed
    assert len(needed) < sum(n.op_type != "Constant" for n in proto.graph.node), "some serve no output"


def test_one_unit_is_one_piece_that_is_the_model(tmp_path: Path) -> None:
    proto = random_model(8)
    manifest = written(proto, {}, tmp_path)
    assert len(manifest.program.pieces) == 1 and not manifest.program.transfers
    assert manifest.home == "host" and run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal


def test_outputs_that_are_inputs_weights_or_constants(tmp_path: Path) -> None:
    """Nothing computes them, and still they are there."""
    then = helper.make_graph([], "then", [], [value("t", 2)], [weight("t", np.ones(2, np.float32))])
    other = helper.make_graph([node("Neg", ["x"], ["n"])], "else", [], [value("n", 2)])
    proto = model(
        [
            node("Constant", [], ["k"], value=weight("", np.array([1, 2], np.float32))),
            node("ReduceMax", ["x"], ["top"], keepdims=0),
            node("Cast", ["top"], ["b"], to=TensorProto.BOOL),
            node("If", ["b"], ["y"], then_branch=then, else_branch=other),
            node("Add", ["y", "w"], ["z"]),
        ],
        [value("x", 2)], [value("z", 2), value("w", 2), value("k", 2), value("x", 2)], [weight("w", np.ones(2, np.float32))],
    )  # fmt: skip
    paths = paths_of(proto)
    for seed in range(6):
        placement = {path: UNITS[(k + seed) % 3] for k, path in enumerate(paths)}
        folder = tmp_path / str(seed)
        folder.mkdir()
        report = split_and_run(proto, placement, folder)
        assert report.equal and [o.name for o in report.cases[0].outputs] == ["z", "w", "k", "x"]


def test_stripped_weights_are_inputs_of_the_pieces_that_use_them(tmp_path: Path) -> None:
    """No piece gets a weight that it does not use, and none is counted as sent."""
    proto = model(
        [node("MatMul", ["x", "v"], ["a"]), node("Relu", ["a"], ["b"]), node("Gemm", ["b", "u"], ["c"], transB=1)],
        [value("x", "batch", 8), value("v", 8, 16), value("u", 4, 16)], [value("c", None, None)],
    )  # fmt: skip
    proto.metadata_props.add(key="stripped_initializers", value="v|u")
    manifest = written(proto, {(0,): "npu/0", (1,): "host", (2,): "npu/1"}, tmp_path, bindings={"batch": 3})
    assert [p.weights for p in manifest.program.pieces] == [["v"], [], ["u"]]
    assert manifest.inputs == ["x"] and manifest.weights == ["v", "u"]
    assert [(t.tensor, t.origin, t.goal, t.bytes) for t in manifest.program.transfers] == [
        ("x", "host", "npu/0", 96), ("a", "npu/0", "host", 192), ("b", "host", "npu/1", 192), ("c", "npu/1", "host", 48),
    ]  # fmt: skip
    peaks = {p.memory: p.bytes for p in manifest.peaks}
    assert peaks["npu/0"] == 8 * 16 * 4 + 192 + 96, "the weight, a, and x behind it"
    assert run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal


def test_weights_in_a_file_beside_the_model_are_taken_along(tmp_path: Path) -> None:
    proto = random_model(2)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    placement = placed(proto, 2)
    write_pieces(path, placement, unit_entries(UNITS), tmp_path / "programs")
    (tmp_path / "weights.bin").rename(tmp_path / "elsewhere.bin")
    with pytest.raises(InputError, match="values of weight 'w' cannot be read"):
        write_pieces(path, placement, unit_entries(UNITS), tmp_path / "again")


def test_sequences_go_from_piece_to_piece(tmp_path: Path) -> None:
    proto = model(
        [
            node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=0),
            node("SequenceAt", ["parts", "second"], ["part"]),
            node("Neg", ["part"], ["y"]),
        ],
        [value("x", 3, 4)], [value("y", 4)], [weight("second", np.array(1, np.int64))],
    )  # fmt: skip
    assert split_and_run(proto, {(0,): "npu/0", (1,): "npu/1", (2,): "host"}, tmp_path).equal


def test_tensors_of_unknown_type_cannot_be_cut(tmp_path: Path) -> None:
    proto = model(
        [node("Odd", [], ["a"], domain="own"), node("Add", ["a", "x"], ["y"])], [value("x", 2)], [value("y", 2)],
        domains=["own"],
    )  # fmt: skip
    with pytest.raises(InputError, match="the type of tensor 'a' is not known"):
        written(proto, {(0,): "npu/0", (1,): "host"}, tmp_path)


def test_placements_of_other_models_are_refused(tmp_path: Path) -> None:
    proto = random_model(1)
    with pytest.raises(InputError, match=r"no operator \(99,\)"):
        written(proto, {(99,): "host"}, tmp_path)
    with pytest.raises(InputError, match=r"operator .* is on 'gpu'; expected one of host, npu/0, npu/1"):
        written(proto, {(0,): "gpu"}, tmp_path)
    with pytest.raises(InputError, match="inputs or outputs are at 'gpu'"):
        written(proto, {}, tmp_path, home="gpu")


def test_paths_and_names_are_those_of_the_operator_graph(tmp_path: Path) -> None:
    """Also where the file is not in topological order and names are missing or equal."""
    for proto in (loop_model(), random_model(4), scan_model(True)):
        flipped = onnx.ModelProto()
        flipped.CopyFrom(proto)
        del flipped.graph.node[:]
        flipped.graph.node.extend(reversed(proto.graph.node))
        for one in (proto, flipped):
            todo = [(scope_of(one.graph, ""), loaded(one, tmp_path))]
            while todo:
                scope, graph = todo.pop()
                assert [n.label for n in scope.nodes] == [o.name for o in graph.operators]
                assert [n.proto.op_type for n in scope.nodes] == [o.kind for o in graph.operators]
                for n, o in zip(scope.nodes, graph.operators, strict=True):
                    todo += zip(n.bodies, o.bodies, strict=True)
    paths = paths_of(loop_model())
    assert paths[1:4] == [(1,), (1, 0, 0), (1, 0, 1)] and (1, 0, 3, 0, 0) in paths


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), SEEDS)
def test_runs_are_of_one_unit_in_a_topological_order_and_as_long_as_they_can_be(count, units, seed):
    rng = np.random.default_rng(seed)
    before = [set(np.flatnonzero(rng.random(k) < 0.15).tolist()) for k in range(count)]
    unit = rng.integers(-1 if seed % 2 else 0, units, count).tolist()
    runs = runs_of(before, unit)
    order = [k for run in runs for k in run]
    assert sorted(order) == list(range(count))
    place = {k: r for r, run in enumerate(runs) for k in run}
    for k, needed in enumerate(before):
        assert all(order.index(m) < order.index(k) for m in needed)
    for r, run in enumerate(runs):
        assert len({unit[k] for k in run}) == 1 and (unit[run[0]] >= 0 or len(run) == 1)
        if unit[run[0]] >= 0:  # nothing that this unit could have done at once is left for later
            done = {k for k in place if place[k] <= r}
            assert not [k for k in place if place[k] > r and unit[k] == unit[run[0]] and before[k] <= done]


def test_a_chain_that_alternates_has_a_run_per_operator_and_two_chains_far_fewer():
    chain = [{k - 1} if k else set() for k in range(6)]
    assert runs_of(chain, [0, 1] * 3) == [[0], [1], [2], [3], [4], [5]]
    two = [{k - 2} if k > 1 else set() for k in range(12)]
    assert len(runs_of(two, [0, 1] * 6)) == 2, "each chain is one run"


def test_models_with_initial_values_for_inputs_and_old_formats(tmp_path: Path) -> None:
    """An input with an initializer has that value; formats before version 4 list every weight among the inputs."""
    proto = model(
        [node("Add", ["x", "w"], ["a"]), node("Mul", ["a", "w"], ["y"])], [value("x", 3), value("w", 3)], [value("y", 3)],
        [weight("w", np.array([1, 2, 3], np.float32))],
    )  # fmt: skip
    proto.ir_version = 3
    manifest = written(proto, {(0,): "npu/0", (1,): "npu/1"}, tmp_path)
    assert manifest.inputs == ["x"] and run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal


def test_token_ids_stay_in_the_table_and_masks_are_zero_or_one(tmp_path: Path) -> None:
    table = weight("table", np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32))
    proto = model(
        [
            node("Gather", ["table", "ids"], ["e"]),
            node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
            node("Unsqueeze", ["m", "last"], ["m2"]),
            node("Mul", ["e", "m2"], ["y"]),
        ],
        [value("ids", "batch", "seq", dtype=TensorProto.INT64), value("mask", "batch", "seq", dtype=TensorProto.INT64)],
        [value("y", None, None, None)], [table, ints("last", 2)],
    )  # fmt: skip
    placement = {path: UNITS[k % 3] for k, path in enumerate(paths_of(proto))}
    report = split_and_run(proto, placement, tmp_path, bindings={"batch": 4, "seq": 30})
    assert report.equal and [tuple(c.bindings.values()) for c in report.cases] == [(4, 30), (2, 15), (3, 23)]


def test_bindings_that_the_model_does_not_take_are_told_as_such(tmp_path: Path) -> None:
    proto = model(
        [node("Reshape", ["x", "shape"], ["r"]), node("Neg", ["r"], ["y"])], [value("x", "n")], [value("y", None, None)],
        [ints("shape", -1, 8)],
    )  # fmt: skip
    written(proto, {(0,): "npu/0"}, tmp_path)
    with pytest.raises(InputError, match=r"model\.onnx with n=3: ONNX Runtime fails: "):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx", bindings=[{"n": 8}, {"n": 3}])
    with pytest.raises(InputError, match="input 'x' has length n, which has no value"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx", bindings=[{}])


def test_models_are_saved_where_they_are_expected(tmp_path: Path) -> None:
    """A folder is used again: old pieces go, other files stay."""
    proto = random_model(1)
    written(proto, placed(proto, 1), tmp_path)
    (tmp_path / "programs" / "notes.txt").write_text("mine")
    manifest = written(proto, {}, tmp_path)
    names = {p.name for p in (tmp_path / "programs").iterdir()}
    assert names == {"manifest.json", "notes.txt", *(p.file for p in manifest.program.pieces)}
    saved(proto, tmp_path, "file")
    with pytest.raises(InputError, match="cannot write"):
        write_pieces(tmp_path / "model.onnx", {}, unit_entries(UNITS), tmp_path / "file")


def test_a_shape_is_known_where_the_tensor_is_not(tmp_path: Path) -> None:
    """Operators that look at shapes get numbers; what else is used in the same piece is sent all the same."""
    proto = model(
        [
            node("Neg", ["x"], ["a"]),
            node("Tanh", ["x"], ["b"]),
            node("Shape", ["a"], ["all"]),
            node("Shape", ["a"], ["middle"], start=1, end=-1),
            node("Shape", ["a"], ["tail"], start=-2),
            node("Size", ["a"], ["count"]),
            node("Shape", ["b"], ["same"]),
            node("Reshape", ["b", "same"], ["y"]),
        ],
        [value("x", "batch", 5, 6)],
        [*(value(n, None, dtype=TensorProto.INT64) for n in ("all", "middle", "tail")),
         value("count", dtype=TensorProto.INT64), value("y", None, None, None)],
    )  # fmt: skip
    placement = {path: "npu/0" if path[0] < 2 else "host" for path in paths_of(proto)}
    manifest = written(proto, placement, tmp_path)
    assert manifest.program.pieces[-1].shapes == ["a"] and manifest.program.pieces[-1].inputs == ["b"]
    assert {t.tensor for t in manifest.program.transfers} == {"x", "b"}
    report = run_programs(tmp_path / "programs", tmp_path / "model.onnx")
    assert report.equal and [o.dtype for o in report.cases[2].outputs] == ["int64"] * 4 + ["float32"]
    on_one = written(proto, {}, tmp_path)
    assert not on_one.program.pieces[0].shapes, "where the tensor is, nothing changes"


def test_values_of_other_types_are_sent_and_compared(tmp_path: Path) -> None:
    """Truths, halves and texts; texts and sequences as inputs are refused."""
    proto = model(
        [
            node("Where", ["c", "x", "y"], ["w"]),
            node("Cast", ["h"], ["f"], to=TensorProto.FLOAT),
            node("Add", ["w", "f"], ["z"]),
            node("Cast", ["k"], ["s"], to=TensorProto.STRING),
            node("Identity", ["s"], ["t"]),
        ],
        [
            value("c", "n", dtype=TensorProto.BOOL), value("x", "n"), value("y", "n"),
            value("h", "n", dtype=TensorProto.FLOAT16), value("k", "n", dtype=TensorProto.INT64),
        ],
        [value("z", None), value("t", None, dtype=TensorProto.STRING)],
    )  # fmt: skip
    placement = {path: UNITS[path[0] % 3] for path in paths_of(proto)}
    report = split_and_run(proto, placement, tmp_path)
    assert report.equal and [o.difference for o in report.cases[1].outputs] == [0, 0]
    proto = model([node("SequenceLength", ["q"], ["k"])], [value("q")], [value("k", dtype=TensorProto.INT64)])
    proto.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None))
    written(proto, {}, tmp_path)
    with pytest.raises(InputError, match="input 'q' is no tensor"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")
    words = [value("s", 3, dtype=TensorProto.STRING)]
    written(model([node("Identity", ["s"], ["t"])], words, ["t"]), {}, tmp_path)
    with pytest.raises(InputError, match=r"input 's' is of type .*; expected inputs of numbers"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")
