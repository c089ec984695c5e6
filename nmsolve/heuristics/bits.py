"""Lowest and highest set bit of a 64-bit word, as the processor's own instructions."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Return the number of zero bits below the lowest set bit of a uint64 > 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(types.uint64), build


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def leading_zeros(typing_context: Any, word: Any) -> Any:
    """Return the number of zero bits above the highest set bit of a uint64 > 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(types.uint64), build
