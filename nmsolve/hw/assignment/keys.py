"""What makes two operations the same for the function library: type, settings, types of elements, sizes (M3.8)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor

#: A small constant input (axes, a new shape) is a setting; one with more elements is data.
MOST_VALUES = 16


class Key(NamedTuple):
    """An operation.

    Attributes
    ----------
    kind : its type, ``domain::type`` outside the standard
    attributes : JSON object of its settings, constant inputs among them (``in1``), keys sorted
    types : types of elements of inputs and results: ``float32,int64>float32``
    sizes : JSON list of the inputs' shapes, null for one that is left out
    """

    kind: str
    attributes: str
    types: str
    sizes: str


def key_of(graph: OperatorGraph, operator: Operator, bindings: Mapping[str, int]) -> Key:
    """Return the key of an operator.

    Raises
    ------
    InputError : a shape that is not known
    """
    where = f"{graph.name}: {operator.kind} {operator.name!r}"
    settings: dict[str, Any] = {name: _plain(value) for name, value in operator.attributes.items()}
    sizes: list[list[int] | None] = []
    for place, k in enumerate(operator.inputs):
        if k < 0:
            sizes.append(None)
            continue
        tensor = graph.tensors[k]
        sizes.append([bind(d, bindings, f"the shape of {tensor.name!r}", where) for d in _shape(tensor)])
        value = small_constant(tensor)
        if value is not None:
            settings[f"in{place}"] = value
    inputs = [graph.tensors[k].dtype if k >= 0 else "" for k in operator.inputs]
    results = [graph.tensors[k].dtype if k >= 0 else "" for k in operator.outputs]
    return Key(
        kind=f"{operator.domain}::{operator.kind}"
        if operator.domain not in ("", "ai.onnx")
        else operator.kind,
        attributes=json.dumps(settings, sort_keys=True, separators=(",", ":")),
        types=",".join(inputs) + ">" + ",".join(results),
        sizes=json.dumps(sizes, separators=(",", ":")),
    )


def family_of(key: Key) -> str:
    """Return the operations that one regression may hold: those of a type; convolutions by their kind.

    A depthwise convolution (each channel by itself), one with a kernel of a single point, and any other do a MAC at very
    different rates.
    """
    if key.kind not in ("Conv", "ConvInteger", "QLinearConv"):
        return key.kind
    settings = json.loads(key.attributes)
    if settings.get("group", 1) not in (1, None):
        return f"{key.kind} by groups"
    kernel = settings.get("kernel_shape")
    return (
        f"{key.kind} at points" if isinstance(kernel, list) and set(map(repr, kernel)) == {"1"} else key.kind
    )


def small_constant(tensor: Tensor) -> list[int | bool] | None:
    """Return the value of a tensor that is a setting: a few known whole numbers or truth values; else None."""
    value = tensor.value
    if (
        value is None
        or value.size > MOST_VALUES
        or not (tensor.dtype == "bool" or tensor.dtype.startswith(("int", "uint")))
    ):
        return None
    flat = value.reshape(-1).tolist()
    if not all(isinstance(x, (int, bool)) for x in flat):
        return None
    return flat


def _shape(tensor: Tensor) -> tuple[Any, ...]:
    return (None,) if tensor.shape is None else tensor.shape


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it; arrays by their type, shape and a hash of their elements."""
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(repr(value.tolist()).encode()).hexdigest()[:16]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else repr(float(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return repr(value)
