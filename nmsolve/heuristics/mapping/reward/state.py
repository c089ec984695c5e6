"""A mapping with what every core exchanges with the cores to its four sides, and the channels of its multicast trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, room_of
from nmsolve.hw.deltas import rows_of_node
from nmsolve.hw.links import Links, links_of
from nmsolve.hw.reward import own_prices, prohibited_directions
from nmsolve.model.compiled import plain
from nmsolve.model.graph import LogicGraph, Rows, compress_rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Entries of ``RewardState.total``: what all cores exchange, channels of multicast trees, and the terms added to the product.
LOSS, CHANNELS, ADDED = range(3)


class Prices(NamedTuple):
    """What a state pays for.

    ``weight`` of [what goes along rows, along columns, prohibited directions of turning times theirs, traffic times distance,
    traffic with a single shortest route]; ``own`` (P, P) what traffic pays by terms of the user's own, (0, 0) without any.
    """

    weight: FloatArray
    own: FloatArray


class RewardState(NamedTuple):
    """Flat arrays for the kernels.

    Messages: ``nets`` as in the graph, ``casts`` if any is multicast;
    ``row_ptr``/``rows`` the rows that each node takes part in; ``pair_ptr``/``other``/``sent``/``received`` what a node sends
    and receives edge by edge (rows that are not multicast). Board: ``lines`` = [columns, rows, columns if they are a ring
    else 0, the same for rows]; ``links`` its routes.

    What changes: ``room``, ``side`` (P, 4) exchanged to the right, left, down and up, ``total``; of every multicast
    row its flow's ``key`` (0: at most one remote core) and tree's ``length``; the table of flows ``keys``, ``many``,
    ``filled`` slots of it.
    """

    nets: Rows
    casts: bool
    row_ptr: IntArray
    rows: Int32Array
    pair_ptr: IntArray
    other: Int32Array
    sent: FloatArray
    received: FloatArray
    lines: IntArray
    links: Links
    room: Room
    price: Prices
    side: FloatArray
    total: FloatArray
    key: AnyArray
    length: IntArray
    keys: AnyArray
    many: IntArray
    filled: IntArray
    stamp: IntArray
    got: IntArray
    entered: IntArray


def build(problem: MappingProblem, core: IntArray) -> RewardState:
    """The state of the mapping ``core`` (n,), empty: call :func:`nmsolve.heuristics.mapping.reward.moves.reset`."""
    graph, machine, terms = problem.graph, problem.machine, problem.terms
    prohibited = terms.deadlock * prohibited_directions(machine, problem.turns)
    (nets,) = graph.blocks()
    ring = [length if machine.torus and length > 2 else 0 for length in (machine.cols, machine.rows)]
    slots = 16
    while slots < 4 * int(graph.multicast.sum()):
        slots *= 2
    row_ptr, rows = rows_of_node(graph)
    pair_ptr, other, sent, received = _pairs(graph)
    return RewardState(
        nets.fixed, bool(graph.multicast.any()),
        row_ptr, rows, pair_ptr, other, sent, received,
        np.array([machine.cols, machine.rows, *ring]), links_of(machine),
        room_of(problem, core),
        Prices(np.array([terms.horizontal, terms.vertical, prohibited, terms.hops, terms.faults]), own_prices(machine, terms)),
        np.zeros((machine.size, 4)), np.zeros(3),
        np.zeros(graph.rows, np.uint64), np.zeros(graph.rows, np.int64), np.zeros(slots, np.uint64), np.zeros(slots, np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(machine.size, np.int64), np.zeros(machine.size, np.int64),
    )  # fmt: skip


def _pairs(graph: LogicGraph) -> tuple[IntArray, Int32Array, FloatArray, FloatArray]:
    """What every node sends to and receives from every other edge by edge, as CSR over nodes."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    alone = ~graph.multicast[row]
    src, dst = graph.source[row[alone]].astype(np.int64), graph.targets[alone].astype(np.int64)
    weight, none = graph.weights[alone], np.zeros(int(alone.sum()))
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    ptr, other, sent = compress_rows(graph.n, *both, np.concatenate([weight, none]))
    received = compress_rows(graph.n, *both, np.concatenate([none, weight]))[2]
    return ptr, other, sent, received


@plain
def exchange(
    side: FloatArray,
    total: FloatArray,
    lines: IntArray,
    price: Prices,
    p: int,
    q: int,
    there: float,
    back: float,
) -> None:
    """Core ``p`` sends ``there`` more to core ``q``, which sends ``back`` more to ``p``: bring ``side`` and ``total`` up to date.

    Arrays as in :class:`RewardState`, passed one by one: kernels count references to every array of a state that they touch.
    """
    r = q // lines[0] - p // lines[0]
    c = q - p - r * lines[0]
    total[LOSS] += price.weight[0] * _along(side, 0, p, q, c, lines[2], there, back)
    total[LOSS] += price.weight[1] * _along(side, 2, p, q, r, lines[3], there, back)
    if price.own.size > 0:
        total[ADDED] += there * price.own[p, q] + back * price.own[q, p]
    if price.weight[3] > 0.0 or price.weight[4] > 0.0:
        c, r = _shorter(c, lines[2]), _shorter(r, lines[3])
        total[ADDED] += price.weight[3] * (there + back) * (abs(c) + abs(r))
        if (
            (c == 0) != (r == 0) and 2 * c != max(1, lines[2]) and 2 * r != max(1, lines[3])
        ):  # half round a ring: two ways
            total[ADDED] += price.weight[4] * (there + back)


@plain
def _shorter(way: int, ring: int) -> int:
    """``way`` lines the shorter way round a ``ring`` (0: there is none), of two equal ones the growing one."""
    return (way + (ring - 1) // 2) % ring - (ring - 1) // 2 if ring > 0 else way


@plain
def _along(
    side: FloatArray, one: int, p: int, q: int, way: int, ring: int, there: float, back: float
) -> float:
    """The part of an exchange on the sides ``one`` and the next: ``q`` is ``way`` lines further than ``p``."""
    way = _shorter(way, ring)
    if ring > 0 and 2 * way == ring:  # both ends look the same way
        first: float = _add(side, p, q, one, one + 1, way * there)
        second: float = _add(side, q, p, one, one + 1, way * back)
        return first + second
    change: float = 0.0
    if way > 0:
        change = _add(side, p, q, one, one + 1, way * (there + back))
    elif way < 0:
        change = _add(side, p, q, one + 1, one, -way * (there + back))
    return change


@plain
def _add(side: FloatArray, p: int, q: int, near: int, far: int, amount: float) -> float:
    """Add to the side ``near`` of core ``p`` and the side ``far`` of core ``q``; the change of their larger sides."""
    a, b, c, d = side[p, near], side[p, far], side[q, far], side[q, near]
    side[p, near], side[q, far] = a + amount, c + amount
    return max(a + amount, b) - max(a, b) + max(c + amount, d) - max(c, d)  # type: ignore[no-any-return]
