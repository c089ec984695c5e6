"""Small ONNX models for tests, and numbers for the symbols in what is inferred from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.formats.onnx.build import build_graph
from nmsolve.model.operators.graph import OperatorGraph, Tensor
from nmsolve.model.operators.inference import infer_shapes
from nmsolve.model.operators.symbols import Names

OPSET = 17


def value(name: str, *shape: int | str | None, dtype: int = TensorProto.FLOAT) -> Any:
    """An input or output of a graph."""
    return helper.make_tensor_value_info(name, dtype, list(shape))


def weight(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def ints(name: str, *numbers: int) -> Any:
    return weight(name, np.array(numbers, np.int64))


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], weights: Sequence[Any] = (), opset: int = OPSET,
    domains: Sequence[str] = (),
) -> Any:  # fmt: skip
    """A model; outputs may be names, which get no type."""
    infos = [onnx.ValueInfoProto(name=o) if isinstance(o, str) else o for o in outputs]
    graph = helper.make_graph(list(nodes), "test", list(inputs), infos, list(weights))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def saved(proto: Any, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def loaded(proto: Any, folder: Path, strict: bool = False) -> OperatorGraph:
    return load_onnx(saved(proto, folder), strict)


def own_inference(proto: Any) -> OperatorGraph:
    """The graph by this package's rules alone, without the shapes that the onnx package infers or the file states."""
    names = Names()
    return infer_shapes(build_graph(proto, names, "test"), names)


def tensor(graph: OperatorGraph, name: str) -> Tensor:
    return next(t for t in graph.tensors if t.name == name)


def shape_of(graph: OperatorGraph, name: str) -> tuple[Any, ...] | None:
    return tensor(graph, name).shape


def bound(x: Any, numbers: Mapping[str, int]) -> Any:
    """An expression with numbers for its symbols, by name."""
    import sympy

    if not isinstance(x, sympy.Basic):
        return x
    x = x.xreplace({s: sympy.Integer(numbers[str(s)]) for s in x.free_symbols if str(s) in numbers})
    return bool(x) if x.is_Boolean else int(x) if x.is_Integer else x


def bound_shape(t: Tensor, numbers: Mapping[str, int]) -> tuple[Any, ...] | None:
    return None if t.shape is None else tuple(bound(d, numbers) for d in t.shape)
