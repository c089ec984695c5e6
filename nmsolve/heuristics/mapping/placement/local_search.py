"""A placement that can be annealed and polished: one form with position tables, one with plain neighbour lists.

Work is counted in nominal nanoseconds (``work``), from proposals and neighbour entries at fixed rates measured on one
core of a 2025 server, so that a budget of work gives the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.placement.anneal_direct import Links, anneal_direct, descend_direct
from nmsolve.heuristics.mapping.placement.anneal_table import anneal_table, descend_table
from nmsolve.heuristics.mapping.placement.blocks import new_round, search_blocks
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost
from nmsolve.heuristics.mapping.placement.proposals import QUANTILES, scramble
from nmsolve.heuristics.mapping.placement.tables import Grid, Net, Seats, Tables, build_tables
from nmsolve.model.types import FloatArray, IntArray, read_only

#: Tables are used up to this many bytes for lines and neighbour bits; beyond, the caches no longer hold them.
TABLE_BYTES = 2**24
#: Entries of ``stats``: proposals, accepted, neighbour entries, change of cost, lines moved.
STATS = 5
#: Work of a slice of proposals, nominal ns; far below the 0.2 s after which engines must ask whether to stop.
SLICE = 2e7
#: Nominal ns of a proposal and of a made move on tables; the updates of neighbours come on top.
PROPOSAL, ACCEPTED = 9.0, 100.0
#: Nominal ns of a round of block moves, and of the repair around each of its swaps.
ROUND, REPAIRED = 2000.0, 600.0
#: Large moves, in the order of :func:`block_move`.
BLOCKS = ("strip", "block swap", "mirror")
#: Nominal ns per node of forgetting a placement.
SCRAMBLED = 200.0
#: Rebuild the tables after this many slices, to clear rounding.
REBUILD = 25


class LocalSearch(Protocol):
    """A placement under search. ``work`` is what was spent so far, in nominal ns."""

    data: PlacementData
    work: float

    def core(self) -> IntArray:
        """(n,) int64 core of every node now."""

    def place(self, core: IntArray) -> None:
        """Take another placement."""

    def scramble(self) -> None:
        """Forget the placement: random permitted moves and swaps, ten per node."""

    def anneal(self, steps: int, temperature: float, reach: int) -> FloatArray:
        """Propose moves and swaps; returns the counts named at ``STATS`` for this call."""

    def descend(self, should_stop: Callable[[], bool]) -> None:
        """Moves and swaps to a local optimum."""

    def kinds(self) -> tuple[str, ...]:
        """The large moves it can make: names for ``large_moves``."""

    def large_moves(self, kind: str, rounds: int) -> float:
        """Try ``rounds`` large moves of one kind and keep those that gain; the change of cost."""


def new_local_search(data: PlacementData, seed: int) -> LocalSearch:
    """The faster search for this problem. ``place`` must be called before anything else."""
    size = data.n * (data.rows + data.cols) * 4 + data.n * data.n // 8
    if data.separable and size <= TABLE_BYTES:
        return TableSearch(data, seed)
    return DirectSearch(data, seed)


def _grid(data: PlacementData) -> Grid:
    return Grid(data.dx, data.dy, data.wrap_x, data.wrap_y, data.domain, data.domains)


def _seats(data: PlacementData, core: IntArray) -> Seats:
    node = np.full(data.cores, -2, np.int32)
    node[data.free] = -1
    node[core] = np.arange(data.n)
    row, col = np.divmod(core, data.cols)
    return Seats(node, col.astype(np.int32), row.astype(np.int32))


def _core(seats: Seats, cols: int) -> IntArray:
    return seats.cy.astype(np.int64) * cols + seats.cx


def _links(data: PlacementData) -> Links:
    across = data.matrix if data.symmetric else read_only(data.matrix.T)
    return Links(
        data.indptr, data.indices, data.weights, data.out, data.back, data.matrix, across, data.symmetric
    )


class TableSearch:
    """Separable distances by position tables: proposals cost the same whatever the degree."""

    def __init__(self, data: PlacementData, seed: int) -> None:
        self.data, self.work = data, 0.0
        self._rng = new_rng(seed, 1)
        self._net = Net(data.indptr, data.indices, data.weights.astype(np.float32))
        self._grid = _grid(data)
        lines = data.rows + data.cols
        self._tables = Tables(
            np.zeros((data.n, lines), np.float32), _neighbour_bits(data), np.zeros(lines, np.float32)
        )
        self._round = new_round(data.n)
        self._slices = 0
        # Lines that overflow the second-level cache (1 MiB) take up to twice as long.
        spread = 1.0 + min(1.0, data.n * lines * 4 / 2**20)
        self._per_proposal, self._per_accepted = PROPOSAL * spread**0.5, ACCEPTED * spread
        self._per_entry = (1.0 + 0.045 * lines) * spread

    def core(self) -> IntArray:
        """(n,) int64 core of every node now."""
        return _core(self._seats, self.data.cols)

    def place(self, core: IntArray) -> None:
        """Take another placement."""
        self._seats = _seats(self.data, core)
        self._build()

    def scramble(self) -> None:
        """Forget the placement: random permitted moves and swaps, ten per node."""
        scramble(10 * self.data.n, self._rng, self._grid, self._seats)
        self.work += SCRAMBLED * self.data.n
        self._build()

    def _build(self) -> None:
        build_tables(self._net, self._grid, self._seats, self._tables)
        d = self.data
        self.work += len(d.indices) * 4.0 + d.n * min(d.degree, d.rows + d.cols) * (d.rows + d.cols) * 0.15

    def anneal(self, steps: int, temperature: float, reach: int) -> FloatArray:
        """Propose moves and swaps; returns the counts named at ``STATS`` for this call."""
        self._slices += 1
        if self._slices % REBUILD == 0:
            self._build()
        stats = np.zeros(STATS)
        anneal_table(
            steps,
            np.float32(temperature),
            reach,
            self._rng,
            QUANTILES,
            self._net,
            self._grid,
            self._seats,
            self._tables,
            stats,
        )
        self.work += self._per_proposal * steps + self._per_accepted * float(stats[1])
        self.work += self._per_entry * float(stats[2])
        return stats

    def descend(self, should_stop: Callable[[], bool]) -> None:
        """Moves and swaps to a local optimum, up to the rounding of the tables (1e-5 of a node's traffic)."""
        d = self.data
        reach = _descent_reach(d)
        least = self._rounding()
        chunk = max(1, int(1e7 / (15 * min(d.cores, (2 * reach + 1) ** 2))))
        made = 1
        while made:
            self._build()
            made = 0
            for first in range(0, d.n, chunk):
                end = min(d.n, first + chunk)
                made += descend_table(
                    first, end, reach, least, self._net, self._grid, self._seats, self._tables
                )
                self.work += (end - first) * min(d.cores, (2 * reach + 1) ** 2) * PROPOSAL / 2
                if should_stop():
                    return

    def kinds(self) -> tuple[str, ...]:
        """The large moves it can make: moves of blocks."""
        return BLOCKS

    def large_moves(self, kind: str, rounds: int) -> float:
        """Try ``rounds`` large moves of one kind and keep those that gain; the change of cost."""
        per_swap = self._per_accepted + self._per_entry * 2 * self.data.degree
        self._slices += 1
        if self._slices % REBUILD == 0:
            self._build()
        stats = np.zeros(4)
        search_blocks(
            BLOCKS.index(kind), rounds, self._rounding(), self._rng, self._net, self._grid, self._seats,
            self._tables, self._round, stats,
        )  # fmt: skip
        self.work += float(stats[0]) * ROUND + float(stats[2]) * (per_swap + REPAIRED)
        return float(stats[3])

    def _rounding(self) -> float:
        """A price below minus this is a gain and not a rounding error of the tables."""
        return 1e-6 * float(np.abs(self._tables.lines).max(initial=0.0)) + 1e-9


class DirectSearch:
    """Any distances, O(degree) per proposal."""

    def __init__(self, data: PlacementData, seed: int) -> None:
        self.data, self.work = data, 0.0
        self._rng = new_rng(seed, 1)
        self._grid = _grid(data)
        self._links = _links(data)
        self._per_proposal = 80.0
        self._per_entry = 2.5 if data.symmetric else 4.5

    def core(self) -> IntArray:
        """(n,) int64 core of every node now."""
        return _core(self._seats, self.data.cols)

    def place(self, core: IntArray) -> None:
        """Take another placement."""
        self._seats = _seats(self.data, core)

    def scramble(self) -> None:
        """Forget the placement: random permitted moves and swaps, ten per node."""
        scramble(10 * self.data.n, self._rng, self._grid, self._seats)
        self.work += SCRAMBLED * self.data.n

    def anneal(self, steps: int, temperature: float, reach: int) -> FloatArray:
        """Propose moves and swaps; returns the counts named at ``STATS`` for this call."""
        stats = np.zeros(STATS)
        if self.data.rows == 1 and not self.data.separable:
            reach = self.data.cols  # core numbers say nothing about distance
        anneal_direct(
            steps,
            float(temperature),
            reach,
            self._rng,
            QUANTILES,
            self._links,
            self._grid,
            self._seats,
            stats,
        )
        self.work += self._per_proposal * steps + self._per_entry * float(stats[2])
        return stats

    def descend(self, should_stop: Callable[[], bool]) -> None:
        """Moves and swaps to a local optimum."""
        d = self.data
        reach = _descent_reach(d)
        near = min(d.cores, (2 * reach + 1) ** 2)
        least = 1e-9 * float(d.weights.sum()) / d.n + 1e-12
        chunk = max(1, int(2e7 / (near * (10 + 4 * d.degree))))
        made = 1
        while made:
            made = 0
            for first in range(0, d.n, chunk):
                end = min(d.n, first + chunk)
                made += descend_direct(first, end, reach, least, self._links, self._grid, self._seats)
                self.work += (end - first) * near * (10 + 2 * self._per_entry * d.degree)
                if should_stop():
                    return

    def kinds(self) -> tuple[str, ...]:
        """None: moves of blocks need tables to be cheap."""
        return ()

    def large_moves(self, kind: str, rounds: int) -> float:
        """Nothing is tried; the change of cost is 0."""
        return 0.0


def _descent_reach(data: PlacementData) -> int:
    """Lines to either side that a descent looks at: the whole board up to 2,000 cores or without geometry."""
    if data.cores <= 2000 or (data.rows == 1 and not data.separable):
        return max(data.rows, data.cols)
    return 16


def _neighbour_bits(data: PlacementData) -> IntArray:
    """(n, words) int64: bit v of row u is set if u and v are neighbours."""
    bits = np.zeros((data.n, (data.n + 63) // 64), np.uint64)
    row = np.repeat(np.arange(data.n), np.diff(data.indptr))
    np.bitwise_or.at(bits, (row, data.indices >> 6), np.uint64(1) << (data.indices & 63).astype(np.uint64))
    return bits.view(np.int64)


def search_cost(search: LocalSearch) -> float:
    """Exact cost of where the search is."""
    return placement_cost(search.data, search.core())
