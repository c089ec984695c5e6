"""The split bound at a partial mapping, raised by deflected subgradients from the multipliers of the mapping above it.

See :mod:`relaxation` for the bound. The projection bound gives a matrix of distances from its eigenvectors, Gilmore-Lawler one
from the assignment and the sorted distances; their difference moves S, the skew part of the latter K, and how far it breaks
a row that row's tau. Steps are Polyak's towards the target, shortened where they do not pay.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.branch_bound.assignment import FAR_FLOAT, assign
from nmsolve.solvers.mapping.branch_bound.relaxation import (
    CONST,
    FREE,
    LARGE,
    NEVER,
    OPEN,
    ROWS,
    SPAN,
    SPECTRAL,
    Relaxation,
    charge,
    keep,
    load,
    look,
    save,
)

#: Momentum, weight of a row's step against a matrix entry's, first share of the Polyak step, steps without progress until it
#: shrinks, and by what.
MOMENTUM, ROW_STEP, FIRST, PATIENCE, SHRINK = 0.7, 0.25, 0.5, 5, 0.7
#: Steps between two searches for rows, in distances averaged with this weight.
LOOK, AVERAGE = 10, 0.1
#: Steps between two updates of eigenvalues.
RENEW = 2
#: Below this an eigenvalue of the distances counts as 0 in directions (never in values).
TINY = 1e-9


@kernel
def spectral_value(x: Relaxation) -> None:
    """Eigenvalue part for the present S; keeps the eigenvectors for directions and S's row sums."""
    r, m = x.size[OPEN], x.size[FREE]
    total, far = 0.0, 0.0
    a = np.zeros((m, m))
    for i in range(m):
        x.load[i] = 0.0
    for i in range(r):
        for j in range(r):
            a[i, j] = x.s[i, j]
            x.load[i] += x.s[i, j]
            far += abs(x.s[i, j])
        total += x.load[i]
    far = 4.0 * far + 1.0
    for i in range(m):
        for j in range(m):
            a[i, j] += total / m / m - (x.load[i] + x.load[j]) / m - far / m
    lam, vectors = np.linalg.eigh(a)
    value = -total * x.scalar[SPAN] / m / m
    large = abs(value) + far
    for i in range(m - 1):
        value += lam[i + 1] * x.mu[m - 2 - i]
        large += far * abs(x.mu[i])
    x.scalar[LARGE] = large
    x.vectors[:m, :m] = vectors
    x.scalar[SPECTRAL] = value


@plain
def fill_costs(x: Relaxation, core: IntArray, allowed: BoolArray) -> float:
    """Fill ``x.cost`` (m, m) with linear costs and minimal scalar products; returns the constant part of the bound."""
    r, m, n = x.size[OPEN], x.size[FREE], core.shape[0]
    value = x.scalar[CONST] + x.scalar[SPECTRAL]
    f = n - r
    for i in range(f):
        for j in range(i):
            u, v = x.fixed[j], x.fixed[i]
            value += 2.0 * x.a[u * n + v] * x.dist[core[u], core[v]]
    top = 1.0
    for i in range(r):
        u = x.nodes[i]
        line = x.cost[i]
        for q in range(m):
            line[q] = 2.0 / m * x.load[i] * x.reach[q]
        for j in range(f):
            v = x.fixed[j]
            w = 2.0 * (x.a[u * n + v] if u < v else x.a[v * n + u])
            if w != 0.0:
                for q in range(m):
                    line[q] += w * x.dist[core[v], x.cores[q]]
        mixed = x.mixed[i]
        for j in range(r):
            v = x.nodes[j]
            mixed[j] = (x.a[u * n + v] if u < v else x.a[v * n + u]) - x.s[i, j] + x.k[i, j]
        mixed[r:m] = 0.0
        sort_falling(mixed, x.order[i], m - 1)
        for k in range(m - 1):
            w = mixed[x.order[i, k]]
            if w != 0.0:
                near = x.near[k]
                for q in range(m):
                    line[q] += w * near[q]
        for q in range(m):
            top = max(top, abs(line[q]))
    never = 4.0 * m * top
    for i in range(r):
        for q in range(m):
            if not allowed[x.nodes[i], x.cores[q]]:
                x.cost[i, q] = never
    for i in range(r, m):
        for q in range(m):
            x.cost[i, q] = 0.0
    x.scalar[NEVER] = never
    return float(value)


@plain
def sort_falling(values: FloatArray, order: IntArray, count: int) -> None:
    """Put the first ``count`` numbers in ``order`` by falling ``values``; fast where they nearly are."""
    for k in range(1, count):
        j, z = order[k], k
        while z > 0 and values[order[z - 1]] < values[j]:
            order[z] = order[z - 1]
            z -= 1
        order[z] = j


@plain
def match(x: Relaxation) -> float:
    """Assign open nodes to free cores by ``x.cost``; the value, with duals and cores (``x.match[3]``) kept."""
    m = x.size[FREE]
    row_of, core_of = x.match[0], x.match[3]
    total = assign(x.cost, m, m, FAR_FLOAT, x.dual[0], x.dual[1], x.dual[2], row_of, x.match[1], x.match[2])
    for j in range(1, m + 1):
        core_of[row_of[j] - 1] = j - 1
    return float(total)


