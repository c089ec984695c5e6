"""A norm of what many resources carry (links, sides of cores), a little above the largest amount, kept as amounts change."""

from __future__ import annotations

from nmsolve.model.compiled import embedded, plain
from nmsolve.model.types import FloatArray

#: Entries of the arrays ``norm`` here: sum of (amount / unit)^(2^power), unit, power, a price that the caller keeps, ceiling
#: of an amount, all that is above it.
SUM, UNIT, POWER, PRICE, CEILING, OVER = range(6)


@plain
def largest(norm: FloatArray) -> float:
    """The 2^power-norm of all amounts."""
    return float(norm[UNIT] * max(norm[SUM], 0.0) ** (0.5 ** norm[POWER]))


@embedded
def add(amount: FloatArray, norm: FloatArray, r: int, more: float) -> None:
    """Resource ``r`` carries so much more."""
    old = amount[r]
    amount[r] = old + more
    norm[SUM] += _raised(norm, old + more) - _raised(norm, old)
    norm[OVER] += max(0.0, old + more - norm[CEILING]) - max(0.0, old - norm[CEILING])


@embedded
def _raised(norm: FloatArray, amount: float) -> float:
    value = amount / norm[UNIT]
    for _ in range(int(norm[POWER])):
        value *= value
    return float(value)
