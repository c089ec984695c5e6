"""Re-check of flows through messages: which pairs of terminals there are, and what a message carries at most, split by split."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nmsolve.check.mapping.bounds.parts import EXACT, CertificateError
from nmsolve.check.mapping.distances import core_distances
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most pairs of terminals, most terminals of a message whose splits are looked at, and most entries of all such splits.
MAX_PAIRS, WIDEST, MAX_SPLITS = 16_000_000, 16, 4e9


def message_pairs(problem: MappingProblem) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return (pairs,) the lower node, the higher node and the message of every pair of terminals; (messages,) rates.

    Messages are in the order of the graph. One that is charged edge by edge is one of two terminals per target, by target.

    Raises
    ------
    CertificateError : trees may be shorter than distances (given ones, detours), or there are too many pairs
    """
    graph = problem.graph
    if not core_distances(problem).separable:
        raise CertificateError("messages are for machines without given distances and dead links")
    many = np.diff(graph.indptr).astype(object)
    if int((many * (many + 1) // 2).sum()) > MAX_PAIRS:
        raise CertificateError(f"messages have more than {MAX_PAIRS} pairs of terminals")
    low, high, owner, rates = list[int](), list[int](), list[int](), list[float]()
    for i in range(graph.rows):
        s, where = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
        edges = sorted(zip(graph.targets[where].tolist(), graph.weights[where].tolist(), strict=True))
        if problem.aim.reach or graph.multicast[i]:
            found = {tuple(sorted({s, *(t for t, _ in edges)})): float(graph.rate[i])}
        else:
            found = {}
            for t, w in edges:
                pair = (min(s, t), max(s, t)) if s != t else (s,)
                found[pair] = found.get(pair, 0.0) + w
        for nodes, rate in found.items():
            if len(nodes) < 2 or not rate > 0:
                continue
            for u, v in combinations(nodes, 2):
                low.append(u)
                high.append(v)
                owner.append(len(rates))
            rates.append(rate)
    return np.array(low, np.int64), np.array(high, np.int64), np.array(owner, np.int64), np.array(rates)


def check_messages(problem: MappingProblem, owner: IntArray, used: FloatArray, limit: FloatArray) -> None:
    """Raise CertificateError if a message carries more than ``limit`` (messages,) of what its pairs carry, ``used`` (pairs,).

    All of it may be led from one side of a message to the other. Where it is more than the limit, and distances are sums over
    lines that a message's tree crosses if it lies on both sides (no torus), every split into two sides is looked at.
    """
    whole = np.bincount(owner, used, len(limit))
    if whole.max(initial=0.0) >= EXACT:
        raise CertificateError("a message carries 2^53 units or more")
    over = np.flatnonzero(whole > limit)
    if not len(over):
        return
    first = np.searchsorted(owner, np.arange(len(limit) + 1))
    many = np.rint((1 + np.sqrt(1 + 8.0 * np.diff(first))) / 2).astype(np.int64)[over]
    if problem.machine.torus or many.max() > WIDEST:
        raise CertificateError("a message carries more than its rate")
    if float((many * 2.0 ** (many - 1)).sum()) > MAX_SPLITS:
        raise CertificateError("too many messages carry more than their rates to look at all their splits")
    for size in np.unique(many).tolist():
        sides = 1 - 2 * ((np.arange(1 << (size - 1))[:, None] >> np.arange(size)) & 1).astype(np.float64)
        at = np.triu_indices(size, 1)
        for m in over[many == size].tolist():
            between = np.zeros((size, size))
            between[at] = used[first[m] : first[m + 1]]
            # a pair on two sides takes its flow off twice: whole numbers below 2^53, so exact
            together = ((sides @ between) * sides).sum(axis=1).min()
            if (whole[m] - together) / 2 > limit[m]:
                raise CertificateError("a message carries more than its rate")
