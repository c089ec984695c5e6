"""What a manifest may hold: everything else is one clear line."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_support import model, saved, value
from programs_support import loop_model, node, paths_of, placed, random_model, scan_model, written

from nmsolve.hw.assignment.programs.manifest import all_pieces, read_manifest
from nmsolve.hw.assignment.programs.memory import Live, most_at_once, offsets_of
from nmsolve.hw.assignment.programs.run import largest_difference, run_programs
from nmsolve.hw.assignment.programs.write import write_pieces
from nmsolve.model.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A loop cut over three units, in ``programs``, with its model beside it."""
    proto = loop_model()
    written(proto, {p: ("host", "npu/0", "npu/1")[k % 3] for k, p in enumerate(paths_of(proto))}, tmp_path)
    return tmp_path


def spoilt(folder: Path, change: Callable[[Any], object]) -> Path:
    """Change the manifest's JSON."""
    path = folder / "programs" / "manifest.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))
    return folder / "programs"


def pieces(content: Any) -> list[Any]:
    return content["program"]["pieces"]


def loop(content: Any) -> Any:
    return next(p for p in pieces(content) if p.get("kind") == "loop")


def swap(content: Any) -> None:
    own = pieces(content)
    own[0], own[-1] = own[-1], own[0]


def ring(content: Any) -> None:
    own = pieces(content)
    own[0]["inputs"].append(own[-1]["outputs"][0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (ring, r"pieces wait for each other in a circle: '\d+-[a-z0-9-]+' -> "),
        (swap, "comes before .*, whose tensors it uses"),
        (lambda c: pieces(c).pop(0), "needs tensor '.*', which nothing makes; expected all pieces of the model"),
        (lambda c: pieces(c).pop(), "nothing makes output 'out'"),
        (lambda c: c.update(home="gpu"), "no unit of the name of home"),
        (lambda c: c["units"].append(c["units"][0]), "units of one name"),
        (lambda c: c["units"][0].update(threads=0), r"\$\.units\[0\]\.threads"),
        (lambda c: pieces(c)[0].update(unit="gpu"), "it is on unit 'gpu'"),
        (lambda c: pieces(c)[0].update(file="../model.onnx"), r"file '\.\./model\.onnx'; expected the name of"),
        (lambda c: pieces(c)[0].update(file="/etc/passwd"), "file '/etc/passwd'; expected the name of"),
        (lambda c: pieces(c)[0].update(kind="while"), r"\$\.program\.pieces\[0\]\.kind"),
        (lambda c: pieces(c)[0].update(name=pieces(c)[1]["name"]), "two pieces of this name"),
        (lambda c: pieces(c)[0]["outputs"].append("x"), "tensor 'x' is made twice"),
        (lambda c: loop(c).update(bodies=[]), "loop with 0 bodies; expected 1"),
        (lambda c: loop(c)["operands"].pop(), "loop of 2 operands and 2 results"),
        (lambda c: loop(c)["operands"].append("zz"), "operands that are no inputs"),
        (lambda c: loop(c)["outputs"].append("zz"), "outputs that are no results"),
        (lambda c: loop(c)["bodies"][0]["pieces"].pop(), "nothing makes output|which nothing makes"),
        (lambda c: loop(c).update(stacked=[]), "numbers that fit"),
        (lambda c: c["outputs"].append("more"), "tensors for 3 outputs"),
        (lambda c: c.update(format="nmsolve programs 0"), r"\$\.format"),
        (lambda c: c.pop("program"), "missing required field"),
    ],
)  # fmt: skip
def test_manifests_that_do_not_fit_together(
    folder: Path, change: Callable[[Any], object], message: str
) -> None:
    read_manifest(folder / "programs")
    with pytest.raises(InputError, match=message) as caught:
        read_manifest(spoilt(folder, change))
    assert "\n" not in str(caught.value) and "manifest.json" in str(caught.value)


def test_bodies_cannot_be_nested_without_end(folder: Path) -> None:
    def deeper(content: Any) -> None:
        body = loop(content)["bodies"][0]
        for k in range(40):
            inner = json.loads(json.dumps(loop(content) | {"name": f"p{k}", "bodies": [dict(body)]}))
            body["pieces"] = [inner]
            body = inner["bodies"][0]

    with pytest.raises(InputError, match="bodies are nested too deeply"):
        read_manifest(spoilt(folder, deeper))


