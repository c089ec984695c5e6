"""Tables that make the change of a net objective cheap: who is reached where, and what one more core would cost.

A message (row) from core ``o`` costs ``rate * (step * remote destination cores + length of its XY-route union)``. Kept
for every row: how many vertices of each core it reaches (``hits``), the lines it reaches in every board column, and the
*price* of every core, what the row would pay on top if it had to reach that core, too. A core that is reached already
has price 0. Moving a vertex then costs the sum of the prices of its rows, except for rows that reach nothing else on the
vertex's old core: their trees get shorter.

Messages that are charged edge by edge are *pairs*: symmetric traffic, of which only the cores of its ends matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import kinds_of, recount, unlimited
from nmsolve.heuristics.mapping.common.room import Room
from nmsolve.heuristics.mapping.nets.incidence import Piece, next_gap
from nmsolve.hw.cost import core_distance
from nmsolve.model.compiled import plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen, starts

#: Prices are kept in bytes: multiples of ``unit``. They choose moves; whether a move pays is computed exactly.
TOP = 255
#: Prices per row are padded to a multiple of this many cores (whole vectors).
PAD = 32
#: Bits of ``busy``: some price is not 0; some core holds just one destination.
PRICED, LONE = np.uint8(1), np.uint8(2)


class Pairs(NamedTuple):
    """Symmetric traffic between vertices as CSR, each pair stored twice; empty where every message is charged by its tree."""

    ptr: IntArray
    other: Int32Array
    weight: FloatArray


NO_PAIRS = Pairs(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


class NetTables(NamedTuple):
    """Everything the kernels need at one level; a tuple of flat arrays, changed in place.

    Fixed: ``rate`` (R,); ``out_ptr``, ``out_row``: CSR of the rows that start in each vertex; ``x`` (cols,), ``y``
    (rows,), ``step`` as in ``CoreDistance`` (connectivity takes all cores as one column without length); ``unit`` of
    the prices; ``pairs``, traffic that is charged edge by edge.

    Changing: ``room``, who sits where (without rings); per row ``origin`` (R,) core of its source, ``hits`` (R, P)
    vertices reached on each core, ``fan`` (R,) cores reached, ``lone`` (R,) cores on which just one vertex is reached,
    ``low``, ``high`` (R, cols) first and last board row reached in every column (``low`` > ``high``: none), ``span``
    (R, 2) first and last column of its tree, ``paid`` (R,) cost per message, ``price`` (R, P padded) uint8 and ``busy``
    (R,) bits, 0 for rows that no move of a vertex they reach can change.

    Limits on axon tables: ``inner`` (R,) messages that reach the vertex they leave (length 0: no limits), ``most`` (2,)
    entries of a core's incoming and outgoing table, ``used`` (2, P) entries taken, ``excess`` (1,) how many are too many.
    """

    rate: FloatArray
    out_ptr: IntArray
    out_row: Int32Array
    x: FloatArray
    y: FloatArray
    step: float
    unit: float
    pairs: Pairs
    room: Room
    origin: Int32Array
    hits: AnyArray
    fan: Int32Array
    lone: Int32Array
    low: AnyArray
    high: AnyArray
    span: Int32Array
    paid: FloatArray
    price: AnyArray
    busy: AnyArray
    inner: BoolArray
    most: IntArray
    used: IntArray
    excess: IntArray


class Vertices(NamedTuple):
    """The vertices of a level: ``label`` (nodes,) int32 and, per vertex, sizes, allowed cores, ``apart`` and set of kinds
    (``kind_of`` is empty where kinds are not limited)."""

    label: Int32Array
    sizes: IntArray
    domain_of: Int32Array
    apart_ptr: IntArray
    apart: Int32Array
    kind_of: Int32Array

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.sizes)


class Work(NamedTuple):
    """Scratch of a thread: ``fine`` (P,) and ``side`` (cols,) sums, ``total`` (P padded) float32, lines and columns.

    ``new``, ``aside`` (P,): entries of axon tables that come with a vertex at each core, and too many of them elsewhere.
    """

    fine: FloatArray
    side: FloatArray
    total: AnyArray
    down: FloatArray
    top: FloatArray
    bottom: FloatArray
    across: FloatArray
    new: Int32Array
    aside: Int32Array


def table_bytes(rows: int, machine_rows: int, machine_cols: int, largest: int) -> int:
    """Memory of the tables of ``rows`` messages, the longest with ``largest`` destinations, in bytes."""
    cores = machine_rows * machine_cols
    return rows * ((2 if largest < 2**16 else 4) * cores + _padded(cores) + 4 * machine_cols + 50)


def _padded(cores: int) -> int:
    return -(-cores // PAD) * PAD


def empty_tables(
    problem: MappingProblem, vertices: Vertices, source: Int32Array, rate: FloatArray, inner: BoolArray | None = None,
    pairs: Pairs = NO_PAIRS, priced: bool = True,
) -> NetTables:  # fmt: skip
    """Tables for one level, to be filled by ``Sweeper.put``.

    Parameters
    ----------
    source, rate : (rows,) vertex in which each message starts, and how often it is sent, 0 for those without cost
    inner : (rows,) messages that reach that vertex, if axon tables are limited
    pairs : what is charged edge by edge
    priced : whether prices are kept; without them only single moves are weighed
    """
    limits = problem.axons if inner is not None else None
    distance, machine = core_distance(problem), problem.machine
    tall = not problem.aim.reach
    flat = frozen(np.zeros(machine.size))  # as the distances are: kernels are compiled once
    x, y = (distance.x, distance.y) if tall else (flat[:1], flat)
    rows, cores = len(rate), machine.size
    out_ptr = starts(np.bincount(source, minlength=vertices.n))
    none = np.zeros(0, np.int64)
    room = Room(
        vertices.sizes, np.array(problem.capacity), np.zeros(problem.capacity.shape, np.int64), vertices.domain_of,
        np.array(problem.domains),
        vertices.apart_ptr, vertices.apart, np.zeros(vertices.n, np.int64), none, none, none, vertices.kind_of,
        kinds_of(problem)[1] if len(vertices.kind_of) else unlimited(),
    )  # fmt: skip
    return NetTables(
        rate=rate,
        out_ptr=out_ptr,
        out_row=np.argsort(source, kind="stable").astype(np.int32),
        x=x,
        y=y,
        step=distance.step,
        unit=price_unit(x, y, distance.step),
        pairs=pairs,
        room=room,
        origin=np.zeros(rows, np.int32),
        hits=np.zeros((rows, cores), np.uint16 if vertices.n < 2**16 else np.int32),
        fan=np.zeros(rows, np.int32),
        lone=np.zeros(rows, np.int32),
        low=np.zeros((rows, len(x)), np.int16),
        high=np.zeros((rows, len(x)), np.int16),
        span=np.zeros((rows, 2), np.int32),
        paid=np.zeros(rows),
        price=np.zeros((rows, _padded(cores) if priced else 0), np.uint8),
        busy=np.zeros(rows, np.uint8),
        inner=np.zeros(0, bool) if inner is None else inner,
        most=np.zeros(2, np.int64) if limits is None else np.array([limits.most_in, limits.most_out]),
        used=np.zeros((2, cores), np.int64),
        excess=np.zeros(1, np.int64),
    )


def price_unit(x: FloatArray, y: FloatArray, step: float) -> float:
    """1 where all prices are whole numbers up to 255, else the 255th part of the largest price there can be."""
    top = float(x[-1] - x[0] + y[-1] - y[0] + step)
    whole = all(bool((v == np.rint(v)).all()) for v in (x, y, np.array([step])))
    return 1.0 if (whole and top <= TOP) or top <= 0.0 else top / TOP


def new_work(t: NetTables) -> Work:
    """Scratch space for the kernels."""
    cols, rows, cores = len(t.x), len(t.y), t.hits.shape[1]
    wide = np.zeros(t.price.shape[1], np.float32)
    return Work(
        np.zeros(cores), np.zeros(cols), wide, np.zeros(rows), np.zeros(cols), np.zeros(cols), np.zeros(cols),
        np.zeros(cores, np.int32), np.zeros(cores, np.int32),
    )  # fmt: skip


def reset(t: NetTables, source: Int32Array, core: AnyArray) -> None:
    """Put the vertices on ``core`` (n,), with no hits; ``source`` (rows,) is the vertex in which each row starts."""
    t.room.core[:] = core
    t.origin[:] = t.room.core[source]
    t.room.load[:] = 0
    np.add.at(t.room.load, t.room.core, t.room.sizes)
    recount(t.room.kinds, t.room.kind_of, t.room.core)
    t.hits[:] = 0


@plain
def pair_cost(t: NetTables) -> float:
    """What all pairs cost."""
    total = 0.0
    for v in range(len(t.pairs.ptr) - 1):
        total += 0.5 * pairs_at(t, v, t.room.core[v])
    return total


@plain
def pairs_at(t: NetTables, v: int, p: int) -> float:
    """What the pairs of vertex ``v`` would cost with it on core ``p``."""
    cols, total = len(t.x), 0.0
    ptr, other, weight, core, x, y = t.pairs.ptr, t.pairs.other, t.pairs.weight, t.room.core, t.x, t.y
    for i in range(ptr[v], ptr[v + 1]):
        q = core[other[i]]
        if other[i] != v and q != p:
            total += weight[i] * (t.step + abs(x[p % cols] - x[q % cols]) + abs(y[p // cols] - y[q // cols]))
    return total


@plain
def count_hits(t: NetTables, piece: Piece, first: int, last: int) -> None:
    """Count the lists of a block for the rows ``first`` to ``last - 1``."""
    data, base, at = piece.data, piece.base, piece.at
    hits = t.hits
    for v in range(piece.first, piece.last):
        p = t.room.core[v]
        k, stop, row = at[v] - base, at[v + 1] - base, -1
        while k < stop:
            gap, k = next_gap(data, k)
            row += gap + 1
            if row >= last:
                break
            if row >= first:
                hits[row, p] += 1


@plain
def fill_rows(t: NetTables, s: Work, first: int, last: int) -> float:
    """Work out everything else from the hits of rows ``first`` to ``last - 1``; what they cost together."""
    total, cols = 0.0, len(t.x)
    for row in range(first, last):
        t.low[row, :] = 32767
        t.high[row, :] = -1
        fan, lone, p = 0, 0, 0
        for i in range(len(t.y)):
            for c in range(cols):
                many = t.hits[row, p]
                if many > 0:
                    fan += 1
                    lone += many == 1
                    t.low[row, c] = min(t.low[row, c], i)
                    t.high[row, c] = i
                p += 1
        t.fan[row], t.lone[row], t.busy[row] = fan, lone, 0
        if lone > 0:
            t.busy[row] |= LONE
        if t.rate[row] > 0.0:
            total += t.rate[row] * price_row(t, s, row)
    return total


def fill(t: NetTables, s: Work, source: Int32Array, data: AnyArray, at: IntArray) -> float:
    """Work out all tables from ``t.room.core``, in which every vertex is; the objective. Lists as in :class:`Piece`."""
    t.origin[:] = t.room.core[source]
    t.hits[:] = 0
    count_hits(t, Piece(0, len(at) - 1, 0, at, data), 0, len(t.rate))
    return float(fill_rows(t, s, 0, len(t.rate)) + pair_cost(t))


@plain
def tree(t: NetTables, row: int, origin: int) -> tuple[float, int, int]:
    """Cost per message of ``row`` if its source were on core ``origin``; first and last column of the tree."""
    cols = len(t.x)
    low, high = t.low, t.high
    line = origin // cols
    first = final = origin % cols
    down = 0.0
    for c in range(cols):
        if high[row, c] >= 0:
            first, final = min(first, c), max(final, c)
            down += t.y[max(line, high[row, c])] - t.y[min(line, low[row, c])]
    remote = t.fan[row] - (t.hits[row, origin] > 0)
    return t.step * remote + t.x[final] - t.x[first] + down, first, final


@plain
def price_row(t: NetTables, s: Work, row: int) -> float:
    """Bring cost and prices (if there are any) of ``row`` up to date; returns its cost per message."""
    cols, o = len(t.x), t.origin[row]
    line = o // cols
    cost, first, final = tree(t, row, o)
    t.paid[row], t.span[row, 0], t.span[row, 1] = cost, first, final
    if t.price.shape[1] == 0:
        return float(cost)
    x, y, price, hits, unit = t.x, t.y, t.price, t.hits, t.unit
    top, bottom, across = s.top, s.bottom, s.across
    for c in range(cols):
        some = t.high[row, c] >= 0
        top[c] = y[min(line, t.low[row, c])] if some else y[line]
        bottom[c] = y[max(line, t.high[row, c])] if some else y[line]
        across[c] = max(0.0, x[first] - x[c]) + max(0.0, x[c] - x[final])
    most = 0.0
    scale = 1.0 / unit
    for i in range(len(y)):
        for c in range(cols):
            p = i * cols + c
            extra = max(0.0, top[c] - y[i]) + max(0.0, y[i] - bottom[c]) + across[c]
            if t.step > 0.0 and p != o and hits[row, p] == 0:
                extra += t.step
            most = max(most, extra)
            price[row, p] = np.uint8(
                min(255.0, np.ceil(extra * scale - 1e-6))
            )  # 0 only for what really is free
    t.busy[row] = (t.busy[row] & LONE) | (PRICED if most > 0.0 else np.uint8(0))
    return float(cost)
