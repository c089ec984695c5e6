"""Data types of what an operator makes, by the type constraints of its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nmsolve.model.formats.onnx.values import DTYPES, Hollow, dtype_name

#: Names in the definitions -> names here.
SPELLED = {"float": "float32", "double": "float64"}

#: Operators whose attribute says the type, and the type without it.
BY_ATTRIBUTE = {
    "EyeLike": "dtype", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype", "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
}  # fmt: skip

#: Of these, the ones that without it keep the type of their input.
LIKE_INPUT = frozenset({"EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli"})


def output_dtypes(
    kind: str, domain: str, version: int, attributes: Mapping[str, Any], inputs: Sequence[str], outputs: int
) -> list[str]:
    """Return types of the outputs, empty where they are not known."""
    stated = _contributed(kind, inputs, outputs) if domain else _stated(kind, attributes, inputs)
    if stated is not None:
        return stated
    constraint_in, constraint_out = _definition(kind, domain, version)
    if not constraint_out:
        return [inputs[0] if inputs else ""] * outputs if domain else [""] * outputs
    out = []
    for k in range(outputs):
        text = constraint_out[min(k, len(constraint_out) - 1)]
        bound = next(
            (
                d
                for j, d in enumerate(inputs)
                if d and constraint_in and constraint_in[min(j, len(constraint_in) - 1)] == text
            ),
            "",
        )
        out.append(_parsed(text) or bound)
    return out


def _stated(kind: str, attributes: Mapping[str, Any], inputs: Sequence[str]) -> list[str] | None:
    """Return types by the attributes of standard operators; None: of these operators they say nothing."""

    def given(name: str) -> str:
        return dtype_name(attributes.get(name, 0))

    def of(k: int) -> str:
        return inputs[k] if k < len(inputs) else ""

    if kind in ("Cast", "BitCast"):
        return [str(attributes.get("to", ""))]
    if kind == "Constant":
        return [_constant(attributes)]
    if kind == "ConstantOfShape":
        return [_typed(attributes["value"]) if "value" in attributes else "float32"]
    if kind in BY_ATTRIBUTE:
        return [given(BY_ATTRIBUTE[kind]) or (of(0) if kind in LIKE_INPUT else "float32")]
    if kind == "QuantizeLinear":
        return [given("output_dtype") or of(2) or "uint8"]
    if kind == "DequantizeLinear":
        return [given("output_dtype") or of(1)]
    if kind == "LayerNormalization":
        return [of(0), *[given("stash_type") or "float32"] * 2]
    return None


#: Contributed operators whose first result is not of the type of their first input: of which input it is, in order of
#: preference; a text stands for itself.
_RESULT_OF: dict[str, tuple[int | str, ...]] = {
    "QuantizeLinear": (2, "uint8"), "DequantizeLinear": (1, "float32"), "QLinearConcat": (1, 2), "QGemm": (8, "float32"),
    "MatMulIntegerToFloat": (2, "float32"), "QAttention": (3, "float32"), "EmbedLayerNormalization": (2,),
}  # fmt: skip


def _contributed(kind: str, inputs: Sequence[str], outputs: int) -> list[str] | None:
    """Return types of the outputs of ONNX Runtime's operators; None: they are those of the first input."""
    if kind == "GroupQueryAttention":  # the cache keeps its type
        cache = next((inputs[k] for k in (3, 0) if k < len(inputs) and inputs[k]), "")
        return [inputs[0], cache, cache][:outputs]
    if kind not in _RESULT_OF:
        return None
    choices = (k if isinstance(k, str) else inputs[k] if k < len(inputs) else "" for k in _RESULT_OF[kind])
    first = next((dtype for dtype in choices if dtype), "")
    return [first, *(["int32", first] if kind == "EmbedLayerNormalization" else [first] * 2)][:outputs]


def _schema(kind: str, domain: str, version: int) -> Any:
    """Return the definition of an operator, None if there is none."""
    import onnx

    if not 0 <= version < 2**31:  # the package takes an int of 32 bits
        return None
    try:
        return onnx.defs.get_schema(kind, version, domain)
    except onnx.defs.SchemaError:
        return None


def attribute_kinds(kind: str, domain: str, version: int) -> Mapping[str, int] | None:
    """Numbers of the attribute types that the definition of an operator asks for, by name; None if there is no definition."""

    schema = _schema(kind, domain, version)
    if schema is None:
        return None
    return {name: int(a.type.value) for name, a in schema.attributes.items()}


@lru_cache(maxsize=1024)
def _definition(kind: str, domain: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Type constraints of inputs and outputs by their names; the last may be repeated."""

    schema = _schema(kind, domain, version)
    if schema is None:
        return (), ()
    allowed = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}

    def named(text: str) -> str:
        only = allowed.get(text, ())
        return next(iter(only)) if len(only) == 1 else text

    return tuple(i.type_str for i in schema.inputs), tuple(named(o.type_str) for o in schema.outputs)


def _parsed(text: str) -> str:
    """Return ``tensor(int64)`` as ``int64``; empty for the name of a constraint."""
    if text.startswith(("seq(", "optional(", "map(")):
        return "sequence"
    inner = text[7:-1] if text.startswith("tensor(") else ""
    return SPELLED.get(inner, inner if inner in DTYPES else "")


def _constant(attributes: Mapping[str, Any]) -> str:
    for name, value in attributes.items():
        if name in ("value", "sparse_value"):
            return _typed(value)
        if name.startswith("value_"):
            return {
                "value_int": "int64",
                "value_ints": "int64",
                "value_float": "float32",
                "value_floats": "float32",
            }.get(name, "string")
    return ""


def _typed(value: Any) -> str:
    if isinstance(value, Hollow):
        return value.dtype
    return str(value.dtype) if isinstance(value, np.ndarray) else ""
