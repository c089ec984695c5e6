"""M2.6: the first placement, by bisection of region and parts together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.published.m2.bisection import bisection
from nmsolve.heuristics.mapping.published.m2.topology import Topology, induced
from nmsolve.model.types import BoolArray, IntArray


def placement_by_bisection(
    groups: Topology, region: BoolArray, tries: int, rng: np.random.Generator, poll: Callable[[], None]
) -> IntArray:
    """M2.6: split the region across its longer side, the parts by M2.3 to fit both halves, down to one part
    per core.

    Parameters
    ----------
    groups : the part graph (one vertex per part)
    region : (rows, cols) bool of the board, as many cores as parts

    Returns
    -------
    (parts,) int64 core number (``row * cols + col``) of every part.
    """
    cols = region.shape[1]
    core = np.full(groups.n, -1, np.int64)
    rows, columns = np.nonzero(region)
    stack = [(groups, np.arange(groups.n), rows, columns)]
    while stack:
        sub, members, r, c = stack.pop()
        if len(members) == 1:
            core[members] = r * cols + c
            continue
        height, width = int(r.max() - r.min()) + 1, int(c.max() - c.min()) + 1
        line, length = (r, height) if height >= width else (c, width)
        near = line < line.min() + (length + 1) // 2
        chosen, _ = bisection(sub, np.ones(sub.n), float(near.sum()), tries, rng, poll)
        for side, cores in ((chosen, near), (~chosen, ~near)):
            where = np.flatnonzero(side)
            stack.append((induced(sub, where), members[where], r[cores], c[cores]))
    return core
