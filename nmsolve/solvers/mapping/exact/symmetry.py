"""Symmetries of the board that no constraint, fault or limit breaks, and what they allow to fix.

A permutation ``g`` of the cores is a symmetry if it keeps all distances, the usable cores and every node's
allowed cores. The orbit of a core is everything it can be moved to; some optimal mapping has the
heaviest node on one representative of every orbit. On a square mesh that is one octant, on an oblong one a
quadrant, on a torus a single core. Candidates are tested against the data, so that a half-broken symmetry
keeps its other half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.data import ExactData

#: The shifts of a torus with more cores than this are not tried: there are as many as cores, each tested on P x P.
MAX_SHIFTED = 144


@dataclass(frozen=True, eq=False)
class BoardSymmetry:
    """The group found, the node to fix, and the cores left to it.

    Attributes
    ----------
    maps : (G, P) int64, ``maps[g, p]`` is where symmetry ``g`` takes core ``p``; row 0 is the identity
    node : the node with most traffic
    cores : ascending representatives of the orbits, one for each
    """

    maps: IntArray
    node: int
    cores: tuple[int, ...]

    def reflecting(self, core: IntArray) -> IntArray:
        """Return the symmetry (P,) that brings ``node`` of the mapping (n,) to one of ``cores``; the identity if none does."""
        reflections: IntArray = self.maps[np.isin(self.maps[:, core[self.node]], self.cores)]
        out: IntArray = reflections[0] if len(reflections) else self.maps[0]
        return out

    def reflect(self, core: IntArray) -> IntArray:
        """Return an equally good mapping (n,) with ``node`` on one of ``cores``."""
        out: IntArray = self.reflecting(core)[core]
        return out


def board_symmetry(data: ExactData) -> BoardSymmetry | None:
    """Return the symmetries that hold, or None if there is only the identity or cores are all alike (cut)."""
    if data.problem.limits_moves:  # every node prefers the core it was on
        return None
    kept = [g for g in _candidates(data) if _holds(data, g)]
    if len(kept) < 2:
        return None
    maps = np.stack(kept)
    traffic = np.bincount(data.tail, data.weight, data.n) + np.bincount(data.head, data.weight, data.n)
    for net in data.nets:
        traffic[net.source] += net.rate * len(net.targets)
    cores = tuple(int(p) for p in np.unique(maps.min(axis=0)))
    return BoardSymmetry(maps, int(np.argmax(traffic)), cores)


def _candidates(data: ExactData) -> list[IntArray]:
    """Reflections, the transpose of a square board, and the shifts of a torus; distinct, identity first."""
    rows, cols = len(data.y), len(data.x)
    r, c = np.divmod(np.arange(data.cores), cols)
    bases = [(r, c), (rows - 1 - r, c), (r, cols - 1 - c), (rows - 1 - r, cols - 1 - c)]
    if rows == cols and not data.spans:  # routes go along rows first: a transpose changes them
        bases += [(b, a) for a, b in bases]
    few = data.cores <= MAX_SHIFTED
    down = range(rows if few and data.wrap_y > 0 else 1)
    right = range(cols if few and data.wrap_x > 0 else 1)
    seen: dict[bytes, IntArray] = {}
    for a, b in bases:
        for i in down:
            for j in right:
                g = (((a + i) % rows) * cols + (b + j) % cols).astype(np.int64)
                seen.setdefault(g.tobytes(), g)
    return list(seen.values())


def _holds(data: ExactData, g: IntArray) -> bool:
    """Return True if ``g`` keeps distances, capacities and every node's allowed cores."""
    d, cap, allowed = data.dense, data.problem.capacity, data.allowed
    return bool((allowed[:, g] == allowed).all() and (cap[g] == cap).all() and (d[np.ix_(g, g)] == d).all())


def cores_alike(data: ExactData) -> bool:
    """Return True if usable cores may be renumbered at will: only the cut counts, all hold the same no node prefers a core."""
    usable = np.flatnonzero(data.problem.machine.usable)
    flat = not data.x.any() and not data.y.any() and data.matrix.shape[0] == 0
    alike = bool((data.allowed[:, usable] == data.allowed[:, usable[:1]]).all()) if len(usable) else False
    return flat and alike and data.problem.alike and not data.problem.limits_moves


def first_come(data: ExactData, core: IntArray) -> IntArray:
    """Return (n,) the mapping with cores renumbered in the order in which the nodes first use them."""
    usable = np.flatnonzero(data.problem.machine.usable)
    _, first, part = np.unique(core, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out: IntArray = usable[rank[part]]
    return out
