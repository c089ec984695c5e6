"""One pass over all vertices of a level: threads propose moves from frozen tables, one accepts them in order.

A batch is some vertices of one block. Every random number is a hash of seed, pass and vertex, batches depend on the
lists alone, and proposals are taken in the order of the vertices: the answer does not depend on how many threads work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.heuristics.mapping.nets.axons import (
    IN,
    OUT,
    STRICT,
    alone,
    charge,
    count_entries,
    entries,
    newcomers,
    outgoing,
    relief,
    rise,
    swapped,
)
from nmsolve.heuristics.mapping.nets.incidence import Incidence, Piece, at_once, unpack
from nmsolve.heuristics.mapping.nets.moves import one_change, shift, weigh
from nmsolve.heuristics.mapping.nets.state import (
    NetTables,
    Work,
    count_hits,
    fill_rows,
    new_work,
    pair_cost,
    reset,
)
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: A batch has about this many (vertex, row) pairs, and at most this share of the level's vertices.
BATCH, SHARE = 400_000, 0.01
#: The vertices of a block are sorted by core again after at most this many batches.
SORTED = 8
#: A batch with less than this many prices to add up is not worth waking other threads (on 8x8 cores a second one takes 130 us in
#: place of 137 for 224,000, 230 in place of 330 for 450,000, and 105 in place of 73 for 112,000).
ALONE = 200_000
#: Partners tried for a vertex that wants to go to a full core.
PARTNERS = 2


@embedded
def draw(key: int, v: int, turn: int) -> float:
    """Random number in [0, 1) that depends on ``key`` (seed and pass), vertex and turn alone (splitmix64)."""
    bits = mix(np.uint64(key) + np.uint64(v) * STEP + np.uint64(turn) * np.uint64(0xD1B54A32D192ED03))
    return float(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


class Crowds(NamedTuple):
    """The vertices of a block by core: those of core ``p`` are ``members[start[p]:start[p + 1]]``."""

    members: Int32Array
    start: IntArray


@plain
def by_core(core: IntArray, first: int, last: int, crowds: Crowds) -> None:
    """Sort the vertices ``first`` to ``last - 1`` by their cores into ``crowds``."""
    members, start = crowds.members, crowds.start
    start[:] = 0
    for v in range(first, last):
        start[core[v]] += 1
    for p in range(1, len(start)):
        start[p] += start[p - 1]
    for v in range(last - 1, first - 1, -1):
        start[core[v]] -= 1
        members[start[core[v]]] = v


class Turn(NamedTuple):
    """How a pass judges moves for a while: its temperature, its ``key`` of random numbers, and the price of an entry too many
    in an axon table."""

    heat: float
    key: int
    price: float


class Proposals(NamedTuple):
    """By vertex: ``goal``, the core to go to (-1: none), ``partner`` to swap with (-1: none), ``limit`` of the change that is
    accepted, and ``change``, what the tables say it will be."""

    goal: Int32Array
    partner: Int32Array
    limit: FloatArray
    change: FloatArray


@plain
def propose(
    t: NetTables, s: Work, piece: Piece, begin: int, end: int, turn: Turn, crowds: Crowds, rows: Int32Array, wants: Proposals,
) -> None:  # fmt: skip
    """Proposals for vertices ``begin`` to ``end - 1``.

    Each accepts changes up to a limit (Metropolis: ``-heat * log(random)``; improvements only for ``heat`` 0) and
    wants to go to a random core within it; to a full one only if a random vertex of it in the block (``crowds``)
    makes the sum small enough when they swap. Every entry too many in an axon table costs a price on top.
    """
    data, base, at = piece.data, piece.base, piece.at
    members, start, goal = crowds.members, crowds.start, wants.goal
    partner, limit, change = wants.partner, wants.limit, wants.change
    heat, key, price = turn
    limited = len(t.inner) > 0
    for v in range(begin, end):
        goal[v], partner[v] = -1, -1
        many = unpack(data, at[v] - base, at[v + 1] - base, rows)
        weigh(t, s, v, rows[:many])
        limit[v] = -heat * np.log(draw(key, v, 0) + 1e-300) - 1e-9
        here = t.room.core[v]
        other = choose(t, s, v, rows[:many], limit[v], price, key)
        if other < 0:
            continue
        first = s.fine[other]
        own = entries(t, v, other, rows[:many]) if limited else (0, 0, 0, 0, 0)
        more = alone(t, here, other, own) if limited else 0
        if fits(t.room, v, other, -1) and first + charge(t, price, more) <= limit[v]:
            goal[v], change[v] = other, first
            continue
        for k in range(PARTNERS):
            crowd = start[other + 1] - start[other]
            if crowd == 0:
                break
            u = members[start[other] + int(draw(key, v, -1 - k) * crowd)]
            if t.room.core[u] != other or not (fits(t.room, v, other, u) and fits(t.room, u, here, v)):
                continue
            many = unpack(data, at[u] - base, at[u + 1] - base, rows)
            both = first + one_change(t, s, u, here, rows[:many])
            more = swapped(t, here, other, own, entries(t, u, here, rows[:many])) if limited else 0
            if both + charge(t, price, more) <= limit[v]:
                goal[v], partner[v], change[v] = other, u, both
                break


@plain
def choose(t: NetTables, s: Work, v: int, rows: Int32Array, limit: float, price: float, key: int) -> int:
    """A random core to which a move of ``v`` changes ``s.fine`` and axon tables by at most ``limit``, -1 if there is none.

    Where axon tables have no room anywhere, a core that would do without them, for swaps.
    """
    limited = len(t.inner) > 0
    less, sent = 0, 0
    if limited:
        newcomers(t, s, rows)
        less, sent = relief(t, v, rows), outgoing(t, v)
    wish = limit
    if less > 0 and price > 0.0:
        wish += price * less
    other, some, crowded, many = -1, 0, -1, 0
    for q in range(t.hits.shape[1]):
        if s.fine[q] > wish or q == t.room.core[v] or not t.room.domains[t.room.domain_of[v], q]:
            continue
        if limited:
            more = rise(t, IN, q, s.new[q]) + rise(t, OUT, q, sent) + s.aside[q] - less
            if s.fine[q] + charge(t, price, more) > limit:
                many += 1
                if draw(key, v, q + 1) * many < 1.0:
                    crowded = q
                continue
        some += 1
        if draw(key, v, q + 1) * some < 1.0:
            other = q
    return other if some > 0 else crowded


@plain
def accept(
    t: NetTables,
    s: Work,
    piece: Piece,
    begin: int,
    end: int,
    rows: Int32Array,
    wants: Proposals,
    tally: IntArray,
    price: float,
) -> float:
    """Make the proposals that still fit and still pay by the live tables; the change of the objective.

    Every entry too many in an axon table costs ``price`` on top; once there is none, none comes.

    ``tally`` counts [proposals, moves and swaps made, taken back].
    """
    data, base, at = piece.data, piece.base, piece.at
    goal, partner, limit = wants.goal, wants.partner, wants.limit
    total = 0.0
    for v in range(begin, end):
        q, u = goal[v], partner[v]
        if q < 0:
            continue
        tally[0] += 1
        p = t.room.core[v]
        if p == q or not fits(t.room, v, q, u):
            continue
        if u >= 0 and (t.room.core[u] != q or not fits(t.room, u, p, v)):
            continue
        many = unpack(data, at[v] - base, at[v + 1] - base, rows)
        before = t.excess[0]
        paid = price if before > 0 else STRICT
        change = shift(t, s, v, q, rows[:many])
        if u >= 0:
            many = unpack(data, at[u] - base, at[u + 1] - base, rows)
            change += shift(t, s, u, p, rows[:many])
        more = t.excess[0] - before
        if change + (paid * more if more != 0 else 0.0) <= limit[v]:
            total += change
            tally[1] += 1
            continue
        tally[2] += 1
        if u >= 0:
            change += shift(t, s, u, q, rows[:many])
            many = unpack(data, at[v] - base, at[v + 1] - base, rows)
        change += shift(t, s, v, p, rows[:many])
        total += change
    return total


@plain
def visit(
    t: NetTables, s: Work, piece: Piece, begin: int, end: int, size: int, turn: Turn, crowds: Crowds, rows: Int32Array,
    wants: Proposals, tally: IntArray,
) -> float:  # fmt: skip
    """:func:`propose` and :func:`accept` for vertices ``begin`` to ``end - 1`` in batches of ``size``; the change made."""
    total = 0.0
    for first in range(begin, end, size):
        last = min(end, first + size)
        propose(t, s, piece, first, last, turn, crowds, rows, wants)
        total += accept(t, s, piece, first, last, rows, wants, tally, turn.price)
    return total


def sweep_work(lists: Incidence, cores: int, first: int = 0, last: int | None = None) -> int:
    """Work of visits to vertices ``first`` to ``last - 1`` (all): as measured, by the bytes of their lists and by cores."""
    last = lists.n if last is None else last
    read = int(lists.at[last] - lists.at[first])
    return (read * (32 + cores) + (last - first) * (512 + 4 * cores)) // 32


class Sweeper:
    """Passes over one level with ``workers`` threads.

    Attributes
    ----------
    cost : objective of the mapping in the tables, kept up to date exactly (up to rounding of sums)
    tally : proposals, moves made, moves taken back
    done : work of all sweeps (:func:`sweep_work`)
    """

    def __init__(
        self, tables: NetTables, lists: Incidence, source: Int32Array, seed: int, workers: int,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self.tables, self.lists, self.source, self.workers = tables, lists, source, workers
        self.should_stop, self.seed, self.turn = should_stop, seed, 0
        self.pool = ThreadPoolExecutor(workers)
        self.scratch = [new_work(tables) for _ in range(workers)]
        longest = int(np.diff(lists.at).max(initial=0)) + 1
        self.rows = [np.zeros(longest, np.int32) for _ in range(workers)]
        whole, real = np.zeros((2, lists.n), np.int32), np.zeros((2, lists.n))
        self.wants = Proposals(whole[0], whole[1], real[0], real[1])
        self.tally = np.zeros(3, np.int64)
        self.cost, self.done = 0.0, 0

    def __enter__(self) -> Sweeper:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown()

    def put(self, core: AnyArray) -> bool:
        """Put the level on ``core`` (n,) and fill all tables; False if stopped before they are full."""
        reset(self.tables, self.source, core)

        def count(piece: Piece, _: int, low: int, high: int) -> None:
            count_hits(self.tables, piece, low, high)

        for first, last in self.lists.pieces():
            if self.should_stop():
                return False
            at_once(
                self.pool,
                self.workers,
                0,
                len(self.tables.rate),
                partial(count, self.lists.read(first, last)),
            )
        self.refresh()
        count_entries(self.tables)
        return True

    def refresh(self) -> None:
        """Recompute all prices and the cost."""
        rows = len(self.tables.rate)
        cuts = np.linspace(0, rows, min(rows, 64) + 1).astype(np.int64).tolist()
        groups = [range(k, len(cuts) - 1, self.workers) for k in range(self.workers)]

        def work(k: int) -> list[float]:
            return [float(fill_rows(self.tables, self.scratch[k], cuts[i], cuts[i + 1])) for i in groups[k]]

        parts = [job.result() for job in [self.pool.submit(work, k) for k in range(self.workers)]]
        sums = np.zeros(len(cuts) - 1)
        for group, part in zip(groups, parts, strict=True):
            sums[list(group)] = part
        self.cost = float(sums.sum()) + pair_cost(self.tables)

    @property
    def excess(self) -> int:
        """Entries too many in the axon tables; 0 where these are not limited."""
        return int(self.tables.excess[0])

    def sweep(self, heat: Callable[[], float], price: Callable[[], float] = float) -> bool:
        """Visit every vertex once, block by block, each at the temperature of its moment; False if stopped.

        ``price`` is that of an entry too many in an axon table, while there are some.
        """
        pieces = self.lists.pieces()
        seed = self.seed & (2**63 - 1)
        key = int(np.random.SeedSequence([seed, self.turn]).generate_state(1, np.uint64)[0] >> np.uint64(1))
        order = np.random.default_rng([seed, self.turn]).permutation(len(pieces))
        self.turn += 1
        for k in order.tolist():
            piece = self.lists.read(*pieces[k])
            if not self.block(piece, heat, key, price):
                return False
        return True

    def block(
        self, piece: Piece, heat: Callable[[], float], key: int, price: Callable[[], float] = float
    ) -> bool:
        """Visit the vertices of a block, batch by batch; False if stopped."""
        first, last = piece.first, piece.last
        each = max(1, int(self.lists.at[last] - self.lists.at[first]) // max(1, last - first))
        size = int(max(1, min(BATCH // each, SHARE * self.lists.n)))
        many = max(1, min(BATCH // (each * size), SORTED))
        crowds = self.crowds(piece)
        for begin in range(first, last, many * size):
            if self.should_stop():
                return False
            end = min(last, begin + many * size)
            by_core(self.tables.room.core, first, last, crowds)
            self.batches(piece, begin, end, size, Turn(heat(), key, price()), crowds)
            self.done += sweep_work(self.lists, len(self.tables.room.load), begin, end)
        return True

    def batches(self, piece: Piece, begin: int, end: int, size: int, turn: Turn, crowds: Crowds) -> None:
        """Visit vertices ``begin`` to ``end - 1`` in batches of ``size``: by all threads where that pays."""
        t, s, rows = self.tables, self.scratch[0], self.rows[0]
        each = int(self.lists.at[end] - self.lists.at[begin]) // (end - begin) * t.hits.shape[1]
        if self.workers == 1 or each * size < ALONE:
            self.cost += visit(t, s, piece, begin, end, size, turn, crowds, rows, self.wants, self.tally)
            return
        for first in range(begin, end, size):
            last = min(end, first + size)
            self.propose(piece, first, last, turn, crowds)
            self.cost += accept(t, s, piece, first, last, rows, self.wants, self.tally, turn.price)

    def crowds(self, piece: Piece) -> Crowds:
        """The vertices of a block by core."""
        out = Crowds(
            np.zeros(piece.last - piece.first, np.int32), np.zeros(len(self.tables.room.load) + 1, np.int64)
        )
        by_core(self.tables.room.core, piece.first, piece.last, out)
        return out

    def propose(self, piece: Piece, begin: int, end: int, turn: Turn, crowds: Crowds) -> None:
        """Proposals of vertices ``begin`` to ``end - 1`` of a block, by all threads."""

        def work(k: int, first: int, last: int) -> None:
            s, rows = self.scratch[k], self.rows[k]
            propose(self.tables, s, piece, first, last, turn, crowds, rows, self.wants)

        at_once(self.pool, self.workers, begin, end, work)

    def neutral_heat(self, sample: int = 2000) -> float:
        """The temperature at which the moves that a sample of vertices wants leave the cost as it is; 0 if none.

        Judged from frozen tables: the hottest of a falling series (factors of 2, then bisected) whose proposals
        do not add up to a rise.
        """
        piece = self.lists.read(*self.lists.pieces()[0])
        end, crowds = min(piece.last, piece.first + sample), self.crowds(piece)

        def growth(heat: float) -> float:
            self.propose(piece, piece.first, end, Turn(heat, self.seed, 0.0), crowds)
            going = self.wants.goal[piece.first : end] >= 0
            return float(self.wants.change[piece.first : end][going].sum())

        share = self.cost / max(1, self.lists.n)
        high = share
        for _ in range(20):
            if growth(high) <= 0.0 or self.should_stop():
                break
            high *= 0.5
        else:
            return 0.0
        low, high = high, 2.0 * high
        for _ in range(3):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if growth(middle) <= 0.0 else (low, middle)
        return low
