"""Random moves and swaps of nodes, judged by the hottest links and the sums under ceilings."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.goals import some_change
from nmsolve.heuristics.mapping.common.room import seat
from nmsolve.heuristics.mapping.links.state import LinkState, add_row
from nmsolve.heuristics.rng import uniform
from nmsolve.model.compiled import kernel, plain, plain_callee
from nmsolve.model.types import AnyArray, IntArray

#: Relative slack of ceilings in the search: sums gather rounding. The judge of mappings allows less.
SLACK = 1e-13


@plain
def value(s: LinkState, by_load: bool) -> float:
    """What the search lowers: the first sum, or the 2^power-norm of the loads (a little above the largest); and the price of
    entries that are too many in routers' tables."""
    paid = s.tables[2] * s.tables[1] if s.tables[1] > 0.0 else 0.0
    if by_load:
        return float(s.heat[1] * max(s.heat[0], 0.0) ** (0.5 ** s.heat[2])) + paid
    return float(s.factor[0] @ s.sums + s.linked[0]) + paid


@plain_callee
def legal(s: LinkState) -> bool:
    """True if no ceiling is broken."""
    if s.heat[4] > SLACK * s.heat[3]:
        return False
    for k in range(len(s.most)):
        if s.most[k] < np.inf and s.factor[k] @ s.sums + s.linked[k] > s.most[k] * (1.0 + SLACK):
            return False
    return True


@plain
def move(s: LinkState, u: int, q: int) -> None:
    """Put node ``u`` on core ``q`` and bring loads and sums up to date."""
    for j in range(s.row_ptr[u], s.row_ptr[u + 1]):
        add_row(s, s.rows[j], -1.0)
    seat(s.room, u, q)
    for j in range(s.row_ptr[u], s.row_ptr[u + 1]):
        add_row(s, s.rows[j], 1.0)


@kernel
def search(
    s: LinkState, by_load: bool, heat: float, tries: int, best: IntArray, low: float, rng: AnyArray
) -> float:
    """Try ``tries`` random moves or swaps; keeps in ``best`` (n,) what beats ``low``, whose new value is returned.

    A change is accepted if no ceiling breaks and the value grows by at most ``-heat * log(random)`` of itself.
    """
    now = value(s, by_load)
    for _ in range(tries):
        u, q, v = some_change(s, rng)
        if u < 0:
            continue
        p = s.room.core[u]
        move(s, u, q)
        if v >= 0:
            move(s, v, p)
        new = value(s, by_load)
        limit = now * (1.0 - heat * np.log(uniform(rng) + 1e-300)) if heat > 0.0 else now
        if new <= limit and legal(s):
            now = new
            if now < low - 1e-12 * min(abs(low), 1e300) and s.tables[1] <= 0.0:
                low = now
                best[:] = s.room.core
        else:
            if v >= 0:
                move(s, v, q)
            move(s, u, p)
    return low
