"""An old mapping on a new problem: counterparts keep their place on the board, new nodes go to their neighbours."""

from __future__ import annotations

import numpy as np

from nmsolve.learn.memory.arcs import Arcs
from nmsolve.learn.memory.store import Solved
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Passes in which nodes without a place take the mean of their neighbours' places.
PASSES = 20
#: One node per core: up to so many nodes without a core of their own are spread over the free ones by assignment.
SPREAD = 1500


def transferred(problem: MappingProblem, solved: Solved, graph: Arcs, match: IntArray) -> IntArray:
    """Return (n,) int64 cores as wished, not necessarily legal.

    Parameters
    ----------
    graph : that of ``problem``
    match : (n,) counterparts in ``solved.graph``, -1 for none
    """
    rows, cols = problem.machine.rows, problem.machine.cols
    place = np.zeros((problem.n, 2))
    known = match >= 0
    place[known] = np.stack(np.divmod(solved.core[match[known]], solved.cols), axis=1) + 0.5
    place *= (rows / solved.rows, cols / solved.cols)
    place[~known] = _among_neighbours(graph, place, known, (rows / 2, cols / 2))
    at = np.clip(place.astype(np.int64), 0, (rows - 1, cols - 1))
    wish = at[:, 0] * cols + at[:, 1]
    return _spread(problem, wish, place, known) if problem.one_per_core else wish


def _among_neighbours(
    graph: Arcs, place: FloatArray, known: np.ndarray, middle: tuple[float, float]
) -> FloatArray:
    """Return places (k, 2) of the nodes that are not ``known``: the mean of their neighbours, by traffic; else the middle."""
    new = np.flatnonzero(~known)
    if not len(new):
        return place[new]
    traffic = graph.traffic[new]
    now, placed = place.copy(), known.astype(np.float64)
    now[new] = 0.0
    for _ in range(PASSES):
        seen = traffic @ placed
        mean = traffic @ (now * placed[:, None]) / np.maximum(seen, 1e-300)[:, None]
        has = seen > 0
        now[new[has]], placed[new[has]] = mean[has], 1.0
    lost = new[placed[new] == 0]
    now[lost] = middle
    return now[new]


def _spread(problem: MappingProblem, wish: IntArray, place: FloatArray, known: np.ndarray) -> IntArray:
    """One node per core: counterparts first, the lowest number wins; all others share the free cores, each the nearest it can."""
    from scipy.optimize import linear_sum_assignment

    usable = problem.machine.usable
    order = np.lexsort((np.arange(len(wish)), ~known))
    first = order[np.unique(wish[order], return_index=True)[1]]
    settled = np.zeros(len(wish), bool)
    settled[first] = usable[wish[first]] & problem.domains[problem.domain_of[first], wish[first]]
    rest = np.flatnonzero(~settled)
    free = usable.copy()
    free[wish[settled]] = False
    cores = np.flatnonzero(free)
    if not len(rest) or not len(cores) or len(rest) > SPREAD or len(rest) * len(cores) > SPREAD**2:
        return wish
    row, col = np.divmod(cores, problem.machine.cols)
    far = np.abs(place[rest, 0][:, None] - row - 0.5) + np.abs(place[rest, 1][:, None] - col - 0.5)
    i, j = linear_sum_assignment(far)
    out = wish.copy()
    out[rest[i]] = cores[j]
    return out
