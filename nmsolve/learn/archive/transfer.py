"""An old mapping on a new problem: counterparts keep their place on the board, new nodes go to their neighbours."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.hw.scores import objective_value
from nmsolve.learn.archive.arcs import Arcs
from nmsolve.learn.archive.packing import Solved
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Passes in which nodes without a place take that of their neighbours.
PASSES = 20
#: Up to this many nodes, or parts, without a core of their own are spread over the free ones by assignment.
SPREAD = 1500


def transferred(
    problem: MappingProblem, solved: Solved, graph: Arcs, match: IntArray
) -> tuple[IntArray | None, float]:
    """Return the best legal mapping (n,) that the old one leads to and its objective; None and inf if none was found.

    On a board of another size the old one is put into the middle, stretched, and turned by a quarter where that fits better;
    what is cheapest after the repair counts.

    Parameters
    ----------
    graph : that of ``problem``
    match : (n,) counterparts in ``solved.graph``, -1 for none
    """
    best: tuple[IntArray | None, float] = None, np.inf
    for at in _places(problem, solved):
        if problem.one_per_core:
            wish = _single(problem, at, graph, match, solved.core)
        else:
            wish = _together(problem, at, graph, match, solved.core)
        core = repair(problem, wish)
        if core is not None:
            value = objective_value(problem, core)
            if best[0] is None or value < best[1]:
                best = core, value
    return best


def _places(problem: MappingProblem, solved: Solved) -> list[FloatArray]:
    """Return where the old board's cores may come to lie, (old cores, 2) each: rows and columns of their middles."""
    new = np.array([problem.machine.rows, problem.machine.cols], np.float64)
    old = np.array([solved.rows, solved.cols], np.float64)
    at = np.stack(np.divmod(np.arange(solved.rows * solved.cols), solved.cols), axis=1) + 0.5
    if (old == new).all():
        return [at]
    out = []
    for turned in (False, True) if (old[0] > old[1]) != (new[0] > new[1]) else (False,):
        size, place = (old[::-1], at[:, ::-1]) if turned else (old, at)
        out.append(place * (new / size))
        if (size <= new).all():
            out.append(place + (new - size) // 2)
    return out


def _single(
    problem: MappingProblem, at: FloatArray, graph: Arcs, match: IntArray, old_core: IntArray
) -> IntArray:
    """Return the wishes (n,) with one node per core: new nodes between their neighbours, then no core twice."""
    known = match >= 0
    place = np.zeros((problem.n, 2))
    place[known] = at[old_core[match[known]]]
    place[~known] = _among_neighbours(
        graph, place, known, (problem.machine.rows / 2, problem.machine.cols / 2)
    )
    wish = _core_at(problem, place)
    usable = problem.machine.usable
    order = np.lexsort((np.arange(problem.n), ~known))
    first = order[np.unique(wish[order], return_index=True)[1]]
    settled = np.zeros(problem.n, bool)
    settled[first] = usable[wish[first]] & problem.domains[problem.domain_of[first], wish[first]]
    rest, free = np.flatnonzero(~settled), usable.copy()
    free[wish[settled]] = False
    wish[rest] = _spread(problem, place[rest], np.flatnonzero(free), wish[rest])
    return wish


def _together(
    problem: MappingProblem, at: FloatArray, graph: Arcs, match: IntArray, old_core: IntArray
) -> IntArray:
    """Return the wishes (n,) with many nodes per core: parts stay whole, new nodes join the part they talk to most."""
    known = match >= 0
    part = np.full(problem.n, -1, np.int64)
    part[known] = old_core[match[known]]
    used, part[known] = np.unique(part[known], return_inverse=True)
    if not len(used):
        return np.full(problem.n, int(np.argmax(problem.machine.usable)), np.int64)
    place = at[used]
    core = _core_at(problem, place)
    usable = problem.machine.usable
    if len(used) <= usable.sum():
        own = np.zeros(len(used), bool)
        own[np.unique(core, return_index=True)[1]] = True
        own &= usable[core]
        free, rest = usable.copy(), np.flatnonzero(~own)
        free[core[own]] = False
        core[rest] = _spread(problem, place[rest], np.flatnonzero(free), core[rest])
    part = _joined(graph, part, len(used))
    lonely = part < 0
    part[lonely] = np.arange(int(lonely.sum())) % len(used)
    return np.asarray(core[part])


def _joined(graph: Arcs, part: IntArray, parts: int) -> IntArray:
    """Return ``part`` (n,) where nodes without one (-1) have that of most of their traffic, if they have traffic with any."""
    from scipy.sparse import csr_array

    part = part.copy()
    for _ in range(PASSES):
        new, known = np.flatnonzero(part < 0), np.flatnonzero(part >= 0)
        if not len(new):
            break
        member = csr_array((np.ones(len(known)), (known, part[known])), shape=(graph.n, parts))
        towards = csr_array(graph.traffic[new] @ member)
        most = np.asarray(towards.argmax(axis=1)).ravel() if parts else np.zeros(len(new), np.int64)
        has = np.diff(towards.indptr) > 0
        if not has.any():
            break
        part[new[has]] = most[has]
    return part


def _core_at(problem: MappingProblem, place: FloatArray) -> IntArray:
    """Return the core that holds each place (k, 2); beyond the border the nearest."""
    rows, cols = problem.machine.rows, problem.machine.cols
    at = np.clip(place.astype(np.int64), 0, (rows - 1, cols - 1))
    return np.asarray(at[:, 0] * cols + at[:, 1])


def _among_neighbours(
    graph: Arcs, place: FloatArray, known: BoolArray, middle: tuple[float, float]
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


def _spread(problem: MappingProblem, place: FloatArray, free: IntArray, wish: IntArray) -> IntArray:
    """Return a free core of its own for every place, all together as near as can be; ``wish`` where that is too much work."""
    from scipy.optimize import linear_sum_assignment

    if not len(place) or not len(free) or len(place) * len(free) > SPREAD**2:
        return wish
    row, col = np.divmod(free, problem.machine.cols)
    far = np.abs(place[:, 0][:, None] - row - 0.5) + np.abs(place[:, 1][:, None] - col - 0.5)
    i, j = linear_sum_assignment(far)
    out = wish.copy()
    out[i] = free[j]
    return out
