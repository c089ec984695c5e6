"""Small models for split programs, and units for their operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx_support import ints, model, own_inference, saved, value, weight

from nmsolve.hw.assignment.programs.manifest import Manifest
from nmsolve.hw.assignment.programs.run import RunReport, run_programs
from nmsolve.hw.assignment.programs.write import unit_entries, write_pieces
from nmsolve.model.formats.onnx.nodes import OperatorPath, all_nodes, scope_of

UNITS = ("host", "npu/0", "npu/1")
node = helper.make_node


def paths_of(proto: Any) -> list[OperatorPath]:
    """Paths of all operators, those of bodies included."""
    return [n.path for n in all_nodes(scope_of(proto.graph, "test"))]


def placed(proto: Any, seed: int, units: Sequence[str] = UNITS) -> dict[OperatorPath, str]:
    """A random unit for every operator."""
    rng = np.random.default_rng(seed)
    return {path: str(rng.choice(units)) for path in paths_of(proto)}


def written(proto: Any, placement: Mapping[OperatorPath, str], folder: Path, **more: Any) -> Manifest:
    """Split a model into ``folder/programs``; its shapes are inferred in this process, which saves time."""
    path = saved(proto, folder)
    more.setdefault("graph", own_inference(proto))
    return write_pieces(path, placement, unit_entries(UNITS), folder / "programs", **more)


def devices_of(proto: Any) -> dict[OperatorPath, str]:
    """The device that the configuration ``nmsolve`` of a model gives to every node, by path."""
    (names,) = (list(c.device) for c in proto.configuration if c.name == "nmsolve")
    out = {}
    for n in all_nodes(scope_of(proto.graph, "test")):
        (own,) = n.proto.device_configurations
        assert own.configuration_id == "nmsolve"
        (device,) = {d for spec in own.sharding_spec for d in spec.device}
        out[n.path] = names[device]
    return out


def split_and_run(proto: Any, placement: Mapping[OperatorPath, str], folder: Path, **more: Any) -> RunReport:
    """Split a model, run the pieces and the model, compare."""
    written(proto, placement, folder)
    return run_programs(folder / "programs", folder / "model.onnx", **more)


def random_model(seed: int, size: int = 14) -> Any:
    """A model of tensors [batch, 4] with products by weights, shape arithmetic and several outputs."""
    rng = np.random.default_rng(seed)
    live, nodes = ["x", "y"], []
    weights = [
        weight("w", rng.standard_normal((4, 4)).astype(np.float32) / 2),
        ints("axes", 1),
        ints("zero", 0),
    ]
    for k in range(size):
        name, kind = f"t{k}", rng.choice(["Tanh", "Neg", "Add", "Mul", "MatMul", "Shape", "Constant"])
        a, b = (str(rng.choice(live)) for _ in range(2))
        if kind in ("Tanh", "Neg"):
            nodes.append(node(kind, [a], [name]))
        elif kind == "MatMul":
            nodes.append(node("MatMul", [a, "w"], [name]))
        elif kind == "Shape":  # rows of a, as a number, go into the sum
            nodes += [
                node("Shape", [a], [f"s{k}"]),
                node("Gather", [f"s{k}", "zero"], [f"g{k}"]),
                node("Cast", [f"g{k}"], [f"c{k}"], to=TensorProto.FLOAT),
                node("Add", [a, f"c{k}"], [name]),
            ]
        elif kind == "Constant":
            constant = weight("", np.full(4, float(rng.integers(1, 3)), np.float32))
            nodes += [node("Constant", [], [f"k{k}"], value=constant), node("Add", [a, f"k{k}"], [name])]
        else:
            nodes.append(node(kind, [a, b], [name]))
        live.append(name)
    nodes += [node("ReduceSum", [live[-1], "axes"], ["sum"]), node("Shape", [live[-2]], ["rows"])]
    outputs = [
        value("sum", None, None), value("rows", None, dtype=TensorProto.INT64), value(live[-1], None, None)
    ]  # fmt: skip
    return model(nodes, [value("x", "batch", 4), value("y", "batch", 4)], outputs, weights)


def loop_model(steps_known: bool = False) -> Any:
    """A loop whose body holds an ``If``; both branches and the body use tensors from outside, one result is stacked.

    The state is multiplied by a weight in even turns and x is added in odd ones; a condition on its sum may end the loop.
    """
    even = helper.make_graph(
        [node("MatMul", ["state", "w"], ["p"], name="even_mul"), node("Tanh", ["p"], ["p2"], name="even_tanh")],
        "even", [], [value("p2", None, None)],
    )  # fmt: skip
    odd = helper.make_graph(
        [node("Add", ["state", "x2"], ["q"], name="odd_add")], "odd", [], [value("q", None, None)]
    )
    body = helper.make_graph(
        [
            node("Constant", [], ["two"], value=weight("", np.array(2, np.int64))),
            node("Mod", ["i", "two"], ["m"], name="mod"),
            node("Cast", ["m"], ["is_odd"], to=TensorProto.BOOL, name="to_bool"),
            node("If", ["is_odd"], ["next"], then_branch=odd, else_branch=even, name="which"),
            node("ReduceMax", ["next"], ["top"], keepdims=0, name="top"),
            node("Less", ["top", "limit"], ["goes_on"], name="less"),
            node("ReduceSum", ["next", "one"], ["row"], keepdims=0, name="row"),
        ],
        "body",
        [
            value("i", dtype=TensorProto.INT64),
            value("c", dtype=TensorProto.BOOL),
            value("state", "batch", 4),
        ],
        [value("goes_on", dtype=TensorProto.BOOL), value("next", "batch", 4), value("row", None)],
    )
    nodes = [
        node("Neg", ["x"], ["x2"], name="neg"),
        node("Loop", ["steps", "true", "x2"], ["last", "rows"], body=body, name="loop"),
        node("Add", ["last", "x"], ["out"], name="add"),
    ]
    rng = np.random.default_rng(3)
    weights = [
        weight("w", rng.standard_normal((4, 4)).astype(np.float32)), weight("limit", np.float32(50)), ints("one", 1),
        weight("true", np.array(True)),
    ]  # fmt: skip
    inputs = [value("x", "batch", 4)]
    if steps_known:
        weights.append(weight("steps", np.array(3, np.int64)))
    else:
        inputs.append(value("steps", dtype=TensorProto.INT64))
    return model(nodes, inputs, [value("out", None, None), value("rows", None, None)], weights)


def scan_model(back: bool) -> Any:
    """Running sums along axis 1, from the front or from the back, and their last value."""
    body = helper.make_graph(
        [
            node("Add", ["sum", "slice"], ["sum2"], name="add"),
            node("Mul", ["sum2", "w"], ["scaled"], name="mul"),
        ],
        "body", [value("sum", "batch"), value("slice", "batch")], [value("sum2", "batch"), value("scaled", "batch")],
    )  # fmt: skip
    nodes = [
        node("ReduceSum", ["x", "one"], ["start"], keepdims=0, name="start"),
        node(
            "Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[1], name="scan",
            scan_output_axes=[1], scan_input_directions=[int(back)], scan_output_directions=[int(back)],
        ),
    ]  # fmt: skip
    return model(
        nodes, [value("x", "batch", "length")], [value("last", None), value("all", None, None)],
        [ints("one", 1), weight("w", np.float32(0.5))],
    )  # fmt: skip
