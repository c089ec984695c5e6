"""Operators that act on every element alone, with broadcasting, and the values of small integer tensors they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.facts import (
    LARGEST_VALUE,
    Call,
    Fact,
    Lengths,
    UnknownShape,
    listed,
    rule,
    shape_rules,
    tidy,
)
from nmsolve.model.operators.symbols import (
    broadcast,
    exact,
    floor_div,
    is_number,
    maximum,
    plain,
    product,
    truncated_div,
)
from nmsolve.model.types import AnyArray


def _sympy(name: str) -> Callable[..., Any]:
    """Return SymPy's function of this name, of numbers without decimals and expressions."""

    def applied(*items: Any) -> Any:
        import sympy

        return plain(getattr(sympy, name)(*map(exact, items)))

    return applied


#: kind -> function of numbers, function of an expression
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    "Neg": (np.negative, lambda x: -x),
    "Abs": (np.abs, abs),
    "Sign": (np.sign, _sympy("sign")),
    "Floor": (np.floor, _sympy("floor")),
    "Ceil": (np.ceil, _sympy("ceiling")),
    "Not": (np.logical_not, _sympy("Not")),
    "Sqrt": (np.sqrt, None),
    "Relu": (lambda x: np.maximum(x, 0), lambda x: maximum(exact(x), 0)),
}


@rule(*UNARY)
def unary_value(call: Call) -> Sequence[Fact]:
    """The shape of the first input; the value follows."""
    value = call.value(0)
    numbers, expression = UNARY[call.kind]
    if value is None:
        return [Fact(call.shape(0))]
    if value.dtype != object:
        with np.errstate(all="ignore"):
            return [Fact(call.shape(0), np.asarray(numbers(value)))]
    return [Fact(call.shape(0), None if expression is None else each(expression, value))]


def _small(shape: Lengths) -> bool:
    """Return whether a value of this shape is followed."""
    return all(type(d) is int for d in shape) and 0 < product(shape) <= LARGEST_VALUE


def each(function: Callable[..., Any], *values: AnyArray) -> AnyArray | None:
    """Apply a function of plain Python values and expressions to broadcast arrays; the result has their common shape."""
    arrays = np.broadcast_arrays(*(v.astype(object) for v in values))
    out = np.empty(arrays[0].shape, object)
    for k, items in enumerate(zip(*(a.ravel() for a in arrays), strict=True)):
        out.flat[k] = function(*map(plain, items))
    return tidy(out)


def _numbers_div(a: AnyArray, b: AnyArray) -> AnyArray | None:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if (b == 0).any():
        return None
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) == (b < 0), quotient, -quotient))


def _numbers_mod(a: AnyArray, b: AnyArray) -> AnyArray | None:
    return None if (b == 0).any() else np.asarray(np.mod(a, b))


def _power(a: Any, b: Any) -> Any:
    return plain(exact(a) ** exact(b))


#: kind -> function of number arrays, function of two expressions (None: the value is lost)
BINARY: dict[str, tuple[Callable[[AnyArray, AnyArray], Any], Callable[[Any, Any], Any] | None]] = {
    "Add": (np.add, lambda a, b: plain(exact(a) + exact(b))),
    "Sub": (np.subtract, lambda a, b: plain(exact(a) - exact(b))),
    "Mul": (np.multiply, lambda a, b: plain(exact(a) * exact(b))),
    "Div": (_numbers_div, truncated_div),
    "Mod": (_numbers_mod, _sympy("Mod")),
    "Pow": (np.power, _power),
    "Equal": (np.equal, _sympy("Eq")),
    "Less": (np.less, _sympy("Lt")),
    "LessOrEqual": (np.less_equal, _sympy("Le")),
    "Greater": (np.greater, _sympy("Gt")),
    "GreaterOrEqual": (np.greater_equal, _sympy("Ge")),
    "And": (np.logical_and, _sympy("And")),
    "Or": (np.logical_or, _sympy("Or")),
    "Xor": (np.logical_xor, _sympy("Xor")),
}


@rule(*BINARY)
def binary(call: Call) -> Sequence[Fact]:
    """Two inputs, broadcast; the value follows where both are known."""
    shape = broadcast(call.shape(0), call.shape(1))
    a, b = call.value(0), call.value(1)
    if a is None or b is None or not _small(shape):
        return [Fact(shape)]
    numbers, expression = BINARY[call.kind]
    if call.kind == "Mod" and call.attributes.get("fmod"):
        numbers, expression = np.fmod, None
    if call.kind == "Div" and not call.integer:
        expression = lambda x, y: plain(exact(x) / exact(y)) if y != 0 else None  # noqa: E731
    if a.dtype != object and b.dtype != object:
        with np.errstate(all="ignore"):
            value = numbers(a, b)
        return [Fact(shape, None if value is None else tidy(np.asarray(value)))]
    if expression is None or (call.kind in ("Div", "Mod") and b.dtype != object and (b == 0).any()):
        return [Fact(shape)]
    return [Fact(shape, each(expression, a, b))]


