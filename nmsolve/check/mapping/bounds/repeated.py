"""Re-check of what a small branch and bound claims: a second search, from the problem as stated, with symmetries of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.closing import Cheaper, Closing, GaveUp, HintsOf
from nmsolve.check.mapping.bounds.exhaustion import MOST_COST, Exhaustion, exhaust, new_search
from nmsolve.check.mapping.bounds.parts import (
    all_distances,
    granularity,
    one_way_traffic,
    room_of,
    usable_cores,
    whole_data,
    whole_numbers,
)
from nmsolve.check.mapping.bounds.symmetry import Board
from nmsolve.model import clock
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray

#: Larger problems are not searched again.
MOST_NODES, MOST_PLACES = 32, 64
#: Partial mappings that the plain search bounds at most; for each one that the first search bounded; and in a second, about.
BUDGET, FOR_EACH, PER_SECOND = 50_000_000, 8, 100_000
#: Up to this many nodes the plain search is the faster one.
EASY = 16


def search_again(
    problem: MappingProblem,
    value: float,
    certificate: Mapping[str, Any],
    seconds: float,
    hints: HintsOf | None = None,
) -> bool | None:
    """Return True if no mapping costs less than ``value``, False if one does; None if this search does not tell.

    It does not where data are not whole, cores hold several nodes, or it takes more than ``seconds``: then the claim is
    a solver's word. Ceilings and a migration budget are left out.

    Raises
    ------
    CertificateError : the certificate does not say in whole numbers how long the first search was
    """
    n, k = problem.n, len(usable_cores(problem))
    plain = not (problem.uses_links or problem.uses_nets or problem.graph.on_disk) and problem.one_per_core
    if not (
        plain and n <= MOST_NODES and n <= k <= MOST_PLACES and room_of(problem) == 1 and whole_data(problem)
    ):
        return None
    end = clock.now() + seconds
    traffic, far = one_way_traffic(problem).toarray(), all_distances(problem)
    if far.diagonal().any() or (far != np.rint(far)).any() or 4 * traffic.sum() * far.max() >= MOST_COST:
        return None
    step = max(1.0, granularity(problem))
    most = int(2 * (np.ceil(value / step) - 1) * step)
    cores = usable_cores(problem)
    room = (problem.sizes[:, None, :] <= problem.capacity[None, cores, :]).all(axis=2)
    allowed = np.ascontiguousarray(problem.domains[problem.domain_of][:, cores] & room)
    pairs, away = traffic.astype(np.int64), np.ascontiguousarray(far, np.int64)
    np.fill_diagonal(pairs, 0)
    search, board = new_search(pairs, away, allowed), Board(away, allowed)
    if n <= EASY or (away != away.T).any():
        stated = whole_numbers({"nodes": [certificate.get("nodes")]}, "nodes", 1, least=0)
        budget = 1000 + FOR_EACH * min(BUDGET, int(stated[0]))
        return _exhausted(search, most, board, allowed, int(min(budget, BUDGET, seconds * PER_SECOND)))
    try:
        closing = Closing(search, most, board, lambda: clock.now() > end, hints)
        closing.close(np.full(n, -1, np.int64), allowed)
    except Cheaper:
        return False
    except GaveUp:
        return None
    return True


def _exhausted(search: Exhaustion, most: int, board: Board, allowed: BoolArray, budget: int) -> bool | None:
    """The answer by the plain search, if it bounds no more than ``budget`` partial mappings."""
    for first, onto in _beginnings(search.there + search.back, board, allowed):
        done = exhaust(search, first, onto, most, budget)
        if done < 0:
            return False if done == -1 else None
        budget -= done
    return True


def _beginnings(pairs: IntArray, board: Board, allowed: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The two heaviest nodes on two cores, in all ways but those that symmetries of the board make of others."""
    order = np.argsort(-pairs.sum(axis=1), kind="stable")[: min(2, len(pairs))]
    for p in board.unlike((), allowed[order[0]]):
        if len(order) == 1:
            yield order, np.array([p])
            continue
        rest = allowed[order[1]].copy()
        rest[p] = False
        for q in board.unlike((p,), rest):
            yield order, np.array([p, q])
