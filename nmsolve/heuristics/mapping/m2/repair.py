"""Making a mapping legal: every node to the nearest core that may and can hold it."""

from __future__ import annotations

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.common.room import fits, nearest
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray


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
    return placed(
        wish,
        problem.sizes,
        problem.capacity,
        problem.domain_of,
        problem.domains,
        problem.apart,
        problem.machine.cols,
    )


def placed(
    wish: AnyArray,
    sizes: IntArray,
    capacity: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart: tuple[IntArray, Int32Array],
    cols: int,
) -> IntArray | None:
    """:func:`repair` for nodes given by their arrays, which are those of ``MappingProblem`` (n, of any level)."""
    share = (sizes / np.maximum(capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    choices = domains.sum(axis=1)[domain_of]
    alone = np.diff(apart[0]) == 0
    order = np.lexsort((-share, alone, choices))
    core = np.full(len(sizes), -1, np.int64)
    at = np.ascontiguousarray(wish, np.int64)
    done = _place(order, at, cols, sizes, capacity.copy(), domain_of, domains, *apart, core)
    return core if done else None


@nb.njit(cache=True, nogil=True)
def _put(u: int, p: int, sizes: IntArray, free: IntArray, core: IntArray) -> None:
    """Move ``u`` to core ``p`` (from none, or from another)."""
    for r in range(sizes.shape[1]):
        if core[u] >= 0:
            free[core[u], r] += sizes[u, r]
        free[p, r] -= sizes[u, r]
    core[u] = p


@nb.njit(cache=True, nogil=True)
def _place(
    order: IntArray,
    wish: IntArray,
    cols: int,
    sizes: IntArray,
    free: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
) -> bool:
    """Fill ``core`` (n,), all -1 before, in ``order``; False if a node found no core. Changes ``free``."""
    for i in range(len(order)):
        u = order[i]
        if fits(u, wish[u], -1, sizes, free, domain_of, domains, apart_ptr, apart, core):
            _put(u, wish[u], sizes, free, core)
        elif domain_of[u] > 0:
            p = nearest(u, wish[u], cols, sizes, free, domain_of, domains, apart_ptr, apart, core)
            if p >= 0:
                _put(u, p, sizes, free, core)
    for i in range(len(order)):
        u = order[i]
        if core[u] >= 0:
            continue
        p = nearest(u, wish[u], cols, sizes, free, domain_of, domains, apart_ptr, apart, core)
        if p < 0:
            p = _push(u, cols, sizes, free, domain_of, domains, apart_ptr, apart, core)
        if p < 0:
            return False
        _put(u, p, sizes, free, core)
    return True


@nb.njit(cache=True, nogil=True)
def _push(
    u: int,
    cols: int,
    sizes: IntArray,
    free: IntArray,
    domain_of: Int32Array,
    domains: BoolArray,
    apart_ptr: IntArray,
    apart: Int32Array,
    core: IntArray,
) -> int:
    """Make room for ``u`` by moving one node to a third core; the core freed, or -1."""
    for v in range(len(core)):
        p = int(core[v])
        if p < 0 or not fits(u, p, v, sizes, free, domain_of, domains, apart_ptr, apart, core):
            continue
        q = nearest(v, p, cols, sizes, free, domain_of, domains, apart_ptr, apart, core)
        if q >= 0:
            _put(v, q, sizes, free, core)
            return p
    return -1
