"""Lengths that grow in a loop, such as that of a KV cache: by as much in every trip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmsolve.model.operators.binding import bind, partly_bound
from nmsolve.model.operators.graph import Tensor

if TYPE_CHECKING:
    from nmsolve.model.operators.sizes import Count

#: Up to this many trips the work of each is added up; beyond, all are as long as the last.
MOST_TRIPS = 1024


@dataclass(frozen=True)
class Growth:
    """A length in the body of a loop: ``first`` in its first trip, ``step`` more in each of the other ``trips``.

    ``loop``: lengths of the same loop have the same number here.
    """

    loop: int
    first: int
    step: int
    trips: int

    def at(self, trip: int) -> int:
        """Return the length in trip 0, 1, ..."""
        return self.first + trip * self.step

    @property
    def longest(self) -> int:
        """Return the largest length."""
        return max(self.first, self.at(max(0, self.trips - 1)))


def growths(first: Tensor, inside: Tensor, after: Tensor, loop: int, trips: int) -> dict[str, Growth]:
    """Return the symbols in the shape of a state that grow, from its first value and its value in and after a trip."""
    found = {}
    for a, b, c in zip(first.shape or (), inside.shape or (), after.shape or (), strict=False):
        if isinstance(a, int) and getattr(b, "is_Symbol", False) and not isinstance(c, int):
            step = (c - b).expand()
            if step.is_Integer and a + min(0, int(step)) * trips >= 0:
                found[str(b)] = Growth(loop, a, int(step), trips)
    return found


def mean_count(
    count: Count | None, bindings: Mapping[str, int], growing: Mapping[str, Growth], what: str, where: str
) -> int:
    """Return a figure of one trip, the mean over all trips, rounded up to a whole number.

    Raises
    ------
    InputError : as :func:`nmsolve.model.operators.binding.bind`
    """
    names = sorted({str(s) for s in getattr(count, "free_symbols", ())} & growing.keys())
    own = [growing[name] for name in names]
    longest = with_longest(bindings, growing)
    trips = own[0].trips if own else 0
    if count is None or not 1 < trips <= MOST_TRIPS or len({g.loop for g in own}) > 1:
        return bind(count, longest, what, where)
    total = sum(
        bind(partly_bound(count, {name: growing[name].at(t) for name in names}), longest, what, where)
        for t in range(trips)
    )
    return -(-total // trips)


def with_longest(bindings: Mapping[str, int], growing: Mapping[str, Growth]) -> dict[str, int]:
    """Return the bindings and the largest value of every length that grows: what memory must hold."""
    return {**bindings, **{name: g.longest for name, g in growing.items()}}
