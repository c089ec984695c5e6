"""Shapes that the ``onnx`` package itself infers, on a copy of the model without weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nmsolve.model.formats.onnx.parse import first_line
from nmsolve.model.formats.onnx.values import dims_of, type_of
from nmsolve.model.operators.shapes.facts import LARGEST_VALUE
from nmsolve.model.operators.symbols import Names


def shape_hints(model: Any, names: Names) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """Shapes by name of tensor: numbers and symbols of the inputs, None for other lengths; a warning if the inference failed."""
    from google.protobuf.message import DecodeError, EncodeError
    from onnx import shape_inference

    try:
        inferred = shape_inference.infer_shapes(_light(model), data_prop=True)
    except (RuntimeError, ValueError, TypeError, MemoryError, DecodeError, EncodeError) as error:
        return {}, (f"the onnx package cannot infer shapes of this model: {first_line(error)}",)
    return stated_shapes(inferred.graph, names), ()


def stated_shapes(graph: Any, names: Names) -> dict[str, tuple[Any, ...]]:
    """Shapes written in a graph and its bodies: numbers and symbols of the inputs, None for everything else."""
    out = {}
    for part in _graphs(graph):
        for info in (*part.value_info, *part.output, *(part.input if part is not graph else ())):
            _, shape = type_of(info)
            if shape is not None:
                out[info.name] = tuple(
                    d if not isinstance(d, str) else names.given(d) if names.is_given(d) else None
                    for d in dims_of(shape)
                )
    return out


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("g"):
                yield from _graphs(a.g)


def _light(model: Any) -> Any:
    """A copy in which large weights are inputs: their type and shape without their data."""
    import onnx

    light = onnx.ModelProto()
    light.ir_version = max(model.ir_version, 4)
    light.opset_import.extend(model.opset_import)
    light.graph.name = model.graph.name
    _copy(model.graph, light.graph, light.graph)
    return light


def _copy(source: Any, target: Any, top: Any) -> None:
    """Copy a graph without the data of large weights, which become inputs of ``top``: bodies see its tensors too."""
    import onnx

    known = {i.name for i in source.input}
    target.input.extend(source.input)
    target.output.extend(source.output)
    target.value_info.extend(source.value_info)
    for tensor in source.initializer:
        count = 1
        for d in tensor.dims:
            count *= max(int(d), 0)
        if count <= LARGEST_VALUE and tensor.data_location != onnx.TensorProto.EXTERNAL:
            target.initializer.append(tensor)
        elif tensor.name not in known:
            top.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
    for node in source.node:
        if not any(a.HasField("g") for a in node.attribute):
            target.node.append(node)
            continue
        copy = target.node.add()
        copy.op_type, copy.domain, copy.name = node.op_type, node.domain, node.name
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for a in node.attribute:
            new = copy.attribute.add()
            if a.HasField("g"):
                new.name, new.type, new.g.name = a.name, a.type, a.g.name
                _copy(a.g, new.g, top)
            else:
                new.CopyFrom(a)
