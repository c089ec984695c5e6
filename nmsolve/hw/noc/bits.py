"""Sets of small numbers as bits of a word: the lowest member, and the next one after a round-robin pointer."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from nmsolve.hw.noc.kernel import piece


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def lowest(typing_context: Any, word: Any) -> Any:
    """Return the number of the lowest bit set in an int64 > 0, as one instruction."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(types.int64), build


@piece
def first_from(word: int, pointer: int) -> int:
    """Return the first bit set at ``pointer`` or above, else the lowest: round-robin arbitration. ``word`` is > 0."""
    above = (word >> pointer) << pointer
    return int(lowest(above if above else word))
