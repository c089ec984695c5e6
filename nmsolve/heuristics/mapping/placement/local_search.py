"""A placement that can be annealed and polished: one form with position tables, one with plain neighbour lists.

Work is counted in nominal nanoseconds (``work``), from proposals and neighbour entries at fixed rates measured on one
core of a 2025 server, so that a budget of work gives the same answer on every machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.placement.anneal_direct import Direct, Links, anneal_direct, descend_direct
from nmsolve.heuristics.mapping.placement.anneal_table import anneal_table, descend_table
from nmsolve.heuristics.mapping.placement.blocks import new_round, search_blocks
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost
from nmsolve.heuristics.mapping.placement.proposals import QUANTILES, scramble
from nmsolve.heuristics.mapping.placement.tables import Grid, Net, Seats, Tabled, Tables, build_tables
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.types import FloatArray, IntArray, read_only

#: Tables are used up to this many bytes for lines and neighbour bits; beyond, the caches no longer hold them.
TABLE_BYTES = 2**24
#: Entries of ``stats``: proposals, accepted, neighbour entries, change of cost, lines moved.
STATS = 5
#: Work of a slice of proposals, nominal ns; far below the 0.2 s after which engines must ask whether to stop.
SLICE = 2e7
#: Nominal ns of a proposal and of a made move on tables; the updates of neighbours come on top.
PROPOSAL, ACCEPTED = 5.5, 100.0
#: Exchanges that a visit to a core proposes; side of the tiles in whose order cores are visited, so that the tables of what is
#: near lie in the first-level cache.
TRIES, TILE = 8, 8
#: Nominal ns of a round of block moves, and of the repair around each of its swaps.
ROUND, REPAIRED = 2000.0, 600.0
#: Large moves, in the order of :func:`block_move`.
BLOCKS = ("strip", "block swap", "mirror")
#: Nominal ns per node of forgetting a placement.
SCRAMBLED = 200.0
#: Rebuild the tables after this many slices, to clear rounding.
REBUILD = 25


class LocalSearch(ABC):
    """A placement under search; :meth:`place` must be called before anything else.

    Attributes
    ----------
    data : the problem
    work : what was spent so far, in nominal ns
    """

    def __init__(self, data: PlacementData, seed: int) -> None:
        self.data, self.work = data, 0.0
        self._rng = new_rng(seed, 1)
        self._order, self._at = tiled(data), 0
        self._grid = Grid(data.dx, data.dy, data.wrap_x, data.wrap_y, data.domain, data.domains)

    def core(self) -> IntArray:
        """Return (n,) int64 core of every node now."""
        return self._seats.cy.astype(np.int64) * self.data.cols + self._seats.cx

    def place(self, core: IntArray) -> None:
        """Take another placement ``core`` (n,)."""
        node = np.full(self.data.cores, -2, np.int32)
        node[self.data.free] = -1
        node[core] = np.arange(self.data.n)
        row, col = np.divmod(core, self.data.cols)
        self._seats = Seats(node, col.astype(np.int32), row.astype(np.int32))
        self._build()

    def scramble(self) -> None:
        """Forget the placement: random permitted moves and swaps, ten per node."""
        scramble(10 * self.data.n, self._rng, self._grid, self._seats)
        self.work += SCRAMBLED * self.data.n
        self._build()

    def anneal(self, steps: int, temperature: float, reach: int) -> FloatArray:
        """Propose about ``steps`` moves and swaps; returns the counts named at ``STATS`` for this call."""
        stats, visits, first = np.zeros(STATS), max(1, steps // TRIES), self._at
        self._at = (first + visits) % len(self._order)
        self._anneal(first, visits, temperature, reach, stats)
        return stats

    def descend(self, should_stop: Callable[[], bool]) -> None:
        """Move and swap to a local optimum (up to the rounding of what prices come from)."""
        n, reach, least = self.data.n, self._descent_reach(), self._rounding()
        near = min(self.data.cores, (2 * reach + 1) ** 2)
        per_call, per_node = self._descent_work(near)
        chunk, made = max(1, int(per_call)), 1
        while made:
            self._build()
            made = 0
            for first in range(0, n, chunk):
                end = min(n, first + chunk)
                made += self._descend(first, end, reach, least)
                self.work += (end - first) * per_node
                if should_stop():
                    return

    def _descent_reach(self) -> int:
        """Return how many lines to either side that a descent looks at: the whole board up to 2,000 cores or without geometry."""
        data = self.data
        if data.cores <= 2000 or (data.rows == 1 and not data.separable):
            return max(data.rows, data.cols)
        return 16

    def kinds(self) -> tuple[str, ...]:
        """Return the large moves it can make: names for ``large_moves``."""
        return ()

    def large_moves(self, kind: str, rounds: int) -> float:
        """Try ``rounds`` large moves of one kind and keep those that gain; the change of cost.

        Raises
        ------
        ValueError : this search has no tables, which large moves need
        """
        raise ValueError(f"{kind}, {rounds} rounds: there are no large moves without tables")

    @abstractmethod
    def _anneal(self, first: int, visits: int, temperature: float, reach: int, stats: FloatArray) -> None:
        """Visit this many cores from number ``first`` in the order on; add to ``stats`` and to the work."""

    @abstractmethod
    def _build(self) -> None:
        """Bring what prices come from up to date."""

    @abstractmethod
    def _rounding(self) -> float:
        """A price below minus this is a gain and not a rounding error."""

    @abstractmethod
    def _descent_work(self, near: int) -> tuple[float, float]:
        """Return nodes per kernel call, and nominal ns per node, of a descent that looks at ``near`` cores for every node."""

    @abstractmethod
    def _descend(self, first: int, end: int, reach: int, least: float) -> int:
        """Make the best gaining move or swap of each node from ``first`` to ``end - 1``; return how many were made."""


def new_local_search(data: PlacementData, seed: int) -> LocalSearch:
    """Return the faster search for this problem."""
    size = data.n * (data.rows + data.cols) * 4 + data.n * data.n // 8
    if data.separable and size <= TABLE_BYTES:
        return TableSearch(data, seed)
    return DirectSearch(data, seed)


class TableSearch(LocalSearch):
    """Separable distances by position tables: proposals cost the same whatever the degree."""

    def __init__(self, data: PlacementData, seed: int) -> None:
        super().__init__(data, seed)
        self._net = Net(data.indptr, data.indices, data.weights.astype(np.float32))
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

    def _state(self) -> Tabled:
        return Tabled(self._net, self._grid, self._seats, self._tables)

    def _build(self) -> None:
        build_tables(self._state())
        d = self.data
        self.work += len(d.indices) * 4.0 + d.n * min(d.degree, d.rows + d.cols) * (d.rows + d.cols) * 0.15

    def _anneal(self, first: int, visits: int, temperature: float, reach: int, stats: FloatArray) -> None:
        self._slices += 1
        if self._slices % REBUILD == 0:
            self._build()
        order, heat = self._order, np.float32(temperature)
        anneal_table(self._state(), order, first, visits, TRIES, heat, reach, self._rng, QUANTILES, stats)
        self.work += self._per_proposal * float(stats[0]) + self._per_accepted * float(stats[1])
        self.work += self._per_entry * float(stats[2])

    def _descent_work(self, near: int) -> tuple[float, float]:
        return 1e7 / (15 * near), near * PROPOSAL

    def _descend(self, first: int, end: int, reach: int, least: float) -> int:
        made: int = descend_table(self._state(), first, end, reach, least)
        return made

    def kinds(self) -> tuple[str, ...]:
        """Return the large moves it can make: moves of blocks."""
        return BLOCKS

    def large_moves(self, kind: str, rounds: int) -> float:
        """Try ``rounds`` large moves of one kind and keep those that gain; the change of cost."""
        per_swap = self._per_accepted + self._per_entry * 2 * self.data.degree
        self._slices += 1
        if self._slices % REBUILD == 0:
            self._build()
        stats = np.zeros(4)
        search_blocks(
            self._state(), BLOCKS.index(kind), rounds, self._rounding(), self._rng, self._round, stats
        )
        self.work += float(stats[0]) * ROUND + float(stats[2]) * (per_swap + REPAIRED)
        return float(stats[3])

    def _rounding(self) -> float:
        return 1e-6 * float(np.abs(self._tables.lines).max(initial=0.0)) + 1e-9


class DirectSearch(LocalSearch):
    """Any distances, O(degree) per proposal; moves of blocks need tables to be cheap."""

    def __init__(self, data: PlacementData, seed: int) -> None:
        super().__init__(data, seed)
        across = data.matrix if data.symmetric else read_only(data.matrix.T)
        self._links = Links(
            data.indptr, data.indices, data.weights, data.out, data.back, data.matrix, across, data.symmetric
        )
        self._per_proposal = 15.0
        self._per_entry = 2.5 if data.symmetric else 4.5

    def _state(self) -> Direct:
        return Direct(self._links, self._grid, self._seats)

    def _anneal(self, first: int, visits: int, temperature: float, reach: int, stats: FloatArray) -> None:
        if self.data.rows == 1 and not self.data.separable:
            reach = self.data.cols  # core numbers say nothing about distance
        order, heat = self._order, float(temperature)
        anneal_direct(self._state(), order, first, visits, TRIES, heat, reach, self._rng, QUANTILES, stats)
        self.work += self._per_proposal * float(stats[0]) + self._per_entry * float(stats[2])

    def _build(self) -> None:
        """Prices come from the neighbours alone."""

    def _rounding(self) -> float:
        return 1e-9 * float(self.data.weights.sum()) / self.data.n + 1e-12

    def _descent_work(self, near: int) -> tuple[float, float]:
        degree = self.data.degree
        return 2e7 / (near * (10 + 4 * degree)), near * (10 + 2 * self._per_entry * degree)

    def _descend(self, first: int, end: int, reach: int, least: float) -> int:
        made: int = descend_direct(self._state(), first, end, reach, least)
        return made


def _neighbour_bits(data: PlacementData) -> IntArray:
    """Return (n, words) int64: bit v of row u is set if u and v are neighbours."""
    bits = np.zeros((data.n, (data.n + 63) // 64), np.uint64)
    row = np.repeat(np.arange(data.n), np.diff(data.indptr))
    np.bitwise_or.at(bits, (row, data.indices >> 6), np.uint64(1) << (data.indices & 63).astype(np.uint64))
    return bits.view(np.int64)


def search_cost(search: LocalSearch) -> float:
    """Return the exact cost of where the search is."""
    return placement_cost(search.data, search.core())


def tiled(data: PlacementData) -> IntArray:
    """Return (P,) int64 usable cores, tile by tile."""
    row, col = np.divmod(data.free, data.cols)
    return data.free[np.lexsort((col, row, col // TILE, row // TILE))]
