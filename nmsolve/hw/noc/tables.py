"""Routes in the form routers use: an output per target and input port, or the tree of every flow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.noc.layout import CORE
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray

#: Hop-by-hop routing keeps a table of targets by routers.
MOST_CORES = 8192


class Tables(NamedTuple):
    """What :mod:`nmsolve.hw.noc.router` looks routes up in. One half is empty.

    Attributes
    ----------
    kind : (P, P) by router and target: which row of ``onward`` holds (as small a type as will do: it is looked up for every head)
    onward : (kinds, 5) uint8 by input port: outputs (bits) that lead on to the target
    child_start, child : positions that follow a position; positions are entries of ``Routes.channel``, then the starts
    step : (K,) uint8 output that leads to a position
    group : (K,) int64 virtual channels (bits) it may be reached on
    arrives : (K + S,) int64 record (flow and target) delivered at a position, -1: none
    start : (F + 1,) a flow's starts: one for every link its tree leaves the source over
    """

    kind: AnyArray
    onward: AnyArray
    child_start: IntArray
    child: IntArray
    step: AnyArray
    group: IntArray
    arrives: IntArray
    start: IntArray


_NO_KIND, _NO_WAY = np.zeros((1, 1), np.uint8), np.zeros((1, 5), np.uint8)
_NONE = np.zeros(0, np.int64)


def turn_tables(machine: Machine, turns: TurnSet, source: Int32Array, targets: Int32Array) -> Tables:
    """Tables of hop-by-hop routing: the outputs that begin a shortest path among those the turn set allows.

    Where shortest paths of the mesh obey the turns these are all of them; a pair that the turns allow only a
    longer way gets the shortest such way. No path is a dead end, and every hop comes nearer.

    Raises
    ------
    InputError : more than 8192 cores, turns for another number of cores, a pair of cores without an allowed path (named)
    """
    if machine.size > MOST_CORES:
        raise InputError(
            f"routes by turns on {machine.size} cores", machine.name, f"at most {MOST_CORES} cores"
        )
    if len(turns.allowed) != machine.size:
        raise InputError(f"turns for {len(turns.allowed)} cores", machine.name, f"{machine.size} cores")
    table = np.zeros((machine.size, machine.size), np.int32)
    ends, works = link_ends(machine), link_works(machine)
    _fill_outputs(np.unique(targets).astype(np.int64), ends, works, turns.allowed, table)
    lost = np.flatnonzero((table[source, targets] >> 4 * CORE == 0) & (source != targets))
    if len(lost):
        a, b = int(source[lost[0]]), int(targets[lost[0]])
        raise InputError(
            f"no path from core {a} to core {b}", turns.name or "turns", "turns that leave a path"
        )
    found = np.flatnonzero(np.bincount(table.reshape(-1), minlength=1 << 20))
    number = np.zeros(1 << 20, np.min_scalar_type(len(found) - 1))
    number[found] = np.arange(len(found))
    onward = (found[:, None] >> 4 * np.arange(5) & 15).astype(np.uint8)
    return Tables(
        number[table], onward, _NONE, _NONE, np.zeros(0, np.uint8), _NONE, _NONE, np.arange(len(source) + 1)
    )


@kernel
def _fill_outputs(
    goals: IntArray, ends: IntArray, works: BoolArray, allowed: BoolArray, table: AnyArray
) -> None:
    """Breadth-first search over links from every target backwards."""
    far = np.empty(len(ends), np.int64)
    queue = np.empty(len(ends), np.int64)
    for goal in goals:
        far[:] = -1
        tail = 0
        for d in range(4):  # links into the target
            u = ends[4 * goal + (d ^ 1)]
            if u >= 0 and works[4 * u + d]:
                far[4 * u + d] = 1
                queue[tail] = 4 * u + d
                tail += 1
        done = 0
        while done < tail:
            link = queue[done]
            done += 1
            r, out = link // 4, link % 4
            if r == goal:
                continue
            for d in range(4):
                u = ends[4 * r + (d ^ 1)]
                if u >= 0 and works[4 * u + d] and allowed[r, d, out] and far[4 * u + d] < 0:
                    far[4 * u + d] = far[link] + 1
                    queue[tail] = 4 * u + d
                    tail += 1
        for r in range(len(ends) // 4):
            if r != goal:
                for p in range(5):
                    table[r, goal] |= _nearest(r, p, far, allowed) << 4 * p


@kernel
def _nearest(r: int, p: int, far: IntArray, allowed: BoolArray) -> int:
    """Outputs (bits) of least distance that what came in by port ``p`` may take."""
    best, mask = -1, 0
    for out in range(4):
        if far[4 * r + out] > 0 and (p == CORE or allowed[r, p, out]):
            if best < 0 or far[4 * r + out] < best:
                best, mask = far[4 * r + out], 0
            if far[4 * r + out] == best:
                mask |= 1 << out
    return mask


def tree_tables(
    machine: Machine,
    routes: Routes,
    source: Int32Array,
    indptr: IntArray,
    targets: Int32Array,
    virtual_channels: int,
) -> Tables:
    """Tables of given routes.

    Routes that name V channels per link share out the router's channels in V equal groups: with V = 1 any may be taken.

    Raises
    ------
    InputError : routes for another number of flows, channels that do not divide the router's, a dead link, a tree that does
        not start at its source or misses a target
    """
    flows, positions = len(source), len(routes.channel)
    if routes.count != flows:
        raise InputError(f"{routes.count} routes", "routes", f"one for each of {flows} flows")
    if virtual_channels % routes.channels:
        raise InputError(
            f"routes use {routes.channels} virtual channels, routers have {virtual_channels}", "routes",
            "a number that divides the router's",
        )  # fmt: skip
    links, flow = routes.links, routes.flow
    works = link_works(machine)
    if positions and not (links.min() >= 0 and links.max() < len(works) and works[links].all()):
        raise InputError("a route uses a link that is dead or does not exist", "routes", "working links")
    first = np.flatnonzero(routes.parent < 0)
    start = np.concatenate([[0], np.cumsum(np.maximum(np.bincount(flow[first], minlength=flows), 1))])
    nth = np.arange(len(first)) - np.searchsorted(flow[first], flow[first])  # of the links out of its source
    parent = routes.parent.copy()
    parent[first] = positions + start[flow[first]] + nth
    of = np.concatenate([flow, np.repeat(np.arange(flows), np.diff(start))])
    core = np.concatenate([link_ends(machine)[links], source[of[positions:]]]).astype(np.int64)
    if (core[parent] != links // 4).any():
        k = int(np.flatnonzero(core[parent] != links // 4)[0])
        raise InputError(
            f"the route of flow {int(flow[k])} jumps to core {int(links[k]) // 4}", "routes", "links in a row"
        )
    child = np.argsort(parent, kind="stable")
    child_start = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=len(of)))])
    each = virtual_channels // routes.channels
    group = ((1 << each) - 1) << (routes.channel % routes.channels * each)
    arrives = _arrivals(machine.size, of, core, indptr, targets)
    return Tables(
        _NO_KIND, _NO_WAY, child_start.astype(np.int64), child.astype(np.int64), (links % 4).astype(np.uint8),
        group.astype(np.int64), arrives, start.astype(np.int64),
    )  # fmt: skip


def _arrivals(cores: int, flow: IntArray, core: IntArray, indptr: IntArray, targets: Int32Array) -> IntArray:
    """Record number at every position that is a target of its flow."""
    of = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    wanted = of * cores + targets
    order = np.argsort(wanted, kind="stable")
    at = flow * cores + core
    place = np.minimum(np.searchsorted(wanted[order], at), len(wanted) - 1)
    found = wanted[order][place] == at
    arrives = np.where(found, order[place], -1).astype(np.int64)
    times = np.bincount(arrives[found], minlength=len(targets))
    if (times != 1).any():
        k = int(np.flatnonzero(times != 1)[0])
        raise InputError(
            f"the route of flow {int(of[k])} reaches core {int(targets[k])} {int(times[k])} times",
            "routes",
            "once",
        )
    return arrives
