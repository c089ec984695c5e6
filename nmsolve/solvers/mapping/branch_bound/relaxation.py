"""What the split bound of a partial mapping works on: eigenvalues, Gilmore-Lawler and triangle rows in one Lagrangian.

With open nodes U, free cores Q (m of them; missing nodes weigh nothing) and multipliers S (symmetric), K (skew) and tau >= 0,

``doubled cost >= const + projection(S) + min over assignments of sum_u (linear[u, p] + least[u, p])``

where the weights are ``A = W - sum_k tau_k A_k`` for rows ``<A_k, distances> >= b_k`` that hold for every mapping, ``const`` adds
``tau_k b_k`` and the cost among mapped nodes, ``projection`` is the eigenvalue bound of Hadley, Rendl and Wolkowicz
(1992) whose linear part joins the assignment, and ``least`` the minimal scalar products of ``A - S + K`` with the distances.
Any multipliers give a valid bound, so children start from their parent's and stop when they please.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

#: Entries of ``Relaxation.size``.
OPEN, FREE, ROWS, BEST = 0, 1, 2, 3
#: Rows are taken where averaged distances break them by this much.
BROKEN = 0.1


class Relaxation(NamedTuple):
    """What the bound needs of the problem, multipliers per depth, and work space.

    Traffic and distances are scaled to about 1; pairs are numbered ``u * n + v`` with u < v.

    Attributes
    ----------
    weight : (n * n,) float64 traffic of pairs u < v, both ways
    dist : (P, P) float64 symmetric distances
    triple : (T, 4) int64, the pairs (a, b), (a, c), (b, c) of every three nodes and ``a * n * n + b * n + c``;
        empty if distances are no metric
    perimeter : least sum of the distances among three cores
    unit : doubled cost of 1 in scaled units
    spectral, skew, row : (n + 2, n, n), (n + 2, n, n), (n + 2, T, 4) float64 start of S, K and tau per depth
    size : (4,) int64 open nodes, free cores, active rows, rows of the best multipliers
    The rest is work space, see :func:`new_relaxation`.
    """

    weight: FloatArray
    dist: FloatArray
    triple: IntArray
    perimeter: float
    unit: float
    spectral: FloatArray
    skew: FloatArray
    row: FloatArray
    size: IntArray
    nodes: IntArray
    cores: IntArray
    fixed: IntArray
    near: FloatArray
    reach: FloatArray
    mu: FloatArray
    vectors: FloatArray
    a: FloatArray
    s: FloatArray
    k: FloatArray
    best_s: FloatArray
    best_k: FloatArray
    dir_s: FloatArray
    dir_k: FloatArray
    active: IntArray
    tau: FloatArray
    best_tau: FloatArray
    dir_tau: FloatArray
    flags: BoolArray
    order: IntArray
    cost: FloatArray
    reduced: FloatArray
    matched: FloatArray
    mixed: FloatArray
    apart: FloatArray
    mean: FloatArray
    load: FloatArray
    dual: FloatArray
    match: IntArray
    scalar: FloatArray


#: Entries of ``Relaxation.scalar``.
CONST, SPECTRAL, SPAN, NEVER, SIZE, LARGE = 0, 1, 2, 3, 4, 5


def new_relaxation(weight: IntArray, dist: IntArray, places: IntArray) -> Relaxation:
    """First multipliers (S = W / 2) for symmetric traffic ``weight`` (n, n) and distances ``dist`` (P, P).

    ``places`` are the usable cores.
    """
    n, cores = len(weight), len(dist)
    heavy = max(1.0, float(weight.max(initial=0)))
    short = float(dist[dist > 0].min()) if (dist > 0).any() else 1.0
    w, d = weight / heavy, dist / short
    inside = d[np.ix_(places, places)]
    threes = list(combinations(range(n), 3)) if is_metric(inside) else []
    abc = np.array(threes, np.int64).reshape(-1, 3)
    a, b, c = abc.T
    triple = np.stack([a * n + b, a * n + c, b * n + c, (a * n + b) * n + c], axis=1)
    t, big = len(triple), max(n, cores)
    f, i = np.float64, np.int64
    x = Relaxation(
        weight=np.triu(w, 1).ravel().astype(f),
        dist=np.ascontiguousarray(d, f),
        triple=np.ascontiguousarray(triple, i),
        perimeter=_perimeter(inside) if threes else 0.0,
        unit=heavy * short,
        spectral=np.zeros((n + 2, n, n), f),
        skew=np.zeros((n + 2, n, n), f),
        row=np.zeros((n + 2, t, 4), f),
        size=np.zeros(4, i),
        nodes=np.zeros(n, i),
        cores=np.zeros(cores, i),
        fixed=np.zeros(n, i),
        near=np.zeros((cores, cores), f),
        reach=np.zeros(cores + 1, f),
        mu=np.zeros(cores, f),
        vectors=np.zeros((big, big), f),
        a=np.zeros(n * n, f),
        s=np.zeros((n, n), f),
        k=np.zeros((n, n), f),
        best_s=np.zeros((n, n), f),
        best_k=np.zeros((n, n), f),
        dir_s=np.zeros((n, n), f),
        dir_k=np.zeros((n, n), f),
        active=np.zeros((4 * t, 4), i),
        tau=np.zeros(4 * t, f),
        best_tau=np.zeros(4 * t, f),
        dir_tau=np.zeros(4 * t, f),
        flags=np.zeros((t, 4), bool),
        order=np.zeros((n, cores), i),
        cost=np.zeros((big, cores), f),
        reduced=np.zeros((n, cores), f),
        matched=np.zeros((n, big), f),
        mixed=np.zeros((n, big), f),
        apart=np.zeros(n * n, f),
        mean=np.zeros(n * n, f),
        load=np.zeros(cores, f),
        dual=np.zeros((3, cores + 1), f),
        match=np.zeros((4, cores + 1), i),
        scalar=np.zeros(6, f),
    )
    x.spectral[0] = np.where(np.eye(n) > 0, 0.0, w / 2)
    return x


def is_metric(d: AnyArray) -> bool:
    """True if no symmetric distance in ``d`` (k, k) is longer than a way round."""
    return all(bool((d <= d[:, [k]] + d[[k], :]).all()) for k in range(len(d)))


def _perimeter(d: FloatArray) -> float:
    """Least perimeter of three different places."""
    if len(d) < 3:
        return 0.0
    i, j, k = np.array(list(combinations(range(len(d)), 3))).T
    return float((d[i, j] + d[j, k] + d[i, k]).min())


@kernel
def load(x: Relaxation, core: IntArray, used: IntArray, level: int) -> None:
    """Set up the open part of the partial mapping ``core`` and take the multipliers of ``level``."""
    n, cores = core.shape[0], used.shape[0]
    r = f = m = 0
    for u in range(n):
        if core[u] < 0:
            x.nodes[r] = u
            r += 1
        else:
            x.fixed[f] = u
            f += 1
    for p in range(cores):
        if used[p] == 0:
            x.cores[m] = p
            m += 1
    x.size[OPEN], x.size[FREE] = r, m
    places(x, m)
    for i in range(r):
        for j in range(r):
            x.s[i, j] = x.spectral[level, x.nodes[i], x.nodes[j]]
            x.k[i, j] = x.skew[level, x.nodes[i], x.nodes[j]]
            x.dir_s[i, j] = 0.0
            x.dir_k[i, j] = 0.0
        k = 0
        for j in range(m):
            if j != i:
                x.order[i, k] = j
                k += 1
    x.a[:] = x.weight
    x.scalar[CONST] = 0.0
    x.size[ROWS] = 0
    for t in range(x.triple.shape[0]):
        for kind in range(4):
            tau = x.row[level, t, kind]
            x.flags[t, kind] = tau > 0.0
            if tau > 0.0:
                activate(x, t, kind, tau)


@kernel
def places(x: Relaxation, m: int) -> None:
    """Sorted distances, row sums and eigenvalues (rising, on vectors that sum to 0) of the free cores."""
    d, line = np.empty((m, m)), np.empty(m - 1)
    for i in range(m):
        for j in range(m):
            d[i, j] = x.dist[x.cores[i], x.cores[j]]
    total = 0.0
    for i in range(m):
        k = 0
        x.reach[i] = 0.0
        for j in range(m):
            x.reach[i] += d[i, j]
            if j != i:
                line[k] = d[i, j]
                k += 1
        total += x.reach[i]
        line.sort()
        for k in range(m - 1):
            x.near[k, i] = line[k]
    x.scalar[SPAN] = total
    far = 1.0 + total
    for i in range(m):
        for j in range(m):
            d[i, j] += total / m / m - (x.reach[i] + x.reach[j]) / m - far / m
    x.mu[: m - 1] = np.linalg.eigvalsh(d)[1:]


@plain
def activate(x: Relaxation, t: int, kind: int, tau: float) -> None:
    """Append row ``kind`` of triple ``t`` (0 to 2: one distance is at most the sum of the others; 3: perimeter)."""
    k = x.size[ROWS]
    first = kind if kind < 3 else 0
    x.active[k, 0] = x.triple[t, first]
    x.active[k, 1] = x.triple[t, (first + 1) % 3]
    x.active[k, 2] = x.triple[t, (first + 2) % 3]
    x.active[k, 3] = 4 * t + kind
    x.tau[k] = tau
    x.dir_tau[k] = 0.0
    x.size[ROWS] = k + 1
    if tau > 0.0:
        x.scalar[CONST] += 2.0 * x.perimeter * charge(x.a, x.active[k], tau)


@plain
def charge(a: FloatArray, row: IntArray, change: float) -> float:
    """Change the weights ``a`` by a row's multiplier; how often twice the perimeter joins the constant."""
    limit = row[3] % 4 == 3
    a[row[0]] += -change if limit else change
    a[row[1]] -= change
    a[row[2]] -= change
    return change if limit else 0.0


