"""plan.json and the stages in a copy of an ONNX model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plans_support import four_layers

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx_plan import operator_stages, write_onnx_plan
from nmsolve.model.pipeline.files import read_plan, write_plan
from nmsolve.model.pipeline.plan import PipelinePlan

PLAN = PipelinePlan(np.array([0, 0, 1, 1]), np.array([2, 2]))


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    problem = four_layers()
    write_plan(tmp_path / "plan.json", problem, PLAN)
    found = read_plan(tmp_path / "plan.json", problem)
    assert found.stage.tolist() == [0, 0, 1, 1] and found.cores.tolist() == [2, 2]
    first = (tmp_path / "plan.json").read_bytes()
    write_plan(tmp_path / "plan.json", problem, found)
    assert (tmp_path / "plan.json").read_bytes() == first


def test_a_plan_of_another_problem_is_refused(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", four_layers(), PLAN)
    with pytest.raises(InputError, match="another problem"):
        read_plan(tmp_path / "plan.json", four_layers(memory=1e6))
    with pytest.raises(InputError, match="another problem"):
        read_plan(tmp_path / "plan.json", replace(four_layers(), storage=np.full(4, 3.0)))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"stage": [0, 0, 1]}, r"\$\.stage: 3 values"),
        ({"stage": [0, 0, 1, 2]}, r"\$\.stage\[3\]: stage 2 does not exist"),
        ({"stage": [0, 0, 1, -1]}, r"\$\.stage\[3\]"),
        ({"stage": [0, 0, 1, 0.5]}, r"\$\.stage\[3\]"),
        ({"layer": ["a", "b", "x", "d"]}, r"\$\.layer\[2\]: layer 'x'"),
        ({"cores": [1, "many"]}, r"\$\.cores\[1\]"),
        ({"cores": None}, r"\$\.cores"),
        ({"problem": {"name": "four", "hash": "0"}}, "another problem"),
    ],
)  # fmt: skip
def test_a_wrong_file_names_the_place(tmp_path: Path, change: dict[str, Any], where: str) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, four_layers(), PLAN)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=where):
        read_plan(path, four_layers())


def test_a_broken_or_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "plan.json", four_layers())
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(InputError):
        read_plan(tmp_path / "plan.json", four_layers())


def small_model(path: Path) -> Any:
    """MatMul, a Reshape to a computed shape, Relu, MatMul; weights with values."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in (("w1", (8, 16)), ("w2", (16, 4)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], "first"),
        helper.make_node("Shape", ["h"], ["s"], "shape"),
        helper.make_node("Reshape", ["h", "s"], ["r"], "reshape"),
        helper.make_node("Relu", ["r"], ["a"]),
        helper.make_node("MatMul", ["a", "w2"], ["y"], "second"),
    ]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return model


def test_stages_in_a_copy_of_the_model(tmp_path: Path) -> None:
    original = small_model(tmp_path / "m.onnx")
    import onnx

    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.layers import layers_of

    graph = load_onnx(tmp_path / "m.onnx")
    layers = layers_of(graph, {"batch": 2})
    assert layers.kinds == ("MatMul", "Reshape", "Relu", "MatMul")
    plan = PipelinePlan(np.array([0, 1, 1, 2]), np.array([2, 1, 3]))
    assert operator_stages(graph, layers.operators, plan.stage) == [
        0,
        0,
        1,
        1,
        2,
    ]  # Shape lies with its maker
    for _ in range(2):  # marking a marked copy changes nothing
        assert (
            write_onnx_plan(tmp_path / "m.onnx", tmp_path / "staged.onnx", graph, layers.operators, plan) == 5
        )
    copy = onnx.load(tmp_path / "staged.onnx")
    onnx.checker.check_model(copy, full_check=True)
    assert copy.ir_version >= 11
    assert [c.name for c in copy.configuration] == ["nmsolve"]
    assert list(copy.configuration[0].device) == ["stage_0_cores_2", "stage_1_cores_1", "stage_2_cores_3"]
    found = [
        [(d.configuration_id, d.pipeline_stage) for d in n.device_configurations] for n in copy.graph.node
    ]
    assert found == [[("nmsolve", s)] for s in (0, 0, 1, 1, 2)]
    assert list(copy.graph.initializer) == list(original.graph.initializer)
    graph_again = load_onnx(tmp_path / "staged.onnx")
    write_onnx_plan(tmp_path / "staged.onnx", tmp_path / "twice.onnx", graph_again, layers.operators, plan)
    assert (tmp_path / "twice.onnx").read_bytes() == (tmp_path / "staged.onnx").read_bytes()


def test_onnxruntime_gives_stages_to_devices_and_the_same_numbers(tmp_path: Path) -> None:
    """Every node has its stage as layer annotation; a setting with a mistake is refused, so the option is not simply ignored."""
    import onnxruntime

    original = small_model(tmp_path / "m.onnx")
    import onnx

    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.layers import layers_of

    graph = load_onnx(tmp_path / "m.onnx")
    layers = layers_of(graph, {"batch": 2})
    plan = PipelinePlan(np.array([0, 1, 1, 2]), np.array([2, 1, 3]))
    write_onnx_plan(tmp_path / "m.onnx", tmp_path / "staged.onnx", graph, layers.operators, plan)
    copy = onnx.load(tmp_path / "staged.onnx")
    said = [{p.key: p.value for p in n.metadata_props} for n in copy.graph.node]
    assert said == [{"layer_ann": f"stage_{s}"} for s in (0, 0, 1, 1, 2)]
    rng = np.random.default_rng(1)
    feeds = {
        i.name: rng.random([d.dim_value or 2 for d in i.type.tensor_type.shape.dim], np.float32)
        for i in original.graph.input
    }

    def run(name: str, setting: str | None) -> list[np.ndarray]:
        how = onnxruntime.SessionOptions()
        how.log_severity_level = 4
        if setting is not None:
            how.add_session_config_entry("session.layer_assignment_settings", setting)
        session = onnxruntime.InferenceSession(str(tmp_path / name), how, providers=["CPUExecutionProvider"])
        found: list[np.ndarray] = session.run(None, feeds)
        return found

    plain = run("m.onnx", None)
    for setting in (None, "gpu:0(=stage_0); gpu:1(=stage_1); cpu(=stage_2)"):
        assert all(np.array_equal(a, b) for a, b in zip(plain, run("staged.onnx", setting), strict=True))
    with pytest.raises(Exception, match=r"(?i)setting|layer|invalid|format"):
        run("staged.onnx", "gpu:0(=stage_0")


def test_the_model_itself_is_never_overwritten(tmp_path: Path) -> None:
    small_model(tmp_path / "m.onnx")
    from nmsolve.model.formats.onnx import load_onnx

    graph = load_onnx(tmp_path / "m.onnx")
    with pytest.raises(InputError, match="overwrite"):
        write_onnx_plan(tmp_path / "m.onnx", tmp_path / "m.onnx", graph, [0], PLAN)
