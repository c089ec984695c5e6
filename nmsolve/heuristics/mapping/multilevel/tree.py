"""The machine as a binary tree: its cores are halved again and again, where halves are farthest from each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.heuristics.mapping.multilevel.graph import Board, board_of
from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Least part of a region's cores in either half.
LEAST_HALF = 1 / 3
#: Cuts whose halves are as far from each other within this factor are alike; the one nearest to the middle is taken.
ALIKE = 1 + 1e-9
#: Boards with more cores are halved down to tiles of some cores each: there are tables of distances between all blocks.
MOST_BLOCKS = 2048
#: Ways to divide the cores in two, for searches that run side by side.
DIVISIONS = 4


class Halving(NamedTuple):
    """How the k regions of one depth become the regions of the next.

    left, right : (k,) int64, numbers of the halves; right is -1 where a region is a core already and stays
    new : (j, j) float64, mean distance between the regions of the next depth, also within one
    mixed : (j, k) float64, between those and the regions that are halved
    """

    left: IntArray
    right: IntArray
    new: FloatArray
    mixed: FloatArray


@dataclass(frozen=True)
class Tree:
    """Boards from coarse to fine, and the halvings between them.

    Attributes
    ----------
    cores : (K,) int64, the usable cores; blocks of the finest board. The first core of every tile where these are the blocks
    tiles : (P,) int32, block of every core, -1 where it cannot be used
    boards : by depth; the first has one region, the last one core in each
    halvings : by depth, one fewer
    divisions : (K,) int32 each, 0 or 1 for every core
    """

    cores: IntArray
    tiles: Int32Array
    boards: tuple[Board, ...]
    halvings: tuple[Halving, ...]
    divisions: tuple[Int32Array, ...]


_TREES: WeakKeyDictionary[MappingProblem, Tree] = WeakKeyDictionary()


def tree_of(problem: MappingProblem) -> Tree:
    """Return the tree of the usable cores of a problem; kept for the problem's lifetime, as two ask for it."""
    tree = _TREES.get(problem)
    if tree is None:
        tree = _TREES[problem] = _made(problem)
    return tree


def _made(problem: MappingProblem) -> Tree:
    between = core_distance(problem)
    usable = np.flatnonzero(problem.machine.usable).astype(np.int64)
    side = max(1, int(np.ceil(np.sqrt(len(usable) / MOST_BLOCKS))))
    if between.separable:
        row, col = np.divmod(usable, between.cols)
        tile = row // side * between.cols + col // side
    else:
        tile = usable // side**2
    _, first, tile = np.unique(tile, return_index=True, return_inverse=True)
    cores = usable[first]
    distance = between.among(cores)
    distance = (distance + distance.T) / 2
    np.fill_diagonal(distance, 0.0)
    places = None
    if between.separable and (between.x.max() > 0 or between.y.max() > 0):
        row, col = np.divmod(cores, between.cols)
        places = np.stack([between.x[col], between.y[row]], axis=1)
    capacity = np.zeros((len(cores), problem.capacity.shape[1]), np.int64)
    np.add.at(capacity, tile, problem.capacity[usable])
    allowed = np.zeros((len(problem.domains), len(cores)), bool)
    rule, core = np.nonzero(problem.domains[:, usable])
    allowed[rule, tile[core]] = True
    largest = np.maximum(1, capacity.max(axis=0)) if len(cores) else capacity
    share = (capacity / largest).min(axis=1) if capacity.shape[1] else np.ones(len(cores))
    finest = board_of(distance, capacity, share.astype(np.float64), allowed)
    out = grown(cores, finest, places)
    tiles = np.full(problem.cores, -1, np.int32)
    tiles[out.cores] = np.arange(len(cores), dtype=np.int32)
    tiles[usable] = tiles[cores[tile]]
    return replace(out, tiles=tiles)


def grown(cores: IntArray, finest: Board, places: FloatArray | None = None) -> Tree:
    """Return the tree of the blocks of a board, which are called ``cores`` (K,), without tiles.

    ``places`` : (K, 2) where they lie on a mesh; else they are halved by their distances
    """
    fronts = [[np.arange(len(cores))]]
    links: list[tuple[IntArray, IntArray]] = []
    while any(len(region) > 1 for region in fronts[-1]):
        left: list[int] = []
        right: list[int] = []
        front: list[IntArray] = []
        for region in fronts[-1]:
            left.append(len(front))
            parts = [region] if len(region) == 1 else _halves(region, finest.distance, places)
            front += parts
            right.append(len(front) - 1 if len(parts) == 2 else -1)
        links.append((np.array(left, np.int64), np.array(right, np.int64)))
        fronts.append(front)
    order = np.array([region[0] for region in fronts[-1]], np.int64)  # the cores as the last front has them
    finest = board_of(
        finest.distance[np.ix_(order, order)],
        finest.room[order],
        finest.share[order],
        finest.allowed[:, order],
    )
    boards, halvings = [finest], []
    total, count = finest.distance, np.ones(len(order))
    for first, second in reversed(links):  # the halves of a region stand side by side
        mixed, few = np.add.reduceat(total, first, axis=1), np.add.reduceat(count, first)
        halvings.append(Halving(first, second, total / np.outer(count, count), mixed / np.outer(count, few)))
        total, count, finer = np.add.reduceat(mixed, first, axis=0), few, boards[-1]
        between = total / np.outer(count, count)
        within = np.diag(between)
        apart = np.maximum(0.0, between - (within[:, None] + within[None, :]) / 2)
        room, share = np.add.reduceat(finer.room, first, axis=0), np.add.reduceat(finer.share, first)
        allowed = np.logical_or.reduceat(finer.allowed, first, axis=1)
        boards.append(board_of((apart + apart.T) / 2, room, share, allowed))  # symmetric to the last digit
    place = np.argsort(order)
    divisions = []
    for depth in range(1, min(DIVISIONS, len(fronts) - 1) + 1):
        side = np.zeros(len(order), np.int32)
        for number, region in enumerate(fronts[depth]):
            side[place[region]] = number & 1
        divisions.append(side)
    return Tree(
        cores[order],
        np.zeros(0, np.int32),
        tuple(reversed(boards)),
        tuple(reversed(halvings)),
        tuple(divisions),
    )


def _halves(region: IntArray, distance: FloatArray, places: FloatArray | None) -> list[IntArray]:
    """Return the two halves of a region of two cores or more: along its longer side, or by which of two far cores is nearer."""
    d = distance[np.ix_(region, region)]
    if places is not None:
        at = places[region]
        key = at[:, int(np.argmax(np.ptp(at, axis=0)[::-1]) == 0)]
    else:
        far = int(np.argmax(d[0]))
        key = d[far] - d[int(np.argmax(d[far]))]
    order = np.argsort(key, kind="stable")
    m = len(region)
    sums = d[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1)
    cuts = np.arange(1, m)
    if places is not None and len(changes := cuts[np.diff(key[order]) > 0]):
        cuts = changes
    fair = cuts[(cuts >= LEAST_HALF * m) & (cuts <= (1 - LEAST_HALF) * m)]
    cuts = fair if len(fair) else cuts[np.argsort(np.abs(2 * cuts - m), kind="stable")[:1]]
    apart = (sums[cuts - 1, m - 1] - sums[cuts - 1, cuts - 1]) / (cuts * (m - cuts))
    best = cuts[apart * ALIKE >= apart.max()]
    cut = int(best[np.argmin(np.abs(2 * best - m))])
    return [np.sort(region[order[:cut]]), np.sort(region[order[cut:]])]
