"""A mapping with how long every core and every link is busy in a step, counts of the nodes that messages reach, and a sum."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.axons.state import AxonState, axon_bytes, build_axons, recount
from nmsolve.heuristics.mapping.common.counts import add_pin, table_sizes
from nmsolve.heuristics.mapping.common.nets import nets_of
from nmsolve.heuristics.mapping.common.norm import OVER, SUM, add
from nmsolve.heuristics.mapping.common.room import Room, refill, room_of
from nmsolve.heuristics.mapping.nets.levels import Messages, level_bytes, one_level
from nmsolve.heuristics.mapping.nets.state import NetTables, Work, empty_tables, fill, new_work
from nmsolve.hw.links import Links, link_before, links_of
from nmsolve.hw.power import draw_of
from nmsolve.hw.step_time import fixed_times, step_costs
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.mapping.axons_fit import without_axons
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray, starts


class SumState(NamedTuple):
    """The tables of a sum, without prices, in the room of the search; ``source`` (rows,) of its messages, and the lists
    (``data``, ``at``: :class:`~nmsolve.heuristics.mapping.nets.incidence.Incidence`) of those that reach every node. ``work``
    and ``rows`` are scratch. ``at`` has a single entry where there is no sum."""

    tables: NetTables
    source: Int32Array
    data: AnyArray
    at: IntArray
    work: Work
    rows: Int32Array


class StepState(NamedTuple):
    """Flat arrays for the kernels. Messages are nets: a multicast row, or one edge of any other row.

    Fixed: ``source`` (N,) and ``rate`` (N,) of the nets, destinations ``pin_ptr``/``pins``, nodes' nets as destination
    ``in_ptr``/``in_net`` and as source ``out_ptr``/``out_net``; ``own`` and ``heard`` (n,) ns that a node costs wherever it is,
    on the sending and the receiving side; ``price`` = ns per message and core that it goes to [sent, taken, per link].

    Changing: ``room``; ``origin`` (N,) core of a net's source; destinations per net and core in ``hits``, found by
    :func:`~nmsolve.heuristics.mapping.common.counts.slot`; ``reach`` (N,) cores that a net goes to; ``busy`` (2 P + 4 P,) ns of
    sending sides, receiving sides (``inbox`` 0: both are one) and links; ``heat`` (6,), the norm of ``busy``
    (:mod:`nmsolve.heuristics.mapping.common.norm`), its price that of an entry too many in axon tables; ``axons``, those
    entries, where there is a limit.

    Where a sum counts, too, as objective or with a ceiling: ``sum``, its messages in the same room, and ``paid`` = [value of it,
    ceiling, 1 if it is what the search lowers, price of what is above a ceiling].

    ``shared``: 1 if a net is on a link once, however many cores behind it it goes to; ``mark`` (P,), ``stamp`` (1,): cores whose
    way from the source a net is known to take already.

    ``draw``: empty, or what the energy of a step takes beside that sum = [pJ per ns, the same per core in use, pJ, barrier in ns,
    1 if it counts times the step's time, cores in use].
    """

    source: Int32Array
    rate: FloatArray
    pin_ptr: IntArray
    pins: Int32Array
    in_ptr: IntArray
    in_net: Int32Array
    out_ptr: IntArray
    out_net: Int32Array
    own: FloatArray
    heard: FloatArray
    price: FloatArray
    links: Links
    inbox: int
    room: Room
    origin: Int32Array
    base: IntArray
    keys: Int32Array
    hits: Int32Array
    reach: IntArray
    busy: FloatArray
    heat: FloatArray
    axons: AxonState
    sum: SumState
    paid: FloatArray
    draw: FloatArray
    shared: int
    mark: IntArray
    stamp: IntArray


def sum_of(problem: MappingProblem) -> MappingProblem | None:
    """Return the problem of the sum that counts beside the step time, or None."""
    for name in (
        ("energy",) if problem.aim.charges == "power" else (problem.objective, *dict(problem.ceilings))
    ):
        if not OBJECTIVES[name].formula:
            return replace(without_axons(problem), objective=name, ceilings=())
    return None


def _state_of_sum(problem: MappingProblem, room: Room) -> SumState:
    """The tables of the sum, to be filled; of no messages where there is none."""
    one, none = sum_of(problem), np.zeros(0, np.int32)
    lone = one is None
    if one is None:
        silent = replace(
            problem.graph, indptr=starts(none), targets=none, weights=np.zeros(0), source=none,
            multicast=np.zeros(0, bool), rate=np.zeros(0),
        )  # fmt: skip
        one = MappingProblem(silent, problem.machine, "connectivity", node_limit=problem.node_limit)
    messages = Messages.of(one)
    level = one_level(one, messages)
    tables = empty_tables(
        one, level.vertices, level.source, messages.rate, pairs=level.pairs, priced=False
    )._replace(room=room)
    data, at = level.lists.data, level.lists.at
    assert data is not None
    rows = np.zeros(int(np.diff(at).max(initial=0)) + 1, np.int32)
    return SumState(tables, level.source, data, at[:1] if lone else at, new_work(tables), rows)


def build(problem: MappingProblem, core: IntArray) -> StepState:
    """The state of the legal mapping ``core`` (n,)."""
    nets = nets_of(problem.graph)
    n, cores = problem.n, problem.cores
    costs = step_costs(problem.machine)
    own, heard = fixed_times(problem.graph, costs)
    in_ptr = starts(np.bincount(nets.pins, minlength=n))
    base = starts(table_sizes(np.diff(nets.pin_ptr), cores))
    net = np.repeat(np.arange(len(nets.rate), dtype=np.int32), np.diff(nets.pin_ptr))
    room = room_of(problem, core)
    state = StepState(
        nets.source, nets.rate, nets.pin_ptr, nets.pins,
        in_ptr, net[np.argsort(nets.pins, kind="stable")],
        starts(np.bincount(nets.source, minlength=n)), np.argsort(nets.source, kind="stable").astype(np.int32),
        own, heard, np.array([costs.sent, costs.taken, costs.link]), links_of(problem.machine),
        cores if costs.aside else 0, room, np.zeros(len(nets.rate), np.int32), base,
        np.full(base[-1], -1, np.int32), np.zeros(base[-1], np.int32), np.zeros(len(nets.rate), np.int64),
        np.zeros(6 * cores), np.array([0.0, 1.0, 3.0, 0.0, _ceiling(problem, True), 0.0]), build_axons(problem, room.core),
        _state_of_sum(problem, room), np.array([0.0, _ceiling(problem, False), problem.aim.charges != "time", 0.0]),
        _drawn(problem), int(costs.shared), np.zeros(cores, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
    reset(state)
    return state


def _drawn(problem: MappingProblem) -> FloatArray:
    """What :class:`StepState` calls ``draw``."""
    if problem.aim.charges != "power":
        return np.zeros(0)
    chips, core, work = draw_of(problem.graph, problem.machine)
    barrier = step_costs(problem.machine).barrier
    return np.array([chips, core, work, barrier, problem.objective == "energy-delay", 0.0])


def state_bytes(problem: MappingProblem) -> int:
    """Return the estimated memory of a state, in bytes."""
    graph = problem.graph
    length = np.where(graph.multicast, np.diff(graph.indptr), 1)
    entries = int(table_sizes(length, problem.cores).sum())
    entries += 4 * int(np.diff(graph.indptr)[~graph.multicast].sum())
    one = sum_of(problem)
    more = 0 if one is None else level_bytes(one)
    return 8 * entries + 16 * graph.m + 400 * problem.n + axon_bytes(problem) + more


def _ceiling(problem: MappingProblem, time: bool) -> float:
    """Return the least ceiling on how long cores and links are busy, or on the sum; inf without one."""
    found = [most for name, most in problem.ceilings if (OBJECTIVES[name].charges == "time") == time]
    most = min(found, default=np.inf)
    return most - step_costs(problem.machine).barrier if time else most


def reset(s: StepState) -> None:
    """Recompute everything that changes from ``room.core``; rounding that has gathered is gone."""
    _fill(s)
    recount(s.axons)
    if len(s.sum.at) > 1:
        s.paid[0] = fill(s.sum.tables, s.sum.work, s.sum.source, s.sum.data, s.sum.at)
    if len(s.draw) > 0:
        s.draw[5] = float((s.room.head >= 0).sum())


@plain
def _fill(s: StepState) -> None:
    cores = len(s.room.head)
    refill(s.room)
    s.keys[:] = -1
    s.hits[:] = 0
    s.busy[:] = 0.0
    s.heat[SUM] = s.heat[OVER] = 0.0
    for u in range(len(s.own)):
        p = s.room.core[u]
        shift(s, p, s.own[u])
        shift(s, s.inbox + p, s.heard[u])
    for e in range(len(s.source)):
        s.origin[e] = s.room.core[s.source[e]]
        s.reach[e] = 0
        for i in range(s.pin_ptr[e], s.pin_ptr[e + 1]):
            q = s.room.core[s.pins[i]]
            if add_pin(s.keys, s.base, s.hits, e, q, cores):
                reached(s, e, q, 1)


@embedded
def shift(s: StepState, r: int, amount: float) -> None:
    """A core's side or a link is busy for so much longer."""
    add(s.busy, s.heat, r, amount)


@plain
def reached(s: StepState, e: int, q: int, sign: int) -> None:
    """Net ``e`` goes to core ``q`` from now on (1), or no more (-1)."""
    amount = sign * s.rate[e]
    s.reach[e] += sign
    shift(s, s.origin[e], amount * s.price[0])
    shift(s, s.inbox + q, amount * s.price[1])
    if s.price[2] > 0.0 and s.shared > 0:
        plant(s, e, s.origin[e], 0.0, q)
        branch(s, s.origin[e], q, amount * s.price[2])
    elif s.price[2] > 0.0:
        carry(s, s.origin[e], q, amount * s.price[2])


@plain
def carry(s: StepState, p: int, q: int, time: float) -> None:
    """The links from core ``p`` to ``q`` are busy for so much longer."""
    first = 2 * len(s.room.head)
    v = q
    while v != p:
        u, link = link_before(s.links, p, q, v)
        shift(s, first + link, time)
        v = u


@plain
def goal(s: StepState, e: int, i: int) -> int:
    """Return the core that entry ``i`` of net ``e``'s table counts, -1 if the net does not go there."""
    if s.hits[i] <= 0:
        return -1
    return int(i - s.base[e]) if s.base[e + 1] - s.base[e] == len(s.room.head) else int(s.keys[i])


@plain
def branch(s: StepState, p: int, q: int, time: float) -> None:
    """The links from the marked cores to ``q`` on its route from ``p`` are busy for so much longer; their ends get marks."""
    first = 2 * len(s.room.head)
    v = q
    while s.mark[v] != s.stamp[0]:
        s.mark[v] = s.stamp[0]
        u, link = link_before(s.links, p, q, v)
        if time != 0.0:
            shift(s, first + link, time)
        v = u


@plain
def plant(s: StepState, e: int, p: int, time: float, but: int) -> None:
    """The links of the tree from ``p`` to all cores of net ``e`` other than ``but`` are busy for so much longer; its cores get
    marks."""
    s.stamp[0] += 1
    s.mark[p] = s.stamp[0]
    for i in range(s.base[e], s.base[e + 1]):
        q = goal(s, e, i)
        if q >= 0 and q != but:
            branch(s, p, q, time)
