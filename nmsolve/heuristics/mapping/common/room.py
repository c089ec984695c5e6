"""Who fits where: capacities, allowed cores and ``apart`` of a mapping that is being made."""

from __future__ import annotations

import numba as nb

from nmsolve.model.types import BoolArray, Int32Array, IntArray


@nb.njit(cache=True, nogil=True)
def fits(
    u: int,
    p: int,
    without: int,
    sizes: IntArray,
    free: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
) -> bool:
    """True if ``u`` may go to core ``p`` once node ``without`` (-1: nobody) has left it."""
    if not domains[domain_of[u], p]:
        return False
    for r in range(sizes.shape[1]):
        room = free[p, r]
        if without >= 0:
            room += sizes[without, r]
        if sizes[u, r] > room:
            return False
    clear = True
    for e in range(apart_ptr[u], apart_ptr[u + 1]):
        v = apart[e]
        clear = clear and (core[v] != p or v == without)
    return clear


@nb.njit(cache=True, nogil=True)
def nearest(
    u: int,
    wish: int,
    cols: int,
    sizes: IntArray,
    free: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
) -> int:
    """The core nearest to ``wish`` on the board that takes ``u``, other than its present one; or -1."""
    best, least = -1, 1 << 62
    for p in range(free.shape[0]):
        away = abs(p // cols - wish // cols) + abs(p % cols - wish % cols)
        if (
            p != core[u]
            and away < least
            and fits(u, p, -1, sizes, free, domain_of, domains, apart_ptr, apart, core)
        ):
            best, least = p, away
    return best
