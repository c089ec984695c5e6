"""Sets whose demands are chosen: those for which lengths fall most short of every placement of the members.

Placements of a set, as points of distances between its members, have a convex hull; what is added to it makes any lengths that
mappings allow. Gilbert's method (1966) finds the point there that is nearest to the current lengths, from one exact search to the
next; how far the lengths fall short of it are the demands.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.spread.free_grid import free_placement, solve

#: Members of a set, placements that are looked for, states of one search, the largest demand.
MEMBERS, SEARCHES, STATES, LARGEST = 9, 12, 20_000, 15
#: Steps towards the nearest point between two searches.
STEPS = 60


@kernel
def dear_demands(
    node: IntArray, length: FloatArray, links: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Demands between the first MEMBERS members of sets (s, WIDEST) that lengths (s, WIDEST, WIDEST) violate most.

    Returns
    -------
    demands (s, WIDEST, WIDEST), what they cost at least (s,), and (s,) the lengths they take over that, inf if no search ended
    """
    demand, cost = np.zeros(length.shape, np.int64), np.zeros(len(node), np.int64)
    ratio = np.full(len(node), np.inf)
    for s in range(len(node)):
        k = 0
        while k < MEMBERS and node[s, k] >= 0:
            k += 1
        near = length[s, :k, :k] + length[s, :k, :k].T
        places = np.zeros((SEARCHES + 1, k, 2), np.int64)
        apart = np.zeros((SEARCHES + 1, k, k))
        w, short = np.zeros((k, k), np.int64), np.zeros((k, k))
        share = np.zeros(SEARCHES + 1)
        for i in range(k):
            for j in range(k):
                if i != j:
                    w[i, j] = max(1, int(LARGEST / (1.0 + near[i, j])))
        free_placement(w, links, places[0])
        share[0] = 1.0
        for found in range(1, SEARCHES + 1):
            _distances(places[found - 1], links, apart[found - 1])
            _fall_short(apart[:found], near, share[:found], short)
            if not _whole(short, w):
                break
            known, first = _cheapest(w, apart[:found])
            value, _, done = solve(w, links, places[first], known, STATES, places[found])
            if not done:
                break
            taken = (w * near).sum() / 2.0
            if value > 0 and taken < ratio[s] * value:
                ratio[s], cost[s] = taken / value, value
                demand[s, :k, :k] = np.triu(w, 1)
            if value >= known:
                break
    return demand, cost, ratio


@kernel
def _distances(place: IntArray, links: IntArray, out: FloatArray) -> None:
    """Distances (k, k) between places (k, 2) on the grid."""
    for i in range(len(place)):
        for j in range(len(place)):
            out[i, j] = links[0] * abs(place[i, 0] - place[j, 0]) + links[1] * abs(place[i, 1] - place[j, 1])


@kernel
def _fall_short(apart: FloatArray, near: FloatArray, share: FloatArray, out: FloatArray) -> None:
    """Mix placements (t, k, k) so that lengths (k, k) fall least short of the mixture; by how much goes to ``out`` (k, k).

    Frank and Wolfe's method: steps towards the placement that what falls short makes cheapest.
    """
    for step in range(STEPS):
        mixed = np.zeros(near.shape)
        for t in range(len(apart)):
            mixed += share[t] * apart[t]
        out[:] = np.maximum(0.0, mixed - near)
        best, least = 0, np.inf
        for t in range(len(apart)):
            paid = (out * apart[t]).sum()
            if paid < least:
                best, least = t, paid
        slope, bend = 0.0, 0.0
        for i in range(len(near)):
            for j in range(len(near)):
                move = apart[best, i, j] - mixed[i, j]
                slope -= out[i, j] * move
                bend += move * move if out[i, j] > 0 or move > 0 else 0.0
        if step == STEPS - 1 or slope <= 1e-9 or bend <= 0:
            break
        part = min(1.0, slope / bend)
        share *= 1.0 - part
        share[best] += part


@kernel
def _whole(short: FloatArray, w: IntArray) -> bool:
    """Whole demands (k, k) in proportion, between the members that the first one of the largest demand is joined with."""
    k, most = len(short), short.max()
    if most < 1e-3:
        return False
    w[:] = np.floor(short * (LARGEST / most) + 0.5).astype(np.int64)
    joined = np.zeros(k, np.bool_)
    joined[short.argmax() // k] = True
    grew = True
    while grew:
        grew = False
        for i in range(k):
            for j in range(k):
                if joined[i] and not joined[j] and w[i, j] > 0:
                    joined[j], grew = True, True
    for i in range(k):
        if not joined[i]:
            w[i, :] = 0
            w[:, i] = 0
    return True


@kernel
def _cheapest(w: IntArray, apart: FloatArray) -> tuple[int, int]:
    """What demands cost in the cheapest of placements (t, k, k), and which it is."""
    least, best = np.inf, 0
    for t in range(len(apart)):
        paid = (w * apart[t]).sum() / 2.0
        if paid < least:
            least, best = paid, t
    return int(least), best
