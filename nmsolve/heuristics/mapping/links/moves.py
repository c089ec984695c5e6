"""Random moves and swaps of nodes, judged by the hottest links and the sums under ceilings."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.goals import some_change
from nmsolve.heuristics.mapping.common.metropolis import PASSING, REFUSED, SOUND, metropolis
from nmsolve.heuristics.mapping.common.norm import CEILING, OVER, largest
from nmsolve.heuristics.mapping.common.room import seat
from nmsolve.heuristics.mapping.links.state import LinkState, add_row
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, IntArray

#: Relative slack of ceilings in the search: sums gather rounding. The judge of mappings allows less.
SLACK = 1e-13


@plain
def value(s: LinkState) -> float:
    """What the search lowers: the first sum, or the 2^power-norm of the loads (a little above the largest); and the price of
    entries that are too many in routers' tables."""
    paid = s.tables[2] * s.tables[1] if s.tables[1] > 0.0 else 0.0
    if s.by_load:
        return largest(s.heat) + paid  # type: ignore[no-any-return]
    return float(s.factor[0] @ s.sums + s.linked[0]) + paid


@plain
def verdict(s: LinkState) -> int:
    """Refused if a ceiling is broken, no answer while entries are too many."""
    if s.heat[OVER] > SLACK * s.heat[CEILING]:
        return REFUSED
    for k in range(len(s.most)):
        if s.most[k] < np.inf and s.factor[k] @ s.sums + s.linked[k] > s.most[k] * (1.0 + SLACK):
            return REFUSED
    return SOUND if s.tables[1] <= 0.0 else PASSING


@plain
def move(s: LinkState, u: int, q: int) -> None:
    """Put node ``u`` on core ``q`` and bring loads and sums up to date."""
    for j in range(s.row_ptr[u], s.row_ptr[u + 1]):
        add_row(s, s.rows[j], -1.0)
    seat(s.room, u, q)
    for j in range(s.row_ptr[u], s.row_ptr[u + 1]):
        add_row(s, s.rows[j], 1.0)


@plain
def search(s: LinkState, heat: float, tries: int, best: IntArray, low: float, rng: AnyArray) -> float:
    """:func:`~nmsolve.heuristics.mapping.common.metropolis.metropolis` by changes in parts of the value."""
    return metropolis(s, some_change, move, value, verdict, True, heat, heat, tries, best, low, rng)  # type: ignore[no-any-return]
