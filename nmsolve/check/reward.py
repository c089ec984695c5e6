"""The reward of method M1 recomputed for verification: in plain Python and NumPy, routes walked link by link.

Shares no code with :mod:`nmsolve.hw.reward`; formulas from docs/objectives.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np

from nmsolve.check.walker import distinct, mesh_links, walk
from nmsolve.model.between import BetweenCores
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.reward_terms import PUBLISHED, OwnTerm, RewardTerms
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import FloatArray, IntArray

#: Source core and target cores.
Flow = tuple[int, tuple[int, ...]]
#: Flows whose ways are worked out at once.
FLOWS_AT_ONCE = 4096


def walked_reward(
    cores: BetweenCores, machine: Machine, terms: RewardTerms = PUBLISHED, turns: TurnSet | None = None
) -> float:
    """Return the objective ``reward`` of the messages of a mapping, on the machine's own routes, which obey ``turns``."""
    flows = _flows(cores, machine)
    loss, added = exchange_loss(flows, machine, terms), _added(flows, machine, terms)
    channels = _walked_channels([(p, goals) for p, goals in flows if len(goals) > 1], machine)
    if not channels:
        return loss + added
    return (
        loss * math.exp(min(500.0, terms.deadlock * forbidden_directions(machine, turns) / channels)) + added
    )


def exchange_loss(flows: dict[Flow, float], machine: Machine, terms: RewardTerms = PUBLISHED) -> float:
    """Return what cores exchange along rows and columns, the larger side of each, whatever the routes."""
    sums = np.zeros((4, machine.size))
    for part in _batches(flows):
        _add_ways(part, machine, sums)
    right, left, down, up = sums
    loss = terms.horizontal * math.fsum(np.maximum(left, right))
    return loss + terms.vertical * math.fsum(np.maximum(up, down))


