"""Shapes that the ``onnx`` package itself infers, on a copy of the model without weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nmsolve.model.formats.onnx.order import Needs, ordered
from nmsolve.model.formats.onnx.parse import first_line
from nmsolve.model.formats.onnx.values import dims_of, type_of
from nmsolve.model.operators.shapes.facts import LARGEST_VALUE
from nmsolve.model.operators.symbols import Names


def inferred_graph(model: Any, where: str) -> tuple[Any, tuple[str, ...]]:
    """The ``GraphProto`` with all types that the package infers, or the model's own and a warning if it fails.

    The package's checker goes first: on a model that breaks the rules its inference may bring down the process.

    Raises
    ------
    InputError : the operators cannot be put in order
    """
    from google.protobuf.message import DecodeError, EncodeError
    from onnx import checker, shape_inference

    light = _light(model, where)
    try:
        checker.check_model(light)
    except (checker.ValidationError, RuntimeError, ValueError, TypeError, DecodeError, EncodeError) as error:
        return model.graph, (f"the onnx package finds fault with this model: {first_line(error)}",)
    try:
        return shape_inference.infer_shapes(light, data_prop=True).graph, ()
    except (
        shape_inference.InferenceError, RuntimeError, ValueError, TypeError, MemoryError, DecodeError, EncodeError,
    ) as error:  # fmt: skip
        return model.graph, (f"the onnx package cannot infer shapes of this model: {first_line(error)}",)


def stated_dtypes(graph: Any) -> dict[str, str]:
    """Data types written in a graph and its bodies, by name of tensor."""
    return {info.name: dtype for info in _infos(graph) if (dtype := type_of(info)[0])}


def stated_shapes(graph: Any, names: Names) -> dict[str, tuple[Any, ...]]:
    """Shapes written in a graph and its bodies, by name: numbers and symbols of the inputs, None for other lengths."""

    def length(d: int | str | None) -> Any:
        if isinstance(d, str):
            return names.given(d) if names.is_given(d) else None
        return d

    shapes = ((info.name, type_of(info)[1]) for info in _infos(graph))
    return {name: tuple(map(length, dims_of(shape))) for name, shape in shapes if shape is not None}


def _infos(graph: Any) -> Iterator[Any]:
    for part in _graphs(graph):
        yield from part.value_info
        yield from part.output
        if part is not graph:
            yield from part.input


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("g"):
                yield from _graphs(a.g)


def _light(model: Any, where: str) -> Any:
    """A copy in which large weights are inputs: their type and shape without their data."""
    import onnx

    light = onnx.ModelProto()
    light.ir_version = max(model.ir_version, 4)
    light.opset_import.extend(model.opset_import)
    light.graph.name = model.graph.name
    _copy(model.graph, light.graph, light.graph, where)
    return light


def _copy(source: Any, target: Any, top: Any, where: str) -> None:
    """Copy a graph without the data of large weights, which become inputs of ``top``: bodies see its tensors too."""
    import onnx

    known = {i.name for i in source.input}
    target.input.extend(source.input)
    # An output without a type would be a fault; without its being an output it is inferred like any other tensor.
    target.output.extend(o for o in source.output if o.HasField("type") or target is not top)
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
    for k in ordered(source, Needs(source), (), where):
        node = source.node[k]
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
                _copy(a.g, new.g, top, where)
            else:
                new.CopyFrom(a)
