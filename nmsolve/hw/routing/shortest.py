"""Shortest routes that obey turns, and the least loaded of them: the kernels of :mod:`nmsolve.hw.routing.turn_routes`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: No link of the tree leads to this core; the tree starts in this core.
NONE, ROOT = -1, -2


class Mesh(NamedTuple):
    """Where links lead ``ends`` (4 * P,), which ``works`` (4 * P,), turns ``allowed`` (P, 4, 4)."""

    ends: IntArray
    works: BoolArray
    allowed: BoolArray


class PathArrays(NamedTuple):
    """Arrays that are allocated once, (4 * P,) by link but ``tree`` (P,).

    ``load``: traffic of the routes so far; ``tree``: the link by which the present flow's tree enters a core; ``dist``: links
    that remain to the goal, -1 where not visited, ``queue`` the visited ones; ``ways``, ``seen``: links of shortest routes;
    ``worst``, ``total``: least maximum and sum of loads from a link to the goal.
    """

    load: FloatArray
    tree: IntArray
    dist: IntArray
    queue: IntArray
    ways: IntArray
    seen: BoolArray
    worst: FloatArray
    total: FloatArray


def work_of(cores: int) -> PathArrays:
    """Arrays for a mesh of this many cores, no traffic, no tree."""
    links = 4 * cores
    return PathArrays(
        np.zeros(links), np.full(cores, NONE), np.full(links, -1), np.empty(links, np.int64), np.empty(links, np.int64),
        np.zeros(links, bool), np.empty(links), np.empty(links),
    )  # fmt: skip


@plain
def levels(source: int, goal: int, mesh: Mesh, work: PathArrays) -> tuple[int, int]:
    """Breadth first from ``goal`` back until the source is met: ``work.dist[link]`` links remain, this one included.

    Cores of the tree are entered over their link of the tree only. Returns how many links are in ``work.queue``, and the
    length of a shortest route from the source, or -1 if there is none.
    """
    ends, dist, queue, tree = mesh.ends, work.dist, work.queue, work.tree
    tail, head, length = 0, 0, -1
    for d in range(4):
        u = ends[4 * goal + (d ^ 1)]
        k = 4 * u + d
        if u >= 0 and mesh.works[k] and (tree[goal] == NONE or tree[goal] == k):
            dist[k], queue[tail] = 1, k
            tail += 1
    while head < tail:
        k = queue[head]
        head += 1
        if length >= 0 and dist[k] > length:
            break
        core = k // 4
        if core == source:
            length = dist[k]
        if length >= 0:
            continue
        for d in range(4):
            u = ends[4 * core + (d ^ 1)]
            j = 4 * u + d
            if u < 0 or not mesh.works[j] or dist[j] >= 0 or not mesh.allowed[core, d, k % 4]:
                continue
            if tree[core] == NONE or tree[core] == j:
                dist[j], queue[tail] = dist[k] + 1, j
                tail += 1
    return tail, length


@plain
def forget(visited: int, work: PathArrays) -> None:
    """Undo :func:`levels`."""
    for i in range(visited):
        work.dist[work.queue[i]] = -1


@plain
def cheapest(source: int, goal: int, length: int, rate: float, mesh: Mesh, work: PathArrays) -> None:
    """Fill ``work.total`` for all links of shortest routes: least sum of loads to the goal among those with the least maximum.

    ``inf`` where a link is on no such route. Links of the tree cost nothing, others their load with this flow.
    """
    count = _ways(source, length, mesh, work)
    limit = _to_goal(goal, count, rate, np.inf, work.worst, False, source, length, mesh, work)
    _to_goal(goal, count, rate, limit, work.total, True, source, length, mesh, work)


@plain
def _to_goal(
    goal: int,
    count: int,
    rate: float,
    limit: float,
    best: FloatArray,
    sums: bool,
    source: int,
    length: int,
    mesh: Mesh,
    work: PathArrays,
) -> float:
    """Least sum (or maximum) of loads from every link to the goal, none above ``limit``; returns that from the source."""
    ends, dist = mesh.ends, work.dist
    for i in range(count - 1, -1, -1):
        k = work.ways[i]
        core = ends[k]
        own = 0.0 if work.tree[core] == k else work.load[k] + rate
        rest = 0.0 if core == goal else np.inf
        for d in range(0 if core == goal else 4):
            if dist[4 * core + d] == dist[k] - 1 and mesh.allowed[core, k % 4, d]:
                rest = min(rest, best[4 * core + d])
        best[k] = np.inf if own > limit else own + rest if sums else max(own, rest)
    least = np.inf
    for k in range(4 * source, 4 * source + 4):
        if dist[k] == length:
            least = min(least, best[k])
    return least


@plain
def _ways(source: int, length: int, mesh: Mesh, work: PathArrays) -> int:
    """Write the links of all shortest routes to ``work.ways``, those near the source first; returns how many."""
    dist, ways, seen = work.dist, work.ways, work.seen
    tail, head = 0, 0
    for k in range(4 * source, 4 * source + 4):
        if dist[k] == length:
            ways[tail] = k
            tail += 1
    while head < tail:
        k = ways[head]
        core = mesh.ends[k]
        head += 1
        for d in range(4 if dist[k] > 1 else 0):
            j = 4 * core + d
            if dist[j] == dist[k] - 1 and not seen[j] and mesh.allowed[core, k % 4, d]:
                seen[j], ways[tail] = True, j
                tail += 1
    for i in range(tail):
        seen[ways[i]] = False
    return tail
