"""Shortest routes that obey a turn set, chosen by load, and trees grown in the same way.

The largest flow chooses first. Among its shortest routes that obey the turns it takes one whose most loaded link is least
loaded, and among those the one with the least sum of loads. A multicast flow reaches its targets one by one, the nearest
first, over links of its own tree for nothing; no core is entered twice.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.routing.shortest import NONE, ROOT, Mesh, PathArrays, cheapest, forget, levels, work_of
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray


def turn_routes(machine: Machine, flows: Flows, turns: TurnSet) -> Routes:
    """Routes of all flows within a turn set, chosen by load (module's text); one channel per link.

    Each is a shortest one among those that obey the turns. A branch of a tree may be longer where the tree's other branches
    leave no shortest one.

    Raises
    ------
    InputError : turns and dead links leave no route (that does not pass a core twice) from a source to a target
    """
    order = np.argsort(-flows.rate, kind="stable")
    mesh = Mesh(link_ends(machine), link_works(machine), turns.allowed)
    start, size, link, parent, bad = _trees(
        order, flows.source, flows.indptr, flows.targets, flows.rate, mesh, work_of(machine.size)
    )
    if bad >= 0:
        flow = int(np.searchsorted(flows.indptr, bad, "right")) - 1
        p, q = int(flows.source[flow]), int(flows.targets[bad])
        rule = f"the turns ({turns.name or 'as given'})"
        if not _reached(p, mesh.ends, mesh.works, mesh.allowed)[q]:
            wanted = "a turn set that connects every source with its targets"
            raise InputError(f"{rule} leave no route from core {p} to core {q}", machine.name, wanted)
        raise InputError(
            f"{rule} let core {p} reach core {q}, but no route was found that passes no core twice", machine.name,
            "a turn set with simple routes",
        )  # fmt: skip
    indptr = np.concatenate([[0], np.cumsum(size)])
    at = np.repeat(start - indptr[:-1], size) + np.arange(indptr[-1])
    above = parent[at]
    return Routes(
        1, indptr, link[at], np.where(above >= 0, above + np.repeat(indptr[:-1], size), -1).astype(np.int64)
    )


def disconnected_pair(machine: Machine, turns: TurnSet, flows: Flows) -> tuple[int, int] | None:
    """The first (source, target) of the flows between which turns and dead links leave no route; None if there is none."""
    ends, works = link_ends(machine), link_works(machine)
    for p in np.unique(flows.source).tolist():
        reached = _reached(p, ends, works, turns.allowed)
        for f in np.flatnonzero(flows.source == p).tolist():
            missing = [q for q in flows.of(f).tolist() if not reached[q]]
            if missing:
                return p, missing[0]
    return None


@kernel
def _reached(source: int, ends: IntArray, works: BoolArray, allowed: BoolArray) -> BoolArray:
    """(P,) bool: cores that messages from ``source`` can get to."""
    reached = np.zeros(allowed.shape[0], np.bool_)
    seen, stack, top = np.zeros(ends.shape[0], np.bool_), np.empty(ends.shape[0], np.int64), 0
    reached[source] = True
    for link in range(4 * source, 4 * source + 4):
        if works[link]:
            seen[link], stack[top] = True, link
            top += 1
    while top > 0:
        top -= 1
        link = stack[top]
        core = ends[link]
        reached[core] = True
        for d in range(4):
            after = 4 * core + d
            if works[after] and not seen[after] and allowed[core, link % 4, d]:
                seen[after], stack[top] = True, after
                top += 1
    return reached


@kernel
def _trees(
    order: IntArray,
    source: Int32Array,
    indptr: IntArray,
    targets: Int32Array,
    rate: FloatArray,
    mesh: Mesh,
    work: PathArrays,
) -> tuple[IntArray, IntArray, IntArray, IntArray, int]:
    """Trees of all flows in ``order``: where each starts, its size, links, parents from its start; a target cut off or -1."""
    flows, cores = source.shape[0], work.tree.shape[0]
    start, size = np.zeros(flows, np.int64), np.zeros(flows, np.int64)
    link, parent = np.empty(cores, np.int64), np.empty(cores, np.int64)
    entry, way = np.empty(cores, np.int64), np.empty(cores, np.int64)
    k = 0
    for f in order:
        if k + cores > link.shape[0]:
            longer = np.empty((2, 2 * link.shape[0] + cores), np.int64)
            longer[0, :k], longer[1, :k] = link[:k], parent[:k]
            link, parent = longer[0], longer[1]
        goals = targets[indptr[f] : indptr[f + 1]].astype(np.int64)
        n, bad = _tree(source[f], goals, rate[f], mesh, work, way)
        if bad >= 0:
            return start, size, link, parent, indptr[f] + bad
        start[f], size[f] = k, n
        for i in range(n):
            core, end = way[i] // 4, mesh.ends[way[i]]
            link[k], parent[k], entry[end] = way[i], entry[core] if core != source[f] else -1, i
            work.load[way[i]] += rate[f]
            work.tree[end] = NONE
            k += 1
        work.tree[source[f]] = NONE
    return start, size, link[:k].copy(), parent[:k].copy(), -1


@kernel
def _tree(
    source: int, goals: IntArray, rate: float, mesh: Mesh, work: PathArrays, way: IntArray
) -> tuple[int, int]:
    """Write the links of one tree to ``way`` and ``work.tree``; their number and the place of a goal that is cut off, or -1.

    A goal that the branches before it leave no shortest route goes first in the next try; in the later ones a goal may
    take a longer one.
    """
    count, tree = goals.shape[0], work.tree
    need, turn = np.full(count, mesh.ends.shape[0]), np.arange(count)
    tree[source] = ROOT
    for j in range(count if count > 1 else 0):
        visited, need[j] = levels(source, goals[j], mesh, work)
        forget(visited, work)
        if need[j] < 0:
            return 0, j
    if count > 1:
        turn = stable_order(need)
    for attempt in range(2 * count + 1):
        n, stuck = 0, -1
        for i in range(count):
            goal, most = goals[turn[i]], need[turn[i]] if attempt < count else mesh.ends.shape[0]
            if tree[goal] == NONE:
                n = _reach(source, goal, most, rate, n, mesh, work, way)
            if n < 0:
                stuck = i
                break
        if stuck < 0:
            return n, -1
        first = turn[stuck]
        for i in range(stuck, 0, -1):
            turn[i] = turn[i - 1]
        turn[0] = first
        tree[:] = NONE
        tree[source] = ROOT
    return 0, turn[0]


@plain
def _reach(
    source: int, goal: int, most: int, rate: float, n: int, mesh: Mesh, work: PathArrays, way: IntArray
) -> int:
    """Add a branch to ``goal``, at most ``most`` links from the source; the tree's new size, -1 if there is no such branch."""
    visited, length = levels(source, goal, mesh, work)
    ok = 0 <= length <= most
    if ok:
        cheapest(source, goal, length, rate, mesh, work)
        core, before, left = source, -1, length
        while core != goal:
            best = -1
            for d in range(4):
                k = 4 * core + d
                ahead = work.dist[k] == left and (before < 0 or mesh.allowed[core, before, d])
                if ahead and work.total[k] < (np.inf if best < 0 else work.total[best]):
                    best = k
            core, before, left = mesh.ends[best], best % 4, left - 1
            if work.tree[core] == NONE:
                work.tree[core], way[n] = best, best
                n += 1
            elif work.tree[core] != best:  # passes a core twice
                ok = False
                break
    forget(visited, work)
    return n if ok else -1