@plain
def look(x: Relaxation, core: IntArray) -> None:
    """Activate rows that the averaged distances break."""
    n = core.shape[0]
    for t in range(x.triple.shape[0]):
        abc = x.triple[t, 3]
        if core[abc // n // n] >= 0 and core[abc // n % n] >= 0 and core[abc % n] >= 0:
            continue
        ab, ac, bc = x.mean[x.triple[t, 0]], x.mean[x.triple[t, 1]], x.mean[x.triple[t, 2]]
        total = ab + ac + bc
        for kind in range(4):
            if kind == 3:
                broken = x.perimeter - total
            else:
                broken = 2.0 * x.mean[x.triple[t, kind]] - total
            if broken > BROKEN and not x.flags[t, kind]:
                x.flags[t, kind] = True
                activate(x, t, kind, 0.0)


@kernel
def keep(x: Relaxation) -> None:
    """Remember the present multipliers and reduced costs as the best."""
    r, m = x.size[OPEN], x.size[FREE]
    for i in range(r):
        for j in range(r):
            x.best_s[i, j] = x.s[i, j]
            x.best_k[i, j] = x.k[i, j]
        for q in range(m):
            x.reduced[i, q] = x.cost[i, q] - x.dual[0, i + 1] - x.dual[1, q + 1]
    x.size[BEST] = x.size[ROWS]
    copy_to(x.best_tau, x.tau[: x.size[ROWS]])
    x.scalar[SIZE] = x.scalar[NEVER] + abs(x.scalar[CONST]) + x.scalar[LARGE]


@plain
def save(x: Relaxation, level: int) -> None:
    """Write the best multipliers to ``level``; rows found since then count 0."""
    r = x.size[OPEN]
    x.spectral[level] = 0.0
    x.skew[level] = 0.0
    for i in range(r):
        for j in range(r):
            x.spectral[level, x.nodes[i], x.nodes[j]] = x.best_s[i, j]
            x.skew[level, x.nodes[i], x.nodes[j]] = x.best_k[i, j]
    x.row[level] = 0.0
    for k in range(x.size[BEST]):
        x.row[level, x.active[k, 3] // 4, x.active[k, 3] % 4] = x.best_tau[k]
