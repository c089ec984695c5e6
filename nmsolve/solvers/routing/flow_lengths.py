"""Least lengths of routes under given lengths of links, and the loads that shortest routes cause: compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray


class Demands(NamedTuple):
    """What has to be sent where, on links that work.

    Attributes
    ----------
    lead : (4 * P,) core that a link leads to, -1 where there is none
    goals : (R,) target cores; ``far`` (R, P) links that remain from a core, -1: no route; ``order`` (R, P) cores by ``far``
    first : (R + 1,) unicast flows to goal r are ``first[r]:first[r + 1]`` of ``source``, ``rate``
    root, trate : (M,) source core and rate of multicast flows; their legs are ``legs[m]:legs[m + 1]`` of ``row`` (goals by
        number, the farthest first)
    strict : True if only shortest routes are allowed
    """

    lead: IntArray
    goals: IntArray
    far: IntArray
    order: IntArray
    first: IntArray
    source: IntArray
    rate: FloatArray
    root: IntArray
    trate: FloatArray
    legs: IntArray
    row: IntArray
    strict: bool


def demands_of(problem: RoutingProblem) -> Demands:
    """The flows of a problem by target."""
    flows = problem.flows
    goals, far = problem.distances
    lead = np.where(link_works(problem.machine), link_ends(problem.machine), -1)
    size = np.diff(flows.indptr)
    row = np.searchsorted(goals, flows.targets)
    one, many = np.flatnonzero(size == 1), np.flatnonzero(size > 1)
    mine = row[flows.indptr[:-1][one]]
    by = np.argsort(mine, kind="stable")
    legs = np.concatenate([[0], np.cumsum(size[many])]).astype(np.int64)
    rows = []
    for f in many.tolist():
        some = row[flows.indptr[f] : flows.indptr[f + 1]]
        rows.append(some[np.argsort(-far[some, flows.source[f]], kind="stable")])
    unknown = np.where(far < 0, np.iinfo(np.int64).max, far)
    return Demands(
        lead, np.asarray(goals, np.int64), np.ascontiguousarray(far, np.int64), np.argsort(unknown, axis=1, kind="stable"),
        np.searchsorted(mine[by], np.arange(len(goals) + 1)).astype(np.int64), flows.source[one[by]].astype(np.int64),
        flows.rate[one[by]].astype(np.float64), flows.source[many].astype(np.int64), flows.rate[many].astype(np.float64), legs,
        np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64), problem.detour == 0,
    )  # fmt: skip


@kernel
def remaining(d: Demands, r: int, length: AnyArray, dist: AnyArray) -> None:
    """``dist`` (P,): least length of a route from every core to goal ``r`` over links that routes may take.

    With detours over all links, however long the route: never more than the true least length.
    """
    reached = 0
    for i in range(d.order.shape[1]):
        reached += d.far[r, d.order[r, i]] >= 0
    big = length.sum() + 1
    for i in range(reached):
        dist[d.order[r, i]] = big
    dist[d.goals[r]] = 0
    changed = True
    while changed:
        changed = False
        for i in range(1, reached):
            u = d.order[r, i]
            best = dist[u]
            for link in range(4 * u, 4 * u + 4):
                v = d.lead[link]
                if v >= 0 and d.far[r, v] >= 0 and (not d.strict or d.far[r, v] < d.far[r, u]):
                    best = min(best, dist[v] + length[link])
            changed |= best < dist[u] and not d.strict
            dist[u] = best


@plain
def send(
    d: Demands, r: int, length: FloatArray, dist: FloatArray, inflow: FloatArray, load: FloatArray
) -> None:
    """Send ``inflow`` (P,) along shortest routes to goal ``r``, halved where two are as short; adds to ``load``."""
    for i in range(d.order.shape[1] - 1, 0, -1):
        u = d.order[r, i]
        if inflow[u] <= 0.0:
            continue
        ways, slack = 0, 1e-9 * dist[u]
        for turn in range(2):
            for link in range(4 * u, 4 * u + 4):
                v = d.lead[link]
                if v >= 0 and 0 <= d.far[r, v] < d.far[r, u] and dist[v] + length[link] <= dist[u] + slack:
                    if turn == 0:
                        ways += 1
                    else:
                        load[link] += inflow[u] / ways
                        inflow[v] += inflow[u] / ways
        inflow[u] = 0.0


@kernel
def evaluate(d: Demands, length: FloatArray, load: FloatArray) -> float:
    """``sum rate * least length``, and the loads of shortest routes (a subgradient of it) in ``load`` (4 * P,)."""
    cores, total = d.far.shape[1], 0.0
    load[:] = 0.0
    dist, inflow = np.empty(cores), np.zeros(cores)
    for r in range(len(d.goals)):
        if d.first[r] == d.first[r + 1]:
            continue
        remaining(d, r, length, dist)
        for k in range(d.first[r], d.first[r + 1]):
            total += d.rate[k] * dist[d.source[k]]
            inflow[d.source[k]] += d.rate[k]
        send(d, r, length, dist, inflow, load)
        inflow[:] = 0.0
    left, taken = np.empty_like(length), np.zeros_like(length)
    for m in range(len(d.root)):
        copy_to(left, length)
        taken[:] = 0.0
        for k in range(d.legs[m], d.legs[m + 1]):
            r = d.row[k]
            remaining(d, r, left, dist)
            total += d.trate[m] * dist[d.root[m]]
            inflow[d.root[m]] = 1.0
            send(d, r, left, dist, inflow, taken)
            inflow[:] = 0.0
            spend(d, r, dist, dist[d.root[m]], left, left)
        for link in range(len(length)):
            load[link] += d.trate[m] * min(1.0, taken[link])
    return total


@plain
def spend(d: Demands, r: int, dist: AnyArray, least: float, left: AnyArray, out: AnyArray) -> None:
    """Take from ``left`` what goal ``r`` needs so that no route to it from the source is shorter than ``least``.

    A link from u to v needs ``min(dist[u], least) - min(dist[v], least)`` of its length, if that is positive: along any route the
    needs add up to at least ``least``. What remains is written to ``out``.
    """
    for u in range(d.far.shape[1]):
        if d.far[r, u] < 0:
            continue
        for link in range(4 * u, 4 * u + 4):
            v = d.lead[link]
            if v >= 0 and d.far[r, v] >= 0 and (not d.strict or d.far[r, v] < d.far[r, u]):
                need = min(dist[u], least) - min(dist[v], least)
                if need > 0:
                    out[link] = left[link] - min(
                        need, left[link]
                    )  # rounding must not leave less than nothing


@kernel
def unicast_lengths(d: Demands, length: IntArray, out: IntArray) -> None:
    """(K,) least length of every unicast flow, in whole numbers."""
    dist = np.zeros(d.far.shape[1], np.int64)
    for r in range(len(d.goals)):
        if d.first[r] < d.first[r + 1]:
            remaining(d, r, length, dist)
            for k in range(d.first[r], d.first[r + 1]):
                out[k] = dist[d.source[k]]


@kernel
def tree_shares(d: Demands, m: int, length: IntArray, shares: IntArray) -> int:
    """``shares`` (legs, 4 * P): how multicast flow ``m`` divides the lengths of links among its legs; what they add up to."""
    dist, left, total = np.zeros(d.far.shape[1], np.int64), length.copy(), 0
    before = length.copy()
    for k in range(d.legs[m], d.legs[m + 1]):
        remaining(d, d.row[k], left, dist)
        total += dist[d.root[m]]
        copy_to(before, left)
        spend(d, d.row[k], dist, dist[d.root[m]], before, left)
        shares[k - d.legs[m]] = before - left
    return total
