"""Getting overfull cores within their capacities at once, reading the connections only of nodes that must move."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.propose import Cores
from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray


@plain_callee
def _may(
    s: Placement, sizes: IntArray, apart_ptr: IntArray, apart: Int32Array, allowed: BoolArray, u: int, p: int
) -> bool:
    """True if node ``u`` may go to core ``p`` at present."""
    if not allowed[p]:
        return False
    for r in range(sizes.shape[1]):
        if sizes[u, r] > 0 and s.load[p, r] + sizes[u, r] > s.goal[p, r]:
            return False
    for e in range(apart_ptr[u], apart_ptr[u + 1]):  # noqa: SIM110 (numba)
        if s.pos[apart[e]] == p:
            return False
    return True


@kernel
def _shed(
    first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray, s: Placement, sizes: IntArray,
    apart_ptr: IntArray, apart: Int32Array, domain: Int32Array, allowed: BoolArray, near: AnyArray,
) -> None:  # fmt: skip
    """Nodes of a block leave overfull cores, until these are not: each goes where it talks most among the cores with room,
    else to the nearest core with room by ``near`` (P, P).
    """
    here = np.zeros(len(s.load), np.float32)
    for i in range(len(indptr) - 1):
        u = first + i
        q = s.pos[u]
        over = False
        for r in range(sizes.shape[1]):
            over = over or (sizes[u, r] > 0 and s.load[q, r] > s.goal[q, r])
        if not over:
            continue
        here[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            here[s.pos[neighbour[e]]] += weight[e]
        best = -1
        for p in range(len(here)):
            if p == q or not _may(s, sizes, apart_ptr, apart, allowed[domain[u]], u, p):
                continue
            if best < 0 or here[p] > here[best] or (here[p] == here[best] and near[q, p] < near[q, best]):
                best = p
        if best < 0:
            continue
        for r in range(sizes.shape[1]):
            s.load[q, r] -= sizes[u, r]
            s.load[best, r] += sizes[u, r]
        s.pos[u] = best


def shed(level: Level, s: Placement, cores: Cores) -> None:
    """Move nodes away from cores above their goal, once through the connections; afterwards most or all are within it.

    Only ``pos`` and ``load`` change.
    """
    x, y = np.asarray(cores.lines_x), np.asarray(cores.lines_y)
    near = x[np.ix_(cores.col, cores.col)] + y[np.ix_(cores.row, cores.row)]
    for arcs in level.source.blocks():
        _shed(
            arcs.first, arcs.indptr, arcs.neighbour, arcs.weight, s, level.sizes, level.apart_ptr, level.apart,
            level.domain, cores.allowed, near,
        )  # fmt: skip
