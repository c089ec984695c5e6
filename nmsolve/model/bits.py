"""The lowest set bit of a 64-bit word, as the processor's own instruction."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _whole(word: Any) -> Any:
    """The type of a word: signed unless it is a uint64."""
    return types.uint64 if word == types.uint64 else types.int64


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def lowest(typing_context: Any, word: Any) -> Any:
    """Return the number of the lowest bit set in a word that is not 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(_whole(word)), build
