"""Operators that look at the shape of a tensor only: pieces elsewhere get the shape, not the tensor."""

from __future__ import annotations

from typing import Any

from nmsolve.model.operators.classes import SHAPE_ONLY


def shape_name(tensor: str) -> str:
    """Return the name of the input that stands for a tensor's shape."""
    return f"{tensor}@shape"


def looks_at_shape(node: Any) -> bool:
    """Return whether a ``NodeProto`` is one of ONNX's own that read no element of what they get."""
    return node.op_type in SHAPE_ONLY and node.domain in ("", "ai.onnx")


def shape_input(tensor: str) -> Any:
    """Return the ``ValueInfoProto`` of the shape of a tensor."""
    import onnx

    return onnx.helper.make_tensor_value_info(shape_name(tensor), onnx.TensorProto.INT64, [None])


def shape_nodes(node: Any) -> list[Any]:
    """Return nodes that compute from the shape what ``Shape`` (also a part of it) or ``Size`` computes from the tensor."""
    import onnx

    given, out = shape_name(node.input[0]), node.output[0]
    if node.op_type == "Size":
        return [onnx.helper.make_node("ReduceProd", [given], [out], name=node.name, keepdims=0)]
    part = {a.name: int(a.i) for a in node.attribute}
    if not part:
        return [onnx.helper.make_node("Identity", [given], [out], name=node.name)]
    ends = {"start": part.get("start", 0), "end": part.get("end", 2**63 - 1)}
    nodes = [
        onnx.helper.make_node("Constant", [], [f"{out}@{name}"], value_ints=[value])
        for name, value in ends.items()
    ]
    return [
        *nodes,
        onnx.helper.make_node("Slice", [given, f"{out}@start", f"{out}@end"], [out], name=node.name),
    ]
