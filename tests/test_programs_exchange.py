"""Forms of other tools: what is written is accepted by the tools that are here, and means the same when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx_support import model, own_inference, saved, value
from programs_support import UNITS, devices_of, loop_model, node, placed, random_model, written

from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.programs.exchange import layer_settings, write_exchange
from nmsolve.hw.assignment.programs.foreign import is_foreign, read_foreign
from nmsolve.hw.assignment.programs.of_answer import write_programs
from nmsolve.hw.assignment.programs.onnx_mlir import Named, matched, read_rules
from nmsolve.hw.assignment.programs.write import unit_entries
from nmsolve.hw.assignment.state import StatedAssignment, state_assignment
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.nodes import all_nodes, scope_of
from nmsolve.model.operators.binding import symbols_of


def stated(proto: Any, machine: str = "laptop-npu") -> StatedAssignment:
    graph = own_inference(proto)
    return state_assignment(graph, load_processors(machine), bindings=dict.fromkeys(symbols_of(graph), 3))


#: A pattern with a condition that is not read.
CONDITION = {"match": {"node_type": "a", "inputs": {"0": {"rank": "4"}}}, "rewrite": {"device": "cpu"}}


def written_file(folder: Path, content: Any) -> Path:
    path = folder / "rules.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_devices_and_stages_are_valid_onnx_and_come_back(tmp_path: Path) -> None:
    """onnx's checker and ONNX Runtime take the marked model; the marks are the placement; stages never go back."""
    for proto in (random_model(3, 25), loop_model()):
        placement = placed(proto, 3)
        manifest = written(proto, placement, tmp_path)
        marked, _, _ = write_exchange(tmp_path / "model.onnx", placement, manifest, tmp_path / "out")
        onnx.checker.check_model(marked, full_check=True)
        found = onnx.load(marked)
        assert found.ir_version >= 11 and list(found.configuration[0].device) == list(UNITS)
        assert devices_of(found) == placement
        stage = {}
        for n in scope_of(found.graph, "").nodes:
            (own,) = n.proto.device_configurations
            for name in n.needs:
                assert stage.get(name, 0) <= own.pipeline_stage
            stage |= dict.fromkeys(n.proto.output, own.pipeline_stage)
            assert {s.tensor_name for s in own.sharding_spec} == set(n.proto.output)
        assert len(set(stage.values())) > 1
        names = [n.proto.name for n in all_nodes(scope_of(found.graph, ""))]
        assert len(set(names)) == len(names) and all(names)


def test_the_runtime_reads_annotations_and_its_setting(tmp_path: Path) -> None:
    """Same numbers as without; a setting with a mistake is refused, so that the option is not simply ignored."""
    proto = random_model(3, 25)
    placement = placed(proto, 3)
    manifest = written(proto, placement, tmp_path)
    marked, setting, _ = write_exchange(tmp_path / "model.onnx", placement, manifest, tmp_path / "out")
    option, _, text = setting.read_text().strip().partition("=")
    assert (option, text) == ("session.layer_assignment_settings", "cpu(=host); npu(=npu/0, =npu/1)")
    marks = {p.key: p.value for n in onnx.load(marked).graph.node for p in n.metadata_props}
    assert marks.keys() == {"layer_ann"}

    def run(path: Path, setting: str | None) -> list[Any]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if setting is not None:
            options.add_session_config_entry(option, setting)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        return session.run(None, {"x": x, "y": x / 2})  # type: ignore[no-any-return]

    plain = run(tmp_path / "model.onnx", None)
    assert all(np.array_equal(a, b) for a, b in zip(run(marked, text), plain, strict=True))
    with pytest.raises(Exception, match=r"(?i)setting|layer|invalid|format"):
        run(marked, "cpu(=host")


def test_settings_name_devices_and_refuse_what_cannot_be_read() -> None:
    units = unit_entries(["cpu", "gpu0/0", "gpu0/1", "dsp"], hosts=["cpu"])
    assert layer_settings(units) == "cpu(=cpu); gpu(=gpu0/0, =gpu0/1); accelerator(=dsp)"
    with pytest.raises(InputError, match=r"cannot read the name 'a,b'"):
        layer_settings(unit_entries(["a,b"]))


def test_onnx_mlir_gets_its_own_placement_back(tmp_path: Path) -> None:
    """Written for a placement on host and accelerator and read again: both forms that the compiler has had."""
    proto = loop_model()
    proto.graph.node[0].name = "a.b*(c)|[d]"  # characters of regular expressions
    of = stated(proto)
    rng = np.random.default_rng(4)
    unit = np.array([rng.choice(np.flatnonzero(row >= 0)) for row in of.problem.time])
    names = of.problem.units.names
    placement = {path: names[j] for path, j in zip(of.operators, unit, strict=True) if path}
    path = saved(proto, tmp_path)
    answer = Assignment(unit, np.zeros(of.problem.groups.count, bool), np.arange(of.problem.count))
    manifest = write_programs(path, of, answer, tmp_path / "programs", graph=own_inference(proto))
    *_, rules = write_exchange(path, placement, manifest, tmp_path / "out")
    content = json.loads(rules.read_bytes())
    assert is_foreign(rules) and content["device_placement"][0].keys() == {
        "device",
        "node_type",
        "onnx_node_name",
    }
    assert (read_foreign(rules, of).unit == unit).all()
    for key in ("device_placement", "nnpa_ops_config"):
        assert (read_foreign(written_file(tmp_path, {key: content[key]}), of).unit == unit).all()


