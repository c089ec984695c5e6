"""Tensors, types and attributes of a protocol buffer as plain Python values. Large tensors are never decoded."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.facts import LARGEST_VALUE
from nmsolve.model.operators.symbols import Names, plain
from nmsolve.model.types import AnyArray

#: Names of the data types, by their number in ONNX's TensorProto.
DTYPES = (
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32",
    "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2",
)  # fmt: skip


@dataclass(frozen=True)
class Hollow:
    """A tensor in the attributes that is too large to be kept, or is in another file: its type and shape only."""

    dtype: str
    shape: tuple[int, ...]


def dtype_name(number: int) -> str:
    """Name of a data type, empty if there is none of this number."""
    return DTYPES[number] if isinstance(number, int) and 0 <= number < len(DTYPES) else ""


def tensor_shape(tensor: Any) -> tuple[int, ...]:
    """Return the shape of a ``TensorProto``."""
    return tuple(int(d) for d in tensor.dims)


def tensor_value(tensor: Any) -> AnyArray | None:
    """Return the elements of a ``TensorProto`` in its shape.

    None if they are more than LARGEST_VALUE, in another file, texts, or missing.
    """
    from onnx import numpy_helper

    count = 1
    for d in tensor.dims:
        count *= max(int(d), 0)
    if count > LARGEST_VALUE or tensor.data_location == 1 or tensor.data_type == 8:
        return None
    try:
        value = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, RuntimeError, KeyError):
        return None  # stripped of its data
    return value if value.dtype.kind in "biuf" else None


def type_of(info: Any) -> tuple[str, Any]:
    """Data type and shape message (None: no shape) of a ``ValueInfoProto``; lists and options of tensors are ``sequence``s."""
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        tensor = info.type.tensor_type
        return dtype_name(tensor.elem_type), tensor.shape if tensor.HasField("shape") else None
    return ("sequence" if kind else ""), None


def attributes_of(node: Any) -> dict[str, Any]:
    """Return settings of a node as plain Python values; subgraphs are left out."""
    from onnx import AttributeProto as A

    out: dict[str, Any] = {}
    for a in node.attribute:
        if a.type == A.FLOAT:
            out[a.name] = float(a.f)
        elif a.type == A.INT:
            out[a.name] = int(a.i)
        elif a.type == A.STRING:
            out[a.name] = a.s.decode("utf-8", "replace")
        elif a.type == A.FLOATS:
            out[a.name] = tuple(map(float, a.floats))
        elif a.type == A.INTS:
            out[a.name] = tuple(map(int, a.ints))
        elif a.type == A.STRINGS:
            out[a.name] = tuple(s.decode("utf-8", "replace") for s in a.strings)
        elif a.type == A.TENSOR:
            value = tensor_value(a.t)
            out[a.name] = Hollow(dtype_name(a.t.data_type), tensor_shape(a.t)) if value is None else value
        elif a.type == A.SPARSE_TENSOR:
            out[a.name] = Hollow(
                dtype_name(a.sparse_tensor.values.data_type), tuple(map(int, a.sparse_tensor.dims))
            )
    if node.op_type in ("Cast", "BitCast") and "to" in out:
        out["to"] = dtype_name(out["to"])
    return out


#: What exporters write where they know no name of a length: each is a length of its own.
UNNAMED = frozenset({"", "?", "*", "-1", "none", "null", "nan", "unk", "unknown", "undefined"})


def dims_of(shape: Any) -> list[int | str | None]:
    """Return lengths of a shape message: numbers, names, or None."""
    out: list[int | str | None] = []
    for d in shape.dim:
        which = d.WhichOneof("value")
        known = which == "dim_value" and d.dim_value >= 0
        named = which == "dim_param" and d.dim_param.strip().lower() not in UNNAMED
        out.append(int(d.dim_value) if known else d.dim_param if named else None)
    return out


def input_shapes(dims: dict[str, list[int | str | None]], names: Names) -> dict[str, tuple[Any, ...]]:
    """Return shapes of all inputs together. A length without a name gets that of its tensor and axis.

    A name such as ``past + 1`` is an expression if another input has the length ``past``.
    """
    words = {d for shape in dims.values() for d in shape if isinstance(d, str)}
    simple = {w for w in words if re.fullmatch(r"[^\W\d]\w*", w)}
    return {
        tensor: tuple(
            d
            if isinstance(d, int)
            else _length(d, simple, names)
            if d
            else names.given(_own(f"{tensor}_{k}", words))
            for k, d in enumerate(shape)
        )
        for tensor, shape in dims.items()
    }


def _own(name: str, words: set[str]) -> str:
    """Return a name for a length without one that no other length has."""
    while name in words:
        name += "_"
    return name


def _length(text: str, simple: set[str], names: Names) -> Any:
    if text in simple:
        return names.given(text)
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return names.given(text)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    length = _evaluated(tree, names) if used and used <= simple else None
    return names.given(text) if length is None else plain(length)


def _evaluated(tree: ast.AST, names: Names) -> Any:
    """Return a sum, product or quotient of names and whole numbers; None if it is something else."""
    if isinstance(tree, ast.Name):
        return names.given(tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if not isinstance(tree, ast.BinOp):
        return None
    a, b = _evaluated(tree.left, names), _evaluated(tree.right, names)
    if a is None or b is None:
        return None
    if isinstance(tree.op, ast.Add):
        return a + b
    if isinstance(tree.op, ast.Sub):
        return a - b
    if isinstance(tree.op, ast.Mult):
        return a * b
    from nmsolve.model.operators.symbols import floor_div

    return floor_div(a, b) if isinstance(tree.op, ast.FloorDiv) and b != 0 else None
