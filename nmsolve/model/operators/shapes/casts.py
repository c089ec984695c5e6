"""Changes of data type, and what becomes of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmsolve.model.operators.shapes.elementwise import each
from nmsolve.model.operators.shapes.facts import Call, Fact, rule
from nmsolve.model.operators.symbols import floor_div, is_number, plain
from nmsolve.model.types import AnyArray

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