def test_rules_of_onnx_mlir_count_in_order_and_match_whole_names(tmp_path: Path) -> None:
    """The examples of its documentation."""
    operators = [Named("MatMul", f"MatMul_{k}") for k in range(3)] + [Named("Sigmoid", "Sigmoid_0")]

    def new(device: str | None, **match: Any) -> Any:
        return {"pattern": {"match": match, "rewrite": {} if device is None else {"device": device}}}

    def devices(*rules: Any) -> list[str]:
        data = json.dumps({"nnpa_ops_config": list(rules)}).encode()
        return matched(read_rules(data, "r"), operators, "r")

    assert devices(new("cpu", node_type="onnx.*", onnx_node_name=".*")) == ["cpu"] * 4
    assert devices(new("cpu", node_type="onnx.MatMul")) == ["cpu"] * 3 + [""]
    assert devices(
        new("cpu", node_type="onnx.MatMul", onnx_node_name="MatMul_(0|1)"),
        new(None, node_type="onnx.MatMul"),
        new("nnpa", node_type="onnx.MatMul", onnx_node_name="MatMul_(1|2)"),
        new("nnpa", node_type="onnx.Sigmoid", onnx_node_name="Sigmoid_0"),
    ) == ["cpu", "cpu", "nnpa", "nnpa"]
    assert (
        devices(new("cpu", node_type="MatMul"), new("nnpa", node_type="onnx.Sig"), new("", node_type="x"))
        == [""] * 4
    )
    old = {
        "device_placement": [{"device": "cpu", "node_type": "onnx.MatMul", "onnx_node_name": "MatMul_[12]"}]
    }
    assert matched(read_rules(json.dumps(old).encode(), "r"), operators, "r") == ["", "cpu", "cpu", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "expected object|found array"),
        ({"device_placement": []}, "no rule that names a device"),
        ({"nnpa_ops_config": [{"pattern": {"match": {}, "rewrite": {}}}]}, "node_type"),
        ({"device_placement": [{"device": "gpu", "node_type": "onnx.*"}]}, "device 'gpu'; expected cpu, nnpa, or nothing"),
        ({"device_placement": [{"device": "cpu", "node_type": "onnx.("}]}, "rule 0 is no regular expression"),
        ({"nnpa_ops_config": [{"pattern": CONDITION}]}, "a condition on tensors"),
        ({"operators": {"*": "gpu"}}, r"no unit or processor 'gpu'; expected one of cpu"),
        ({"operators": {"nothing": "cpu"}}, "no operator is called 'nothing'"),
        ({"operators": {"neg": "cpu"}}, r"no unit for 'loop'.* more; expected a unit for every operator"),
        ({"operators": {"*": "cpu"}, "more": 1}, "unknown field `?more|more"),
        ({"other": 1}, "no known form"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_read(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_foreign(written_file(tmp_path, content), stated(loop_model()))


def test_a_pattern_that_takes_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmsolve.hw.assignment.programs.onnx_mlir.SECONDS", 0.5)
    rules = {"device_placement": [{"device": "cpu", "node_type": "onnx.*", "onnx_node_name": "(a+)+b"}]}
    data = json.dumps(rules).encode()
    with pytest.raises(InputError, match="takes more than"):
        matched(read_rules(data, tmp_path), [Named("Neg", "a" * 60)], tmp_path)


def test_placements_by_hand_name_operators_patterns_and_types(tmp_path: Path) -> None:
    proto = model(
        [
            node("Conv", ["x", "w"], ["a"], name="c1"),
            node("Relu", ["a"], ["b"], name="r1"),
            node("Relu", ["b"], ["y"], name="r2"),
        ],
        [value("x", 1, 8, 6, 6), value("w", 8, 8, 3, 3)], [value("y", None, None, None, None)],
    )  # fmt: skip
    of = stated(proto, "server-4acc")
    names = of.problem.units.names
    path = written_file(
        tmp_path, {"operators": {"r*": names[0], "kind:Conv": names[2], "r2": names[1], "*": names[0]}}
    )
    answer = read_foreign(path, of)
    assert [names[j] for j in answer.unit[1:-1]] == [names[2], names[0], names[1]]
    assert answer.fused.shape == (of.problem.groups.count,) and is_foreign(path)
    processor = names[1].rpartition("/")[0]
    answer = read_foreign(written_file(tmp_path, {"operators": {"*": processor}}), of)
    assert {names[j] for j in answer.unit[1:-1]} == {names[1]}, "the first core of a processor"
