"""One pass over the levels: a mapping from scratch, a V-cycle inside one, or a combination of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.multilevel.bisect import split
from nmsolve.heuristics.mapping.multilevel.coarsen import coarser
from nmsolve.heuristics.mapping.multilevel.flow import refine_by_flow
from nmsolve.heuristics.mapping.multilevel.fm import refine_by_fm
from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph
from nmsolve.heuristics.mapping.multilevel.moves import (
    balance,
    border,
    cost,
    excess,
    new_state,
    refine_by_moves,
)
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.mapping.multilevel.tree import Tree
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.types import Int32Array, IntArray

#: Coarsening ends at this many nodes, or where a level keeps this part of the one below.
FEWEST, STUCK = 120, 0.95
#: Clusters take at most this many times the mean volume, more if nothing is matched, and this part of the whole.
GROWTH, MOST_GROWTH, LARGEST = 3.0, 60.0, 0.05
#: Blocks of coarse levels may hold their mean and this part of the heaviest node.
HEAVIEST = 0.6
#: Slack, tries and passes of one halving.
HALF_SLACK, TRIES, PASSES = 0.02, 6, 4
#: Rounds and boldness of two-phase moves, on the finest level and on coarser ones.
ROUNDS, BOLD = (8, 12), (0.25, 0.75)
#: Passes of FM, moves without gain, and seeds of a search; up to this many nodes more of each pays.
FM, FM_SMALL, SMALL = (4, 25, 4), (4, 40, 4), 20_000
#: Rounds of flows between pairs of blocks, and how far from the border they reach: steps, and part of a block's volume.
FLOW_ROUNDS, FLOW_STEPS, FLOW_WIDE = 2, 8, 0.3
#: Neighbours of a cluster, and how many times those of a node, that networks which separate do not have on any level.
MANY, MORE = 30.0, 4.0


class Found(NamedTuple):
    """A mapping, ordered by how good it is; ``over`` is 0 if it is feasible."""

    over: float
    cost: float
    pos: Int32Array


@dataclass(frozen=True)
class Style:
    """How a mapping from scratch is made.

    Attributes
    ----------
    join : whether clusters may have three nodes and more
    nodes_per_block : a region is halved once its halves have that many nodes on average
    starts : first mappings, of which the best is refined further
    fm : whether fine levels get FM, too
    moves : whether anything is refined at all, or regions only halved
    """

    join: bool = False
    nodes_per_block: int = 24
    starts: int = 8
    fm: bool = True
    moves: bool = True


class Cycle:
    """Passes over the levels of one graph on one tree of cores.

    Parameters
    ----------
    stop : asked before every step; then what is left is only what makes the mapping feasible
    flow : whether pairs of cores are refined by minimum cuts, too
    """

    def __init__(self, graph: Graph, tree: Tree, stop: Callable[[], bool], flow: bool = False) -> None:
        self.graph, self.tree, self._stop, self._flow = graph, tree, stop, flow
        self._total = graph.sizes.sum(axis=0)

    def from_scratch(self, style: Style, seed: int, threads: Threads) -> Found | None:
        """Return a new mapping; None if there was no time for any."""
        levels, labels = self._levels(style.join, seed, None, threads)
        if self._stop():
            return None
        tasks = [
            partial(self._first, levels, labels, style, seed * 1009, number) for number in range(style.starts)
        ]
        firsts = [first for first in threads.each(tasks) if first is not None]
        best = min(range(len(firsts)), key=lambda k: firsts[k][:2])
        _, _, at, pos = firsts[best]
        return self._up(levels, labels, at, pos, style, seed, threads)

    def crossings(self, seed: int, most: float) -> tuple[float, float] | None:
        """Return the part of the traffic that crosses between the two halves of the cores, and between all cores.

        In a first mapping on a coarse level, which takes a fifth of the time of a whole one. None if there was no time for it, or
        as soon as clusters get many more neighbours than nodes have, or more crosses between regions than this part for the root
        of how many they are (``most``).
        """
        total = max(1e-300, float(self.graph.weight.sum(dtype=np.float64)))
        many = max(MANY, MORE * len(self.graph.neighbour) / len(self.graph.volume))
        levels, labels = self._levels(False, seed, None, ALONE, many)
        g = levels[-1]
        if self._stop() or len(g.neighbour) > many * len(g.volume):
            return None
        first = self._first(levels, labels, Style(), seed, 1, most * total)
        if first is None:
            return None
        _, _, at, pos = first
        half = self.tree.divisions[0]
        return _crossing(levels[at], half[pos]) / total, _crossing(levels[at], pos) / total

    def within(self, pos: Int32Array, other: Int32Array | None, seed: int, threads: Threads) -> Found | None:
        """Return a mapping that begins with ``pos`` (n,): nodes that it separates are not clustered, nor those of ``other``.

        None if there was no time. It is better as a rule, but where cores are full to the last place clusters do not fit.
        """
        inside = pos
        if other is not None:
            both = pos.astype(np.int64) * len(self.tree.cores) + other
            inside = np.unique(both, return_inverse=True)[1].astype(np.int32)
        style = Style()
        levels, labels = self._levels(False, seed, inside, threads)
        if self._stop():
            return None
        coarse = pos
        for label, level in zip(labels, levels[1:], strict=True):
            coarse = projected(coarse, label, len(level.volume))
        coarse = coarse.copy()
        if labels:
            self._refined(levels[-1], -1, coarse, False, style, seed, threads)
        return self._up(levels, labels, len(labels), coarse, style, seed, threads)

    def improved(self, pos: Int32Array, seed: int, threads: Threads) -> Found:
        """Return what becomes of a mapping ``pos`` (n,) on the finest level alone."""
        pos = pos.copy()
        over, paid = self._refined(self.graph, -1, pos, True, Style(), seed, threads)
        return Found(over, paid, pos)

    def _levels(
        self, join: bool, seed: int, inside: Int32Array | None, threads: Threads, many: float = np.inf
    ) -> tuple[list[Graph], list[Int32Array]]:
        """Return the graphs from fine to coarse, and the clusters of each; no cluster holds nodes that differ in ``inside``.

        ``many`` : a level with more neighbours for a node is the last
        """
        levels, labels = [self.graph], []
        growth, whole = GROWTH, float(self.graph.volume.sum())
        least = FEWEST if inside is None else Style().nodes_per_block * len(self.tree.cores)
        kept = np.zeros(0, np.int32) if inside is None else inside
        while len(levels[-1].volume) > 2 * FEWEST and not self._stop():
            fine = levels[-1]
            if len(fine.neighbour) > many * len(fine.volume):
                break
            most = min(growth * whole / len(fine.volume), LARGEST * whole)
            made, label = coarser(fine, most, seed + len(levels), join, kept, threads)
            if len(made.volume) > STUCK * len(fine.volume):
                growth *= 2
                if growth > MOST_GROWTH:
                    break
                continue
            if inside is not None:
                if len(made.volume) < least:
                    break
                kept = projected(kept, label, len(made.volume))
            levels.append(made)
            labels.append(label)
        return levels, labels

    def _first(
        self, levels: list[Graph], labels: list[Int32Array], style: Style, seed: int, number: int,
        most: float = np.inf,
    ) -> tuple[float, float, int, Int32Array] | None:  # fmt: skip
        """Halve regions level by level until every core is one; return excess, cost, the level, and the mapping there.

        All but the first (``number`` 0) are given up once time is over; and where more crosses between regions than ``most`` for
        the root of how many they are.
        """
        tree, rng = self.tree, new_rng(seed + number)
        at, depth, deepest = len(levels) - 1, 0, len(tree.halvings)
        pos = np.zeros(len(levels[at].volume), np.int32)
        while True:
            g = levels[at]
            while depth < deepest and (
                at == 0 or len(pos) >= style.nodes_per_block * len(tree.boards[depth + 1].share)
            ):
                stopped = self._stop()
                if stopped and number:
                    return None
                tries, passes = (1, 1) if stopped else (TRIES, PASSES)
                halving, halves = tree.halvings[depth], tree.boards[depth + 1]
                pos = split(g, pos, halving, halves.share, halves.allowed, HALF_SLACK, tries, passes, rng)
                depth += 1
                if most < np.inf and _crossing(g, pos) > most * float(np.sqrt(len(halves.share))):
                    return None
                if depth < deepest and len(pos) >= style.nodes_per_block * len(tree.boards[depth + 1].share):
                    self._refined(g, depth, pos, False, style, seed + number + depth, ALONE)
            over, paid = self._refined(g, depth, pos, False, style, seed + number + at, ALONE)
            if depth == deepest:
                return over, paid, at, pos
            at -= 1
            pos = pos[labels[at]]

    def _up(
        self, levels: list[Graph], labels: list[Int32Array], at: int, pos: Int32Array, style: Style, seed: int,
        threads: Threads,
    ) -> Found:  # fmt: skip
        """Return the mapping of the finest level, refined on every level above ``at``."""
        over, paid = np.inf, np.inf
        while at > 0:
            at -= 1
            pos = pos[labels[at]]
            over, paid = self._refined(levels[at], -1, pos, at == 0, style, seed + at, threads)
        if paid == np.inf:
            over, paid = self._refined(levels[0], -1, pos, True, style, seed, threads)
        return Found(over, paid, pos)

    def _refined(
        self, g: Graph, depth: int, pos: Int32Array, fine: bool, style: Style, seed: int, threads: Threads
    ) -> tuple[float, float]:
        """Refine a mapping in place on the board of a depth, -1 for that of the cores; return its excess and cost."""
        board = self.tree.boards[depth]
        s = new_state(g, pos, self._room(board, g))
        if not style.moves:
            return excess(s), cost(g, board, pos, threads)
        if self._stop():
            if excess(s) > 0:
                balance(g, board, s, border(g, pos, threads), threads)
            return excess(s), cost(g, board, pos, threads)
        refine_by_moves(g, board, s, ROUNDS[0 if fine else 1], BOLD[0 if fine else 1], threads)
        small = len(pos) <= SMALL
        if len(board.share) > 1 and (style.fm or small) and not self._stop():
            passes, patience, together = FM_SMALL if small else FM
            finest = board is self.tree.boards[-1]
            divisions = self.tree.divisions if finest else (np.zeros(len(board.share), np.int32),)
            before = cost(g, board, pos, threads)
            rng = new_rng(seed, 1)
            refine_by_fm(g, board, s, divisions, passes, patience, together, threads, before, rng, self._stop)
        if self._flow and depth < 0 and style.fm and len(board.share) > 1 and not self._stop():
            refine_by_flow(g, board, s, FLOW_ROUNDS, new_rng(seed, 2), self._stop, FLOW_STEPS, FLOW_WIDE)
        return excess(s), cost(g, board, pos, threads)

    def _room(self, board: Board, g: Graph) -> IntArray:
        """Return what blocks may hold at a level: their room, or more where nodes are too coarse for it."""
        if len(g.volume) == len(self.graph.volume):
            return board.room
        even = board.share[:, None] / max(1e-12, float(board.share.sum())) * self._total[None, :]
        heaviest = g.sizes.max(axis=0, initial=0)[None, :]
        loose: IntArray = np.maximum(board.room, np.ceil(even + HEAVIEST * heaviest).astype(np.int64))
        return loose


def projected(number: Int32Array, label: Int32Array, k: int) -> Int32Array:
    """Return the number of each of ``k`` clusters, whose members have the same; ``label`` (n,) is the cluster of every node."""
    out = np.empty(k, np.int32)
    out[label] = number
    return out


def _crossing(g: Graph, pos: Int32Array) -> float:
    """Return the traffic between blocks, both ways."""
    return float(g.weight[np.repeat(pos, np.diff(g.ptr)) != pos[g.neighbour]].sum(dtype=np.float64))
