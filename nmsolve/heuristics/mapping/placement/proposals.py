"""What both annealing kernels share: where to propose a move to, and whether the rules allow it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.placement.tables import Grid, Seats
from nmsolve.model.compiled import callee, kernel, plain_callee
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Exponential variates (4096 quantiles): a move is made if its price is below temperature times one of them, which
#: is Metropolis' rule without a logarithm in the loop.
QUANTILES: AnyArray = -np.log((np.arange(4096) + 0.5) / 4096).astype(np.float32)


@callee
def line_near(here: int, reach: int, length: int, wrap: bool, bits: Any) -> Any:
    """A random line at most ``reach`` from ``here`` on an axis of ``length``; ``bits`` are 16 random bits."""
    if wrap:
        line = here - reach + np.int64((bits * np.uint64(2 * reach + 1)) >> np.uint64(16))
        if line < 0:
            return line + length
        return line - length if line >= length else line
    lo, hi = max(0, here - reach), min(length - 1, here + reach)
    return lo + np.int64((bits * np.uint64(hi - lo + 1)) >> np.uint64(16))


@kernel
def scramble(swaps: int, rng: IntArray, grid: Grid, seats: Seats) -> None:
    """Make ``swaps`` random permitted moves and swaps, whatever they cost; tables have to be built again."""
    n, cols, count = len(seats.cx), grid.dx.shape[0], rng[0]
    for _ in range(swaps):
        count += STEP
        bits = mix(count)
        u = np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        low = bits & np.uint64(0xFFFFFFFF)
        q = np.int64((low * np.uint64(len(seats.node))) >> np.uint64(32))
        p, v = np.int64(seats.cy[u]) * cols + np.int64(seats.cx[u]), np.int64(seats.node[q])
        if v != -2 and v != u and allowed(u, q, v, p, grid.domain, grid.domains):
            put(u, v, p, q, cols, seats)
    rng[0] = count


@plain_callee
def put(u: int, v: int, p: int, q: int, cols: int, seats: Seats) -> None:
    """Put ``u`` on core ``q`` and ``v`` (< 0: nobody) on ``p``, where ``u`` was."""
    seats.cx[u], seats.cy[u], seats.node[q], seats.node[p] = q % cols, q // cols, u, v
    if v >= 0:
        seats.cx[v], seats.cy[v] = p % cols, p // cols


@plain_callee
def allowed(u: int, p: int, v: int, q: int, domain: Int32Array, domains: BoolArray) -> bool:
    """True if ``u`` may sit on core ``p`` and ``v`` (< 0: nobody) on ``q``."""
    if domains.shape[0] == 1:
        return True
    return domains[domain[u], p] and (v < 0 or domains[domain[v], q])
