"""The price of one more flow over a link, against the order of channels, or through a full routing table."""

from __future__ import annotations

from typing import NamedTuple

from nmsolve.model.compiled import inlined


class Price(NamedTuple):
    """Prices of one sweep.

    A link with load x costs ``(x / scale) ** 2 ** power``, the sum of which follows the largest load; ``plain`` per unit of
    load; and ``over`` per unit above ``ceiling``. A flow pays ``back`` for every dependency against the order of channels
    (negative: it may take none), and ``entry`` for every table entry that a core has no room for.
    """

    scale: float
    power: int
    plain: float
    ceiling: float
    over: float
    back: float
    entry: float


@inlined
def link_price(before: float, rate: float, price: Price) -> float:
    """By how much the price of a link with load ``before`` grows with ``rate`` messages more."""
    after = before + rate
    x, y = before / price.scale, after / price.scale
    for _ in range(price.power):
        x *= x
        y *= y
    out = y - x + price.plain * rate
    if after > price.ceiling:
        out += price.over * (after - max(before, price.ceiling))
    return out
