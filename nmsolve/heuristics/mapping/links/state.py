"""A mapping with the load of every link and the sums that all objectives are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.norm import OVER, SUM, add
from nmsolve.heuristics.mapping.common.room import Room, refill, room_of
from nmsolve.hw.cost import pair_distance
from nmsolve.hw.deltas import rows_of_node
from nmsolve.hw.detours import link_weights
from nmsolve.hw.energy import step_value
from nmsolve.hw.links import Links, goes_up, links_of
from nmsolve.hw.router_tables import entries_of_row
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.graph import Rows
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Rows of ``LinkState.sums``: weight times distance edge by edge, traffic between cores edge by edge, rate times remote
#: cores of all rows, what pays once per message (rate times remote cores, or the weight of remote edges).
HOPS, CUT, REMOTE, ONCE = range(4)
#: Objectives that are ``factor @ sums + link @ loads``.
SUMS = ("hops", "multicast-hops", "cut", "connectivity", "energy")


class LinkState(NamedTuple):
    """Flat arrays for the kernels; ``room``, ``loads``, ``sums``, ``heat`` and ``used`` change.

    ``nets`` are the messages of the graph, ``row_ptr``/``rows`` those that each node takes part in, ``links`` the routes.
    ``factor`` (K, 4) and ``link`` (K, 4 P) the K sums that count (the objective first, unless it is max-link: then ``by_load``),
    ``most`` (K,) their ceilings, inf for the objective.

    ``loads`` (4 P,) traffic of every link, ``sums`` (4,), ``linked`` (K,) the links' part of the K sums; ``heat`` (6,), the norm
    of the loads (:mod:`nmsolve.heuristics.mapping.common.norm`).

    Where routers' tables are limited: ``entries`` (P,) of every router, ``tables`` = [limit, entries too many, price of one]
    (limit inf: not counted), ``marks`` scratch of :func:`nmsolve.hw.router_tables.entries_of_row`.
    """

    nets: Rows
    row_ptr: IntArray
    rows: Int32Array
    links: Links
    room: Room
    factor: FloatArray
    link: FloatArray
    most: FloatArray
    by_load: bool
    loads: FloatArray
    sums: FloatArray
    linked: FloatArray
    heat: FloatArray
    entries: IntArray
    tables: FloatArray
    marks: IntArray
    stamp: IntArray
    used: IntArray
    got: IntArray


def build(problem: MappingProblem, core: IntArray) -> LinkState:
    """The state of the legal mapping ``core`` (n,); call :func:`reset` after changing ``heat``."""
    graph, machine = problem.graph, problem.machine
    (nets,) = graph.blocks()
    row_ptr, rows = rows_of_node(graph)
    factor, link, most, ceiling = _objectives(problem)
    state = LinkState(
        nets.fixed, row_ptr, rows, links_of(machine), room_of(problem, core), factor, link, most,
        problem.uses_links, np.zeros(4 * machine.size), np.zeros(4), np.zeros(len(most)),
        np.array([0.0, 1.0, 3.0, 0.0, ceiling, 0.0]), np.zeros(machine.size, np.int64),
        np.array([np.inf if problem.table_limit is None else problem.table_limit, 0.0, 0.0]),
        np.zeros((5, machine.size), np.int64), np.zeros(1, np.int64),
        np.zeros(4 * machine.size, np.int64), np.zeros(machine.size, np.int64),
    )  # fmt: skip
    reset(state)
    return state


def _objectives(problem: MappingProblem) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """``factor``, ``link`` and ``most`` of :class:`LinkState`, and the ceiling of a load."""
    names = [(problem.objective, np.inf), *problem.ceilings]
    wanted = [(name, most) for name, most in names if name != "max-link"]
    factor, link = np.zeros((len(wanted), 4)), np.zeros((len(wanted), 4 * problem.cores))
    for k, (name, _) in enumerate(wanted):
        if name in ("multicast-hops", "energy"):
            quantity = OBJECTIVES[name].quantity
            weights = link_weights(problem.machine, quantity)
            link[k] = np.where(np.isfinite(weights), weights, 0.0)
            factor[k, ONCE] = step_value(problem.machine, quantity)
        else:
            factor[k, {"hops": HOPS, "cut": CUT, "connectivity": REMOTE}[name]] = 1.0
    ceiling = min([most for name, most in names if name == "max-link"], default=np.inf)
    return factor, link, np.array([most for _, most in wanted]), float(ceiling)


@plain
def reset(s: LinkState) -> None:
    """Recompute everything that changes from ``core``; rounding that has gathered is gone."""
    refill(s.room)
    s.loads[:] = 0.0
    s.sums[:] = 0.0
    s.linked[:] = 0.0
    s.heat[SUM] = s.heat[OVER] = s.tables[1] = 0.0
    s.entries[:] = 0
    for i in range(len(s.nets.source)):
        add_row(s, i, 1.0)


@embedded
def add_row(s: LinkState, i: int, sign: float) -> None:
    """Add (1) or take away (-1) everything row ``i`` contributes with the present mapping."""
    s.stamp[0] += 1
    stamp = s.stamp[0]
    p = s.room.core[s.nets.source[i]]
    s.got[p] = stamp
    cast, rate = s.nets.multicast[i], s.nets.rate[i]
    for k in range(s.nets.indptr[i], s.nets.indptr[i + 1]):
        q = s.room.core[s.nets.targets[k]]
        if q == p:
            continue
        weight = s.nets.weights[k]
        first = s.got[q] != stamp
        s.got[q] = stamp
        s.sums[CUT] += sign * weight
        if first:
            s.sums[REMOTE] += sign * rate
        if cast and first:
            s.sums[ONCE] += sign * rate
        elif not cast:
            s.sums[ONCE] += sign * weight
        away = pair_distance(p, q, s.links.distance)
        s.sums[HOPS] += sign * weight * away
        if first or not cast:
            _add_route(s, p, q, sign * (rate if cast else weight), stamp if cast else 0)
    if s.tables[0] < np.inf:
        for j in range(entries_of_row(i, s.nets, s.room.core, s.links, s.marks)):
            c = s.marks[4, j]
            s.tables[1] -= max(0.0, s.entries[c] - s.tables[0])
            s.entries[c] += 1 if sign > 0.0 else -1
            s.tables[1] += max(0.0, s.entries[c] - s.tables[0])


@embedded
def _add_route(s: LinkState, p: int, q: int, amount: float, stamp: int) -> None:
    """Add ``amount`` to the links of the route, backwards; with ``stamp`` links of the row's tree count once.

    As :func:`~nmsolve.hw.links.link_before`, whose look at both ends for every link takes a fifth more time here.
    """
    tree, ends, distance = s.links.before, s.links.ends, s.links.distance
    cols, x, y = distance.cols, distance.x, distance.y
    pr, pc = p // cols, p % cols
    across = 0 if goes_up(x[pc], x[q % cols], distance.wrap_x) else 1
    along = 2 if goes_up(y[pr], y[q // cols], distance.wrap_y) else 3
    v = q
    while v != p:
        if tree.shape[0] > 0:
            u, d = int(tree[p, v]), 0
            while ends[4 * u + d] != v:
                d += 1
        else:
            d = along if v // cols != pr else across
            u = int(ends[4 * v + (d ^ 1)])
        link = 4 * u + d
        if stamp > 0:
            if s.used[link] == stamp:
                return
            s.used[link] = stamp
        add(s.loads, s.heat, link, amount)
        for k in range(len(s.linked)):
            s.linked[k] += amount * s.link[k, link]
        v = u
