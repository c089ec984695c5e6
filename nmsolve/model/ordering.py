"""Topological order, or a cycle where there is none."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import Any


def topological(before: Sequence[Collection[int]], rank: Sequence[Any] | None = None) -> list[int]:
    """Return all numbers, each after those ``before`` it, by rising ``rank``, then number, where there is a choice (Kahn 1962).

    What is on a circle or behind one is left out.
    """
    rank = range(len(before)) if rank is None else rank
    after: list[list[int]] = [[] for _ in before]
    for k, needed in enumerate(before):
        for m in needed:
            after[m].append(k)
    missing = [len(needed) for needed in before]
    ready = [(rank[k], k) for k, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready)[1])
        for user in after[order[-1]]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (rank[user], user))
    return order


def circle(before: Sequence[Collection[int]], order: Sequence[int]) -> list[int]:
    """Return a circle among what :func:`topological` left out, each before the next; the first number is repeated at the end."""
    waiting = set(range(len(before))).difference(order)
    path = [min(waiting)]
    seen = {path[0]: 0}
    while True:
        k = min(m for m in before[path[-1]] if m in waiting)
        if k in seen:
            return [*path[seen[k] :], k][::-1]
        seen[k] = len(path)
        path.append(k)
