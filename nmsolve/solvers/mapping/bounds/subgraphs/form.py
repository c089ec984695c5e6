"""What the subgraph bound sees of a problem, in whole numbers: pairs, distances by class of core, the free grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from nmsolve.hw.cost import core_distance
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.compiled import kernel
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.pairs import PairForm, nearest, no_core, pair_form

#: Most cores, and most pairs and metric rows that the ascent works with.
MAX_CORES, MAX_PAIRS, MAX_ROWS = 4096, 60_000, 700_000
#: Pairs per node that are enough.
PAIRS_PER_NODE = 50
#: Costs stay below 2 ** COST_BITS, the largest weight gets at most UNIT_BITS binary places.
COST_BITS, UNIT_BITS, DISTANCE_BITS = 46, 24, 10
#: Slots around a core that are distinguished; later ones count as the last.
MAX_SLOTS = 128


@dataclass(frozen=True)
class Form:
    """A placement problem for the decomposition; all numbers are whole.

    Attributes
    ----------
    n : nodes
    pair : (Q, 2) pairs ``u < v``, those with traffic first
    weight : (Q,) traffic in ``1 / unit``, rounded down; 0 for pairs that only carry metric rows
    row : (R, 3) pairs (a, b, c) of a metric row ``d_a + d_b >= d_c``
    star_ptr, star_pair : every pair at both ends, by node
    near : (C, M) distance of the ``r``-th nearest other core, in ``1 / scale``, for every class of cores
    class_of : (k,) class of every usable core; count : (C,) cores of each class
    full : as many cores as nodes, so every core is taken
    grid : (4,) least link in x and y in ``1 / scale``, rows, columns
    step : ``1 / scale`` paid by every pair on different cores, on top of the grid
    unit, scale : units of weights and of distances per whole number
    lattice : of the objective, 0 if unknown
    """

    n: int
    pair: IntArray
    weight: IntArray
    row: IntArray
    star_ptr: IntArray
    star_pair: IntArray
    near: IntArray
    class_of: IntArray
    count: IntArray
    full: bool
    grid: IntArray
    step: int
    unit: float
    scale: float
    lattice: float

    @property
    def denominator(self) -> float:
        """Whole numbers per unit of the objective."""
        return self.unit * self.scale


def _no_grid(problem: MappingProblem) -> str | None:
    if problem.machine.size > MAX_CORES:
        return f"{problem.machine.size} cores are more than {MAX_CORES}"
    if not problem.graph.traffic[2].any():
        return "no edge carries traffic"
    if len(problem.graph.traffic[1]) > 2 * MAX_PAIRS:
        return f"the graph joins more than {MAX_PAIRS} pairs"
    if min(least_links(problem)[:2]) <= 0:
        return "links cost nothing"
    if not core_distance(problem).symmetric:
        return "links dead in one direction make distances asymmetric"
    return no_core(problem)


#: Why the subgraph bound cannot take a problem, or None: it needs one node per core and the distances of a grid.
refuses_form = takes(f"pairs {LIMITS} -several -lone -matrix -torus", _no_grid)


def least_links(problem: MappingProblem) -> tuple[float, float, float]:
    """Least cost of a link in x and in y, and what every pair on different cores pays on top (0, 0, 1 for cut)."""
    if problem.aim.distance == "apart":
        return 0.0, 0.0, 1.0
    machine, quantity = problem.machine, problem.aim.quantity
    wx, wy = line_values(machine, quantity, 1), line_values(machine, quantity, 0)
    least = [float(w.min()) if len(w) else np.inf for w in (wx, wy)]
    lx, ly = min(least[0], 1e300), min(least[1], 1e300)
    return (
        min(lx, ly) if lx == 1e300 else lx,
        min(lx, ly) if ly == 1e300 else ly,
        step_value(machine, quantity),
    )


def build_form(problem: MappingProblem) -> Form:
    """Bring a problem that :func:`refuses_form` lets pass into :class:`Form`."""
    pairs = pair_form(problem)
    pair, weights, hops = _pairs(pairs)
    lx, ly, step = least_links(problem)
    farthest = max(float(block.max()) for _, block in pairs.blocks())
    d = pairs.distance
    whole = d.integral and farthest < 2.0**DISTANCE_BITS
    # half a unit more, so that the farthest is not rounded down to the next one; and a margin, as re-checks round exactly
    scale = 1.0 if whole else (2.0**DISTANCE_BITS + 0.5) / farthest
    safe = 1.0 if whole else scale * (1 - 1e-9)
    total = max(1e-300, float(weights.sum()) * farthest * scale)
    below = max(
        0, -int(np.floor(np.log2(weights.max())))
    )  # places that the largest weight itself leaves empty
    unit = 2.0 ** min(UNIT_BITS + below, COST_BITS - int(np.ceil(np.log2(total))))
    ends = np.concatenate([pair[:, 0], pair[:, 1]])
    degree = np.bincount(ends, minlength=pairs.n)
    near, class_of = _classes(pairs, safe, int(degree.max()))
    m = problem.machine
    grid = [int(lx * safe), int(ly * safe), m.rows, m.cols]
    return Form(
        n=pairs.n,
        pair=pair,
        weight=np.floor(weights * unit).astype(np.int64),
        row=_metric_rows(pairs.n, pair, hops),
        star_ptr=np.concatenate([[0], np.cumsum(degree)]).astype(np.int64),
        star_pair=(np.argsort(ends, kind="stable") % len(pair)).astype(np.int64),
        near=near,
        class_of=class_of,
        count=np.bincount(class_of, minlength=len(near)).astype(np.int64),
        full=pairs.n == len(pairs.cores),
        grid=np.array(grid, np.int64),
        step=int(step * safe),
        unit=unit,
        scale=scale,
        lattice=pairs.lattice,
    )


def _pairs(form: PairForm) -> tuple[IntArray, FloatArray, IntArray]:
    """Pairs with traffic, then pairs more and more hops apart while they are few enough; their traffic and hops."""
    n = form.n
    link = csr_array((np.ones(len(form.indices)), form.indices, form.indptr), shape=(n, n))
    reach, far = link, [_upper(link)]
    while len(far) < n:
        wider = csr_array(((reach + reach @ link) > 0).astype(np.float64))
        wider.setdiag(0)
        wider.eliminate_zeros()
        if (
            wider.nnz == reach.nnz
            or wider.nnz > 2 * min(MAX_PAIRS, PAIRS_PER_NODE * n)
            or _row_count(wider, link) > MAX_ROWS
        ):
            break
        beyond = csr_array(wider - reach)
        beyond.eliminate_zeros()
        far.append(_upper(beyond))
        reach = wider
    weight = csr_array((form.weights, form.indices, form.indptr), shape=(n, n))
    pair = np.concatenate(far)
    traffic: FloatArray = np.zeros(len(pair))
    traffic[: len(far[0])] = np.asarray(weight[far[0][:, 0], far[0][:, 1]]).ravel()
    hops = np.repeat(np.arange(1, len(far) + 1), [len(f) for f in far])
    return pair, traffic, hops


def _upper(reach: csr_array) -> IntArray:
    """(m, 2) entries above the diagonal."""
    a, b = reach.nonzero()
    return np.stack([a[a < b], b[a < b]], axis=1).astype(np.int64)


def _row_count(reach: csr_array, link: csr_array) -> float:
    """How many metric rows the pairs in ``reach`` would have, about."""
    return float((np.diff(reach.indptr) * np.diff(link.indptr)).sum())


def _metric_rows(n: int, pair: IntArray, hops: IntArray) -> IntArray:
    """Rows ``d(u, v) + d(v, x) >= d(u, x)`` for every edge uv and pair vx that is one hop nearer than ux.

    Sorted by the hops of ux: what a row takes from is supplied by rows before it only.
    """
    index = csr_array((np.arange(1, len(pair) + 1), (pair[:, 0], pair[:, 1])), shape=(n, n))
    index = csr_array(index + index.T)
    index.sort_indices()
    ptr, to = index.indptr.astype(np.int64), index.indices.astype(np.int64)
    rows: IntArray = _rows_of(ptr, to, index.data - 1, pair[hops == 1], hops, MAX_ROWS)
    return rows[np.argsort(hops[rows[:, 2]], kind="stable")]


@kernel
def _rows_of(
    indptr: IntArray, indices: IntArray, number: IntArray, edge: IntArray, hops: IntArray, most: int
) -> IntArray:
    out = np.zeros((most, 3), np.int64)
    count = 0
    edges = len(edge)
    for e in range(edges):
        for turn in range(2):
            u, v = edge[e, turn], edge[e, 1 - turn]
            i = indptr[u]
            for j in range(indptr[v], indptr[v + 1]):  # x runs over the pairs of v; both lists are sorted
                x = indices[j]
                while i < indptr[u + 1] and indices[i] < x:
                    i += 1
                if i < indptr[u + 1] and indices[i] == x and x != u:
                    q = number[j]
                    # Of two edges at v each would give the same row.
                    if hops[number[i]] != hops[q] + 1 or (q < edges and e > q) or count == most:
                        continue
                    out[count, 0], out[count, 1], out[count, 2] = e, q, number[i]
                    count += 1
    return out[:count].copy()


def _classes(form: PairForm, scale: float, most: int) -> tuple[IntArray, IntArray]:
    """Distances of the nearest other cores for every class of cores with equal ones, and the class of each core."""
    slots = min(most, MAX_SLOTS, max(1, len(form.cores) - 1))
    parts = [nearest(block, which, slots + 1)[:, 1:] for which, block in form.blocks()]
    profile = np.floor(np.concatenate(parts) * scale).astype(np.int64)
    if profile.shape[1] == 0:
        profile = np.zeros((len(form.cores), 1), np.int64)
    near, class_of = np.unique(profile, axis=0, return_inverse=True)
    return np.ascontiguousarray(near), class_of.reshape(-1).astype(np.int64)