def test_programs_of_another_model_or_damaged_or_gone(folder: Path) -> None:
    run_programs(folder / "programs", folder / "model.onnx", bindings=[{"batch": 1, "steps": 1}])
    other = saved(random_model(1), folder, "other.onnx")
    with pytest.raises(InputError, match=r"the programs are of another model, 'model\.onnx' with hash"):
        run_programs(folder / "programs", other)
    with pytest.raises(InputError, match="inputs, outputs or weights that are not the model's"):
        run_programs(spoilt(folder, lambda c: c.update(weights=["w"])), folder / "model.onnx")
    spoilt(folder, lambda c: c.update(weights=[]))
    victim = next((folder / "programs").glob("*.onnx"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + b"?")
    with pytest.raises(InputError, match="the piece is damaged or of another run"):
        run_programs(folder / "programs", folder / "model.onnx")
    (folder / "elsewhere.onnx").write_bytes(whole)
    victim.unlink()
    with pytest.raises(InputError, match="no such file"):
        run_programs(folder / "programs", folder / "model.onnx")
    victim.symlink_to(folder / "elsewhere.onnx")
    with pytest.raises(InputError, match="a file outside the folder of the manifest"):
        run_programs(folder / "programs", folder / "model.onnx")
    with pytest.raises(InputError, match="no such file"):
        run_programs(folder, folder / "model.onnx")
    with pytest.raises(InputError, match="unknown graph optimisation 'most'; expected one of off, basic"):
        run_programs(folder / "programs", folder / "model.onnx", level="most")


@pytest.mark.parametrize("parallel", [False, True])
def test_a_piece_that_computes_something_else_is_noticed(folder: Path, parallel: bool) -> None:
    """The runner must be able to say no: one operator in the loop's body is replaced, with the right hash."""
    (piece,) = [
        p for p in all_pieces(read_manifest(folder / "programs").program) if "loop/which/even_tanh" in p.operators
    ]  # fmt: skip
    path = folder / "programs" / piece.file
    part = onnx.load(path)
    next(n for n in part.graph.node if n.op_type == "Tanh").op_type = "Erf"
    path.write_bytes(part.SerializeToString())
    text = (folder / "programs" / "manifest.json").read_text()
    text = text.replace(piece.sha256, hashlib.sha256(path.read_bytes()).hexdigest())
    (folder / "programs" / "manifest.json").write_text(text)
    cases = [{"batch": 2, "steps": steps} for steps in (0, 2)]
    report = run_programs(folder / "programs", folder / "model.onnx", bindings=cases, parallel=parallel)
    assert not report.equal and report.difference > 1e-3
    assert report.cases[0].difference == 0, "without a turn the body does not run"


def test_a_piece_that_fails_ends_the_run_in_all_threads(tmp_path: Path) -> None:
    proto = random_model(3)
    manifest = written(proto, placed(proto, 3), tmp_path)
    piece = manifest.program.pieces[0]
    path = tmp_path / "programs" / piece.file
    part = onnx.load(path)
    part.graph.input[0].type.tensor_type.elem_type = 7
    path.write_bytes(part.SerializeToString())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    spoilt(tmp_path, lambda c: pieces(c)[0].update(sha256=digest))
    with pytest.raises(InputError, match=r"ONNX Runtime (fails|does not accept the model)"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")


def test_without_the_package_one_line_says_which_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        InputError, match=r"needs the package onnxruntime; expected pip install 'nmsolve\[onnx,runtime\]'"
    ):
        run_programs(folder / "programs", folder / "model.onnx")


def test_units_are_needed_and_names_differ(folder: Path) -> None:
    with pytest.raises(InputError, match="no units, or two of one name"):
        write_pieces(folder / "model.onnx", {}, [], folder / "none")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 300)), max_size=12))