def _added(flows: dict[Flow, float], machine: Machine, terms: RewardTerms) -> float:
    """Return the terms that are added to the product: traffic times distance, with one shortest route, the user's."""
    if not terms.hops and not terms.faults and not terms.own:
        return 0.0
    paid = []
    rows, cols = machine.rows, machine.cols
    for (p, goals), rate in flows.items():
        for q in goals:
            steps, routes = 0, 1
            for length, straight in ((cols, abs(p % cols - q % cols)), (rows, abs(p // cols - q // cols))):
                back = length - straight if machine.torus and length > 2 else straight + length
                least = min(straight, back)
                steps += least
                routes *= math.comb(steps, least) * (2 if straight == back else 1)
            own = math.fsum(term.weight * float(_own_price(term, p, q, steps)) for term in terms.own)
            paid.append(rate * (terms.hops * steps + terms.faults * (routes == 1) + own))
    return math.fsum(paid)


def _own_price(term: OwnTerm, p: Any, q: Any, steps: Any) -> Any:
    """Return the price of a unit of traffic from cores ``p`` to other cores ``q`` that are ``steps`` lines away."""
    if term.form == "distance":
        return term.prices[np.minimum(steps, len(term.prices)) - 1]
    return term.prices[p, q] if term.form == "pairs" else term.prices[p] + term.prices[q]


def least_own(machine: Machine, terms: RewardTerms) -> float:
    """Return what the user's own terms charge at least for a unit of traffic and line, rounded down.

    Products, sums and the quotient of k terms that are never negative are off by at most (k + 3) / 2 units in the last place.
    """
    count, k = machine.size, len(terms.own)
    if not k or count < 2:
        return 0.0
    least, cores = math.inf, np.arange(count)
    for p in range(count):
        q = np.delete(cores, p)
        across = _ways(np.full(count - 1, p % machine.cols), q % machine.cols, machine.cols, machine.torus)
        along = _ways(np.full(count - 1, p // machine.cols), q // machine.cols, machine.rows, machine.torus)
        steps = np.abs(across) + np.abs(along)
        paid = sum(term.weight * _own_price(term, np.full(count - 1, p), q, steps) for term in terms.own)
        least = min(least, float(np.min(paid / steps)))
    return least * (1.0 - (k + 3) * np.finfo(float).eps)


def _batches(flows: dict[Flow, float]) -> Iterator[list[tuple[Flow, float]]]:
    """Lists of at most ``FLOWS_AT_ONCE``."""
    left = iter(flows.items())
    while batch := list(islice(left, FLOWS_AT_ONCE)):
        yield batch


def _add_ways(flows: list[tuple[Flow, float]], machine: Machine, sums: FloatArray) -> None:
    """Add what these flows send right, left, down and up to (4, P) ``sums``, at both ends."""
    many = [len(goals) for (_, goals), _ in flows]
    p = np.repeat(np.array([source for (source, _), _ in flows], np.int64), many)
    q = np.array([goal for (_, goals), _ in flows for goal in goals], np.int64)
    rate = np.repeat(np.array([rate for _, rate in flows]), many)
    across = _ways(p % machine.cols, q % machine.cols, machine.cols, machine.torus)
    along = _ways(p // machine.cols, q // machine.cols, machine.rows, machine.torus)
    right, left, down, up = sums
    for ahead, back, way in ((right, left, across), (down, up, along)):
        np.add.at(ahead, np.where(way > 0, p, q), rate * np.abs(way))
        np.add.at(back, np.where(way > 0, q, p), rate * np.abs(way))


def _flows(cores: BetweenCores, machine: Machine) -> dict[Flow, float]:
    """Return traffic by source core and set of remote target cores."""
    out: dict[Flow, float] = {}
    count = machine.size
    for rows in cores.blocks():
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))
        p, q = cores.at[rows.source][row].astype(np.int64), cores.at[rows.targets].astype(np.int64)
        remote = p != q
        several = rows.multicast[row]
        single = remote & ~several & (rows.weights > 0)
        pairs, which = np.unique(p[single] * count + q[single], return_inverse=True)
        for pair, rate in zip(
            pairs.tolist(), np.bincount(which, rows.weights[single], len(pairs)).tolist(), strict=True
        ):
            flow = (pair // count, (pair % count,))
            out[flow] = out.get(flow, 0.0) + rate
        sets = distinct([row[remote & several] * count + q[remote & several]], len(rows.source) * count)
        ends = np.searchsorted(sets, np.arange(1, len(rows.source) + 1) * count)
        goals = (sets % count).tolist()
        sources, rates = cores.at[rows.source].tolist(), rows.rate.tolist()
        for i, (first, last) in enumerate(pairwise([0, *ends.tolist()])):
            if last > first and rates[i] > 0:
                flow = (sources[i], tuple(goals[first:last]))
                out[flow] = out.get(flow, 0.0) + rates[i]
    return out


def _walked_channels(trees: list[tuple[int, tuple[int, ...]]], machine: Machine) -> int:
    """Return links of all trees, each tree's links once; as many trees are walked at once as memory allows."""
    if not trees:
        return 0
    b, links, count = mesh_links(machine, "hops"), 4 * machine.size, 0
    sizes = np.array([len(goals) for _, goals in trees], np.int64)
    piece = np.cumsum(sizes) // b.edges_at_once
    for first, last in pairwise([0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(trees)]):
        part = trees[first:last]
        p = np.repeat([s for s, _ in part], sizes[first:last])
        q = np.array([g for _, goals in part for g in goals], np.int64)
        tree = np.repeat(np.arange(len(part)), sizes[first:last])
        crossed = [tree[which] * links + link for which, link in walk(b, p, q)]
        count += len(distinct(crossed, len(part) * links)) if crossed else 0
    return count


def _ways(a: IntArray, b: IntArray, length: int, torus: bool) -> IntArray:
    """Return lines from ``a`` to ``b``; on a ring the shorter way, of two equal ones the growing one."""
    if not torus or length <= 2:
        return b - a
    ahead = (b - a) % length
    return np.where(2 * ahead <= length, ahead, ahead - length)


def forbidden_directions(machine: Machine, turns: TurnSet | None) -> float:
    """Return how many of the 8 directions of turning are forbidden on average over the places where one could turn.

    Without ``turns`` what came along a column may not go on along a row, unless there are dead links.
    """
    leads = mesh_links(machine, "hops").leads
    places = forbidden = 0
    for p, before in zip(*np.nonzero(leads >= 0), strict=True):
        here = leads[p, before]
        for after in (2, 3) if before < 2 else (0, 1):
            if leads[here, after] >= 0:
                places += 1
                if turns is not None:
                    forbidden += not turns.allowed[here, before, after]
                else:
                    forbidden += before >= 2 and not machine.faulty_links
    return 8 * forbidden / max(1, places)
