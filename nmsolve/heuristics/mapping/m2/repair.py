"""Making a mapping legal: every node to the nearest core that may and can hold it."""

from __future__ import annotations

import numba as nb
import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, Int32Array, IntArray


def repair(problem: MappingProblem, wish: IntArray) -> IntArray | None:
    """A mapping that obeys capacities, faults and side constraints, close to ``wish``; None if none was
    found.

    No step of a published method: M2 and M1.4 know neither side constraints nor parts that do not fit.
    Nodes with the fewest allowed cores choose first, then nodes kept apart from others, then large ones.
    Each keeps the core it wishes if it may; the others take the nearest allowed core with room (Manhattan
    distance on the board); one that finds none pushes a single other node to a third core.

    Parameters
    ----------
    wish : (n,) int64 core numbers in range, otherwise arbitrary
    """
    capacity = problem.capacity
    share = (problem.sizes / np.maximum(capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    choices = problem.domains.sum(axis=1)[problem.domain_of]
    alone = np.diff(problem.apart[0]) == 0
    order = np.lexsort((-share, alone, choices))
    core = np.full(problem.n, -1, np.int64)
    done = _place(
        order,
        np.ascontiguousarray(wish, np.int64),
        problem.domain_of,
        problem.domains,
        problem.sizes,
        capacity,
        problem.apart[0],
        problem.apart[1],
        problem.machine.cols,
        core,
    )
    return core if done else None


@nb.njit(cache=True, nogil=True)
def _may(
    u: int,
    p: int,
    domain_of: Int32Array,
    domains: BoolArray,
    sizes: IntArray,
    capacity: IntArray,
    load: IntArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
    without: int,
) -> bool:
    """True if ``u`` may join core ``p``; node ``without`` (-1: none) is treated as gone from it."""
    if not domains[domain_of[u], p]:
        return False
    for r in range(sizes.shape[1]):
        spare = capacity[p, r] - load[p, r]
        if without >= 0:
            spare += sizes[without, r]
        if sizes[u, r] > spare:
            return False
    clear = True
    for e in range(apart_ptr[u], apart_ptr[u + 1]):
        clear = clear and (core[apart[e]] != p or apart[e] == without)
    return clear


@nb.njit(cache=True, nogil=True)
def _put(u: int, p: int, sizes: IntArray, load: IntArray, core: IntArray) -> None:
    """Move ``u`` to core ``p`` (from none, or from another)."""
    for r in range(sizes.shape[1]):
        if core[u] >= 0:
            load[core[u], r] -= sizes[u, r]
        load[p, r] += sizes[u, r]
    core[u] = p


@nb.njit(cache=True, nogil=True)
def _nearest(
    u: int,
    wish: int,
    domain_of: Int32Array,
    domains: BoolArray,
    sizes: IntArray,
    capacity: IntArray,
    load: IntArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
    cols: int,
) -> int:
    """Nearest core to ``wish``, other than its present one, that ``u`` may join, or -1."""
    best, least = -1, 1 << 62
    for p in range(capacity.shape[0]):
        away = abs(p // cols - wish // cols) + abs(p % cols - wish % cols)
        if p == core[u] or away >= least:
            continue
        if _may(u, p, domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, -1):
            best, least = p, away
    return best


@nb.njit(cache=True, nogil=True)
def _place(
    order: IntArray,
    wish: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    sizes: IntArray,
    capacity: IntArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    cols: int,
    core: IntArray,
) -> bool:
    load = np.zeros(capacity.shape, np.int64)
    for i in range(len(order)):
        u = order[i]
        if _may(u, wish[u], domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, -1):
            _put(u, wish[u], sizes, load, core)
        elif domain_of[u] > 0:
            p = _nearest(u, wish[u], domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, cols)
            if p >= 0:
                _put(u, p, sizes, load, core)
    for i in range(len(order)):
        u = order[i]
        if core[u] >= 0:
            continue
        p = _nearest(u, wish[u], domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, cols)
        if p < 0:
            p = _push(u, domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, cols)
        if p < 0:
            return False
        _put(u, p, sizes, load, core)
    return True


@nb.njit(cache=True, nogil=True)
def _push(
    u: int,
    domain_of: Int32Array,
    domains: BoolArray,
    sizes: IntArray,
    capacity: IntArray,
    load: IntArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
    cols: int,
) -> int:
    """Make room for ``u`` by moving one node to a third core; the core freed, or -1."""
    for v in range(len(core)):
        p = int(core[v])
        if p < 0 or not _may(u, p, domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, v):
            continue
        q = _nearest(v, p, domain_of, domains, sizes, capacity, load, apart_ptr, apart, core, cols)
        if q >= 0:
            _put(v, q, sizes, load, core)
            return p
    return -1