@plain
def distances_at(x: Relaxation, core: IntArray) -> None:
    """Distances of all pairs at the present minimiser: true ones to mapped nodes, matched ones between open nodes."""
    r, m, n = x.size[OPEN], x.size[FREE], core.shape[0]
    for i in range(r):
        for k in range(m - 1):
            x.matched[i, x.order[i, k]] = x.near[k, x.match[3, i]]
    for i in range(n - r):
        u = x.fixed[i]
        for j in range(i):
            v = x.fixed[j]
            x.apart[v * n + u] = x.dist[core[u], core[v]]
        for j in range(r):
            v = x.nodes[j]
            e = u * n + v if u < v else v * n + u
            x.apart[e] = x.dist[core[u], x.cores[x.match[3, j]]]
    for i in range(r):
        for j in range(i):
            x.apart[x.nodes[j] * n + x.nodes[i]] = (x.matched[i, j] + x.matched[j, i]) / 2


@plain
def directions(x: Relaxation, renew: bool) -> float:
    """Deflected subgradients of S, K and tau; the squared norm in which the step is measured."""
    r, m = x.size[OPEN], x.size[FREE]
    norm = 0.0
    for i in range(r):
        for j in range(i + 1):
            if renew:
                g = (x.reach[x.match[3, i]] + x.reach[x.match[3, j]]) / m - x.scalar[SPAN] / m / m
                for k in range(m - 1):
                    mu = x.mu[m - 2 - k]
                    if abs(mu) > TINY:
                        g += mu * x.vectors[i, k + 1] * x.vectors[j, k + 1]
                if i != j:
                    g -= (x.matched[i, j] + x.matched[j, i]) / 2
                g += MOMENTUM * x.dir_s[i, j]
                x.dir_s[i, j] = g
                x.dir_s[j, i] = g
                norm += g * g * (2.0 if i != j else 1.0)
            if i != j:
                h = (x.matched[i, j] - x.matched[j, i]) / 2 + MOMENTUM * x.dir_k[i, j]
                x.dir_k[i, j] = h
                x.dir_k[j, i] = -h
                norm += 2.0 * h * h
    for k in range(x.size[ROWS]):
        e = x.active[k]
        if e[3] % 4 == 3:
            broken = x.perimeter - x.apart[e[0]] - x.apart[e[1]] - x.apart[e[2]]
        else:
            broken = x.apart[e[0]] - x.apart[e[1]] - x.apart[e[2]]
        g = 2.0 * ROW_STEP * broken + MOMENTUM * x.dir_tau[k]
        x.dir_tau[k] = g
        if g > 0.0 or x.tau[k] > 0.0:
            norm += g * g / ROW_STEP
    return norm


@plain
def step(x: Relaxation, length: float, renew: bool) -> None:
    """Move the multipliers along their directions."""
    r = x.size[OPEN]
    for i in range(r):
        for j in range(r):
            if renew:
                x.s[i, j] += length * x.dir_s[i, j]
            x.k[i, j] += length * x.dir_k[i, j]
    a, tau, dir_tau, active, limits = x.a, x.tau, x.dir_tau, x.active, 0.0
    for k in range(x.size[ROWS]):
        change = max(length * dir_tau[k], -tau[k])
        if change != 0.0:
            tau[k] += change
            limits += charge(a, active[k], change)
    x.scalar[CONST] += 2.0 * x.perimeter * limits


@plain
def ascend(
    x: Relaxation, core: IntArray, used: IntArray, allowed: BoolArray, level: int, target: float, most: int
) -> float:
    """Raise the bound of the partial mapping ``core`` from the multipliers of ``level``; best ones go to ``level + 1``.

    Stops at ``target`` or after ``most`` steps. Returns the best bound (inf if no assignment is allowed), whose
    reduced costs are in ``x.reduced``; in scaled units, without a margin.
    """
    load(x, core, used, level)
    best, idle, share = -1e300, 0, FIRST
    renew = True
    for it in range(most):
        if renew:
            spectral_value(x)
        value = fill_costs(x, core, allowed)
        least = match(x)
        if least > x.scalar[NEVER] / 2:
            return np.inf
        value += least
        if value > best:
            idle = 0 if value > best + 1e-3 * (target - best) else idle + 1
            best = value
            keep(x)
            if best >= target:
                break
        else:
            idle += 1
        if idle >= PATIENCE:
            idle = 0
            share *= SHRINK
        distances_at(x, core)
        weight = 1.0 if it == 0 else AVERAGE
        for e in range(len(x.mean)):
            x.mean[e] += weight * (x.apart[e] - x.mean[e])
        if it % LOOK == LOOK - 1 or it == 0:
            look(x, core)
        renew = it % RENEW == 0
        norm = directions(x, renew)
        if norm <= 0.0:
            break
        step(x, share * (target - value) / norm, renew)
    save(x, level + 1)
    return best