def test_buffers_that_live_at_once_do_not_overlap(rows):
    tensors = [Live(first, first + length, size) for first, length, size in rows]
    offsets, total = offsets_of(tensors)
    for k, a in enumerate(tensors):
        assert offsets[k] % 64 == 0 and (offsets[k] + a.bytes <= total or not a.bytes)
        for j, b in enumerate(tensors[:k]):
            if a.first <= b.last and b.first <= a.last and a.bytes and b.bytes:
                assert offsets[k] + a.bytes <= offsets[j] or offsets[j] + b.bytes <= offsets[k]
    assert most_at_once(tensors) <= total <= sum(-(-t.bytes // 64) * 64 for t in tensors)
    at = [sum(t.bytes for t in tensors if t.first <= p <= t.last) for p in range(20)]
    assert most_at_once(tensors) == max(at)


def test_buffers_of_a_chain_are_reused():
    """Only neighbours live at once: two places are enough for ten tensors."""
    offsets, total = offsets_of([Live(k, k + 1, 64) for k in range(10)])
    assert total == 128 and set(offsets) == {0, 64}


def test_buffers_of_a_program_hold_for_its_order(tmp_path: Path) -> None:
    """Everything between pieces has a place in the memory of each unit that has it, while it does."""
    proto = random_model(6, 40)
    manifest = written(proto, placed(proto, 6), tmp_path, bindings={"batch": 32})
    buffers = manifest.program.buffers
    for k, piece in enumerate(manifest.program.pieces):
        for name in (*piece.inputs, *piece.outputs):
            assert any(
                b.tensor == name and b.memory == piece.unit and b.first <= k <= b.last for b in buffers
            )
    for a in buffers:
        for b in buffers:
            if a is not b and a.memory == b.memory and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
    for peak in manifest.peaks:
        assert peak.needed <= peak.bytes and not peak.unknown
    assert any(b.bytes == 32 * 4 * 4 for b in buffers)
    without = written(proto, placed(proto, 6), tmp_path)
    assert sum(p.unknown for p in without.peaks) > 0, (
        "without a binding, sizes are not known, and that is said"
    )


def test_differences_are_relative_and_infinite_where_nothing_else_fits():
    a = np.array([1, 2, 3, 0], np.float32)
    assert largest_difference(a, a) == 0
    assert largest_difference(a * np.float32(1.01), a) == pytest.approx(0.01, rel=1e-3)
    assert largest_difference(a + np.float32([0, 0, 0, 0.15]), a) == pytest.approx(0.1), (
        "against the mean 1.5"
    )
    holes = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    assert largest_difference(holes, holes) == 0 and largest_difference(-holes, holes) == np.inf
    assert largest_difference(a, holes) == np.inf and largest_difference(a[:2], a) == np.inf
    assert largest_difference(a.astype(np.float64), a) == np.inf, "another type"
    assert (
        largest_difference(np.zeros(2), np.zeros(2)) == 0
        and largest_difference(np.ones(2), np.zeros(2)) == np.inf
    )
    assert largest_difference(np.array([1, 2]), np.array([1, 2])) == 0
    assert largest_difference(np.array([1, 2]), np.array([1, 3])) == np.inf
    assert largest_difference(np.array([True]), np.array([False])) == np.inf
    assert largest_difference(np.zeros((0, 3)), np.zeros((0, 3))) == 0


def test_pieces_do_not_read_other_files(tmp_path: Path) -> None:
    """Wherever in the piece the reference is."""
    proto = random_model(3)
    (piece,) = written(proto, {}, tmp_path).program.pieces
    path = tmp_path / "programs" / piece.file
    part = onnx.load(path)
    tensor = part.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.TENSOR).t
    tensor.name, tensor.data_location = "t", onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    path.write_bytes(part.SerializeToString())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    spoilt(tmp_path, lambda c: pieces(c)[0].update(sha256=digest))
    with pytest.raises(InputError, match="values of the piece are in another file"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")
    path.write_bytes(b"nothing")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    spoilt(tmp_path, lambda c: pieces(c)[0].update(sha256=digest))
    with pytest.raises(InputError, match="not an ONNX model"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"scan_input_axes": [7]}, "'x' is scanned along axis 7; expected an axis of 2"),
        ({"scan_output_axes": [-5]}, "slices stacked along axis -5; expected an axis of 2"),
        ({"scan_input_axes": [0, 1]}, "numbers that fit"),
        ({"num_scan_inputs": [3]}, "numbers that fit"),
    ],
)  # fmt: skip
def test_scans_with_axes_that_do_not_exist(tmp_path: Path, setting: dict[str, Any], message: str) -> None:
    written(scan_model(False), {(0,): "host", (1,): "npu/0", (1, 0, 0): "host", (1, 0, 1): "npu/0"}, tmp_path)
    spoilt(tmp_path, lambda c: next(p for p in pieces(c) if p["kind"] == "scan")["settings"].update(setting))
    with pytest.raises(InputError, match=message):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx", bindings=[{"batch": 2, "length": 3}])


def test_what_bodies_use_must_be_among_the_inputs_of_control_flow(tmp_path: Path) -> None:
    """Otherwise it might be gone, or not there yet."""
    branch = [helper.make_graph([node(k, ["a"], [k])], k, [], [value(k, None)]) for k in ("Neg", "Abs")]
    proto = model(
        [
            node("Tanh", ["x"], ["a"]),
            node("Relu", ["a"], ["r"]),
            node("ReduceMax", ["r"], ["m"], keepdims=0),
            node("Cast", ["m"], ["b"], to=9),
            node("If", ["b"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        ],
        [value("x", 4)], [value("y", None)],
    )  # fmt: skip
    manifest = written(proto, dict.fromkeys(paths_of(proto), "host") | {(4, 0, 0): "npu/0"}, tmp_path)
    assert manifest.program.pieces[-1].inputs == ["b", "a"]
    assert run_programs(tmp_path / "programs", tmp_path / "model.onnx").equal
    spoilt(tmp_path, lambda c: pieces(c)[-1].update(inputs=["b"]))
    run_programs(tmp_path / "programs", tmp_path / "model.onnx", parallel=False)  # nobody else drops it
    spoilt(tmp_path, lambda c: pieces(c)[0]["outputs"].remove("a"))
    with pytest.raises(InputError, match="needs tensor 'a', which nothing makes"):
        run_programs(tmp_path / "programs", tmp_path / "model.onnx")