@rule("Max", "Min", "Sum", "Mean", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "StringConcat")
def many(call: Call) -> Sequence[Fact]:
    """Any number of inputs, broadcast; the value follows for Max and Min."""
    shapes = [call.shape(k) for k in range(len(call.inputs))]
    values = [call.value(k) for k in range(len(call.inputs))]
    known = [v for v in values if v is not None]
    if call.kind not in ("Max", "Min") or len(known) < len(values) or not _small(broadcast(*shapes)):
        return [Fact(broadcast(*shapes))]
    if any(v.dtype == object for v in known):
        return [Fact(broadcast(*shapes), each(_sympy(call.kind), *known))]
    numbers = np.maximum if call.kind == "Max" else np.minimum
    return [Fact(broadcast(*shapes), tidy(np.asarray(reduce(numbers, known))))]


def _choose(condition: Any, a: Any, b: Any) -> Any:
    if is_number(condition):
        return a if condition else b
    import sympy

    return plain(sympy.Piecewise((exact(a), condition), (exact(b), True)))


@rule("Where")
def where(call: Call) -> Sequence[Fact]:
    """Condition, one, other: broadcast, element by element."""
    shape = broadcast(call.shape(0), call.shape(1), call.shape(2))
    condition, a, b = (call.value(k) for k in range(3))
    if condition is None or a is None or b is None or not _small(shape):
        return [Fact(shape)]
    if condition.dtype == object:
        return [Fact(shape, each(_choose, condition, a, b))]
    return [Fact(shape, tidy(np.asarray(np.where(condition.astype(bool), a, b))))]


@rule("Identity", "Dropout")
def identity(call: Call) -> Sequence[Fact]:
    """Return the same again; Dropout's second output is its mask."""
    if call.fact(0) is None:
        raise UnknownShape
    return [Fact(call.inputs[0].shape if call.inputs[0] else None, call.value(0)), Fact(call.shape(0))][
        : len(call.outputs)
    ]


@rule("Constant")
def constant(call: Call) -> Sequence[Fact]:
    """Return a value out of the attributes; one too large to be kept has its shape there."""
    for name, value in call.attributes.items():
        if name == "value" or name == "sparse_value":
            shape = tuple(int(d) for d in value.shape)
            return [Fact(shape, tidy(value) if isinstance(value, np.ndarray) else None)]
        if name in ("value_int", "value_float"):
            return [Fact((), np.array(value))]
        if name in ("value_ints", "value_floats"):
            return [Fact((len(value),), tidy(np.array(listed(value))))]
        if name == "value_strings":
            return [Fact((len(value),))]
        if name == "value_string":
            return [Fact(())]
    raise UnknownShape


#: Every output has the shape of the first input.
shape_rules({
    "Acos Acosh Asin Asinh Atan Atanh Bernoulli BitwiseNot Celu Clip Cos Cosh CumSum CumProd DequantizeLinear Elu Erf Exp Gelu "
    "HardSigmoid HardSwish Hardmax IsInf IsNaN LeakyRelu Log LogSoftmax LRN Mish PRelu QuantizeLinear RandomNormalLike "
    "RandomUniformLike Reciprocal ReverseSequence RotaryEmbedding Round Selu Shrink Sigmoid Sin Sinh Softmax Softplus Softsign "
    "Swish Tan Tanh TensorScatter ThresholdedRelu Trilu MeanVarianceNormalization LpNormalization BitCast RegexFullMatch "
    "FastGelu QuickGelu BiasGelu": lambda c: [c.shape(0)] * len(c.outputs),
})  # fmt: skip


#: Data types whose values are followed through a cast.
FOLLOWED = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip


def cast_value(value: AnyArray | None, dtype: str) -> AnyArray | None:
    """Return a value as another data type, same shape; fractions are cut off on the way to integers. None if not followed."""
    if value is None or dtype not in FOLLOWED:
        return None
    if value.dtype != object:
        with np.errstate(all="ignore"):
            return np.asarray(value.astype(dtype))
    if dtype.startswith("float"):
        return each(_as_number, value)
    return each(_as_truth if dtype == "bool" else _as_integer, value)


def _as_number(x: Any) -> Any:
    """Truth as 1 or 0 (a symbol counts as truth for SymPy too, so the question is whether it is an expression)."""
    import sympy

    if is_number(x):
        return int(x) if isinstance(x, bool) else x

    return plain(sympy.Piecewise((1, x), (0, True))) if not isinstance(x, sympy.Expr) else x


def _as_integer(x: Any) -> Any:
    import sympy

    x = _as_number(x)
    if is_number(x):
        return int(x)
    if x.is_integer:
        return x
    if x.is_nonnegative:
        top, bottom = sympy.fraction(sympy.together(x))
        return floor_div(top, plain(bottom)) if bottom.is_Integer else plain(sympy.floor(x))
    return plain(sympy.sign(x) * sympy.floor(sympy.Abs(x)))


def _as_truth(x: Any) -> Any:
    import sympy

    return x if not isinstance(x, sympy.Expr) else plain(sympy.Ne(x, 0))


@rule("Cast", "CastLike")
def cast(call: Call) -> Sequence[Fact]:
    """Another data type; ``to`` is its name."""
    return [Fact(call.shape(0), cast_value(call.value(0), str(call.attributes.get("to", ""))))]
