"""Shapes that the ``onnx`` package itself infers, on a copy of the model without weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nmsolve.model.contained import MEMORY, Allowance, Reply, one_reply
from nmsolve.model.errors import InputError, NmsolveError
from nmsolve.model.formats.onnx.nodes import needs_of, ordered
from nmsolve.model.formats.onnx.values import dims_of, type_of
from nmsolve.model.operators.shapes.facts import LARGEST_VALUE
from nmsolve.model.operators.symbols import Names

#: Seconds after which the package's inference is given up.
PATIENCE = 20.0


def inferred_graph(
    model: Any, where: str, inputs: Mapping[str, Sequence[Any]] | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return the ``GraphProto`` with all types that the package infers, or the model's own and a warning if it fails.

    ``inputs`` are the shapes of inputs by name, with the numbers and symbols that stand for their lengths here.

    The package does this in native code that may bring down its process on a model that breaks the rules: it gets its own.

    Raises
    ------
    InputError : the operators cannot be put in order
    """
    import onnx

    light = _light(model, where)
    for info in light.graph.input:
        for dim, length in zip(
            info.type.tensor_type.shape.dim, (inputs or {}).get(info.name, ()), strict=False
        ):
            if not isinstance(length, int):
                dim.dim_param = str(length)
            elif length < 2**63:
                dim.dim_value = length

    def work() -> Reply:
        from google.protobuf.message import DecodeError, EncodeError

        try:
            done = onnx.shape_inference.infer_shapes(light, data_prop=True).SerializeToString()
        except (OSError, ValueError, RuntimeError, TypeError, KeyError, DecodeError, EncodeError) as error:
            raise InputError((str(error).strip().splitlines() or [type(error).__name__])[-1][:200]) from None
        return Reply(None, {"model": np.frombuffer(done, np.uint8)})

    allowance = Allowance(MEMORY, PATIENCE)
    try:
        data = one_reply(work, where, allowance).arrays["model"].tobytes()
    except NmsolveError as error:
        return model.graph, (f"the onnx package cannot infer shapes of this model: {error}",)
    result = onnx.ModelProto()
    result.ParseFromString(data)
    return result.graph, ()


def stated_dtypes(graph: Any) -> dict[str, str]:
    """Return data types written in a graph and its bodies, by name of tensor."""
    return {info.name: dtype for info in infos(graph) if (dtype := type_of(info)[0])}


def stated_shapes(graph: Any, names: Names) -> dict[str, tuple[Any, ...]]:
    """Return shapes written in a graph and its bodies, by name: numbers and symbols of the inputs, None for other lengths."""

    def length(d: int | str | None) -> Any:
        if isinstance(d, str):
            return names.given(d) if names.is_given(d) else None
        return d

    shapes = ((info.name, type_of(info)[1]) for info in infos(graph))
    return {name: tuple(map(length, dims_of(shape))) for name, shape in shapes if shape is not None}


def infos(graph: Any) -> Iterator[Any]:
    """Yield what is written of the types of tensors, in a graph and its bodies; inputs of the graph itself are left out."""
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
    """Return a copy in which large weights are inputs: their type and shape without their data."""
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
    for k in ordered(source, [needs_of(node) for node in source.node], (), where):
        target.node.append(source.node[k])
        for of, copy in zip(source.node[k].attribute, target.node[-1].attribute, strict=True):
            if of.HasField("g"):
                copy.g.Clear()
                copy.g.name = of.g.name
                _copy(of.g, copy.g, top, where)
