"""One multilevel cycle: anneal from the coarsest level to the finest, exact capacities at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.multilevel.coarsen import clustered
from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Style, projected
from nmsolve.heuristics.mapping.multilevel.descent import descend, evict, promises
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.kinds import LOOSE_KINDS, kinds_kept, sorted_state
from nmsolve.heuristics.mapping.multilevel.lines import Lines, State, line_cost, lines_of
from nmsolve.heuristics.mapping.multilevel.pack import make_feasible
from nmsolve.heuristics.mapping.multilevel.schedule import Budget, Scratch, anneal, scratch_for, warm_up
from nmsolve.heuristics.mapping.multilevel.threads import ALONE
from nmsolve.heuristics.mapping.multilevel.tree import Tree, tree_of
from nmsolve.heuristics.rng import new_rng, next_bits
from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: No cluster takes more than this share of a core.
LARGEST_CLUSTER = 1 / 16
#: Coarsening stops at about this many nodes per usable core.
COARSEST = 16
#: A level has clusters of at most this many times the mean volume of the level below; one that keeps more than this part of the
#: nodes is none.
GROWTH, STUCK = 5.0, 0.9
#: How graph and machine are halved where annealing follows: refinement was no better, and takes long on dense graphs.
HALVING = Style(join=True, starts=1, fm=False, moves=False)
#: The best of several starts is taken up to this many connections (both ways), where they take a moment.
STARTS, AT_ONCE = 4, 100_000
#: Shares of a cycle's work for the coarsest level, all middle levels, and the finest: first cycle, V-cycles.
SHARES_FRESH, SHARES_AGAIN = (0.45, 0.15, 0.4), (0.2, 0.2, 0.6)
#: How far the coarsest level is molten in a first cycle: share of the way from its cost to that of a random mapping.
MELT = 0.05
#: Share by which its start temperature may raise the cost of the coarsest level in a V-cycle.
RISE_COARSEST = 1.0
#: Coarse levels may overfill a core by the largest node, and by at most one in this many: finer ones must take it back.
LOOSENED = 32
#: Highest start and lowest end temperature of other levels, in line steps.
HOT, COLD = 1.0, 0.05
#: A descent looks at every core for every node; above this many pairs it may take, on top of a phase, this part of its time.
LONG, AFTER = 2**26, 0.25
#: Share by which three sweeps at a level's start temperature may raise the cost: from a mapping that was never
#: refined at this level, and from one that was.
RISE_FRESH, RISE_AGAIN = 0.0, 0.15


@dataclass
class Bench:
    """What every phase needs: the cores, as lines and as a tree, the budget, random numbers, buffers."""

    board: Lines
    tree: Tree
    budget: Budget
    rng: AnyArray
    scratch: Scratch

    @property
    def usable(self) -> int:
        """Return how many cores can be used."""
        return int((self.tree.tiles >= 0).sum())

    def seed(self) -> int:
        """Return a new seed."""
        return int(next_bits(self.rng) >> np.uint64(33))


def new_bench(problem: MappingProblem, budget: Budget, seed: int) -> Bench:
    """Return what a run needs."""
    board = lines_of(problem, core_distance(problem))
    return Bench(board, tree_of(problem), budget, new_rng(seed), scratch_for(board))


@dataclass
class Levels:
    """Graphs from fine to coarse, the labels between them, and a placement of the coarsest."""

    graphs: list[Graph]
    labels: list[Int32Array]
    start: Int32Array | None


def coarsen(g: Graph, bench: Bench, pos: Int32Array | None = None) -> Levels:
    """Coarsen until about :data:`COARSEST` nodes per core are left; with ``pos`` (n,), clusters never span cores."""
    graphs, labels = [g], []
    while len(graphs[-1].volume) > COARSEST * bench.usable:
        fine = graphs[-1]
        most = min(LARGEST_CLUSTER, GROWTH * float(fine.volume.mean()))
        made, label = clustered(fine, most, np.zeros(0, np.int32) if pos is None else pos, bench.rng)
        if len(made.volume) > STUCK * len(label):
            break
        graphs.append(made)
        labels.append(label)
        pos = None if pos is None else projected(pos, label, len(made.volume))
        if bench.budget.stop():
            break
    return Levels(graphs, labels, pos)


def halved(g: Graph, bench: Bench, stop: Callable[[], bool]) -> Int32Array | None:
    """Return (n,) the core of every node from halving graph and machine together, where nothing is refined; None if stopped.

    Cores may be too full, and of too many kinds. Where blocks are tiles of cores, these are filled one after the other.
    """
    tree = bench.tree
    style = replace(HALVING, starts=STARTS if len(g.neighbour) <= AT_ONCE else 1)
    found = Cycle(g, tree, stop).from_scratch(style, bench.seed(), ALONE)
    if found is None:
        return None
    if len(tree.cores) == bench.usable:
        return tree.cores[found.pos].astype(np.int32)
    usable = np.flatnonzero(tree.tiles >= 0)
    members = usable[np.argsort(tree.tiles[usable], kind="stable")]
    held = np.bincount(tree.tiles[usable], minlength=len(tree.cores))
    order = np.argsort(found.pos, kind="stable")
    tile = found.pos[order]
    whole = np.bincount(tile, g.volume[order], len(held))
    before = np.cumsum(g.volume[order]) - g.volume[order] - (np.cumsum(whole) - whole)[tile]
    number = np.minimum(held[tile] - 1, (np.maximum(0.0, before) / whole[tile] * held[tile]).astype(np.int64))
    core = np.empty(len(order), np.int32)
    core[order] = members[(np.cumsum(held) - held)[tile] + number]
    return core


def run_cycle(
    levels: Levels, start: Int32Array, again: bool, until: float, bench: Bench
) -> Int32Array | None:
    """Refine ``start`` (a placement of the coarsest level) on all levels.

    Parameters
    ----------
    again : True in a V-cycle, where ``start`` is a refined mapping
    until : share of the whole run at which to be done

    Returns
    -------
    (n,) int32 feasible placement of the finest level, or None if capacities could not be met
    """
    last = len(levels.graphs) - 1
    begin, pos = bench.budget.done(), start
    shares = SHARES_AGAIN if again else SHARES_FRESH
    middle = shares[1] / max(1, last - 1)
    over = 0.0
    for number in range(last, -1, -1):
        g = levels.graphs[number]
        if number < last:
            pos = pos[levels.labels[number]]
        over += shares[0] if number == last else middle
        goal = until if number == 0 else begin + over * (until - begin)
        if number == 0:
            repaired = strict(g, pos, bench)
            if repaired is None:
                return None
            pos = repaired
        limit = relaxed(g, bench.board) if number else bench.board.capacity
        s = sorted_state(g, bench.board, pos, limit, LOOSE_KINDS if number == last and number else 0)
        evict(g, bench.board, s, bench.scratch.step)
        if number == last:
            _coarsest(g, s, again, goal, bench)
        else:
            unit = line_step(bench.board, s)
            anneal_level(g, s, HOT * unit, RISE_AGAIN if again else RISE_FRESH, goal, bench)
        pos = s.pos
    return pos


def anneal_level(g: Graph, s: State, highest: float, rise: float, until: float, bench: Bench) -> None:
    """Anneal ``s`` from at most ``highest``, less if that raises the cost by more than ``rise``; then descend.

    Where a descent may be long, it gets a part of the phase's time, and none if the run is past ``until`` already.
    """
    begin = bench.budget.done()
    if begin < until:
        unit = line_step(bench.board, s)
        hot = bearable(g, s, highest, rise, bench)
        cold = min(COLD * unit, hot / 4)
        anneal(g, bench.board, s, hot, cold, until, bench.budget, bench.rng, bench.scratch)
    if len(s.pos) * len(s.held) <= LONG:
        polish(g, s, bench)
    elif begin < until:
        polish(g, s, bench, until + AFTER * (until - begin))


def _coarsest(g: Graph, s: State, again: bool, until: float, bench: Bench) -> None:
    """Anneal ``s`` from far above; it stays what it was if that ended worse."""
    cost = line_cost(bench.board, s)
    before = cost if (s.load <= s.limit).all() else np.inf
    rise = RISE_COARSEST
    if not again:
        anywhere = float(bench.board.lines_x.mean() + bench.board.lines_y.mean())
        rise = MELT * max(0.0, anywhere * float(g.weight.sum()) / 2 / max(1e-9, cost) - 1)
    saved: list[Any] = [a.copy() for a in s]
    anneal_level(g, s, 4.0 * line_step(bench.board, s), rise, until, bench)
    if line_cost(bench.board, s) > before:
        restore(s, saved)


def restore(s: State, saved: list[Any]) -> None:
    """Make ``s`` what it was when ``saved`` was copied from it."""
    for k, array in enumerate(saved):
        np.copyto(s[k], array)


def bearable(g: Graph, s: State, highest: float, rise: float, bench: Bench) -> float:
    """Return the highest temperature, from ``highest`` down in steps, at which three sweeps raise the cost by <= ``rise``.

    Much of what coarser levels found then survives, and no time goes to temperatures that change nothing.
    ``s`` is unchanged.
    """
    before = line_cost(bench.board, s)
    saved: list[Any] = [a.copy() for a in s]
    temperature = highest
    for _ in range(14):
        for _ in range(3):
            warm_up(g, bench.board, s, temperature, 1, bench.budget, bench.rng, bench.scratch)
            after = line_cost(bench.board, s)
            if after > before * (1 + 2 * rise):  # far too hot
                break
        restore(s, saved)
        if after <= before * (1 + rise) or bench.budget.stop():
            break
        temperature *= 0.75
    return temperature


def line_step(board: Lines, s: State) -> float:
    """Return the median over the nodes of what one column or row to the side changes: the unit of temperature."""
    w, h = len(board.lines_x), len(board.lines_y)
    every = np.arange(0, len(s.pos), max(1, len(s.pos) // 5000))
    col, row = board.col[s.pos[every]], board.row[s.pos[every]]
    steps = []
    if w > 1:
        other = np.where(col + 1 < w, col + 1, col - 1)
        steps.append(np.abs(s.lines[every, other] - s.lines[every, col]))
    if h > 1:
        other = np.where(row + 1 < h, row + 1, row - 1)
        steps.append(np.abs(s.lines[every, w + other] - s.lines[every, w + row]))
    values = np.concatenate(steps) if steps else np.zeros(1)
    values = values[values > 0]
    return float(np.median(values)) if len(values) else 1.0


def strict(g: Graph, pos: Int32Array, bench: Bench) -> Int32Array | None:
    """Return (n,) a feasible placement near ``pos`` (n,), or None if none was found."""
    s = sorted_state(g, bench.board, pos, bench.board.capacity)
    evict(g, bench.board, s, bench.scratch.step)
    good = bool((s.load <= s.limit).all()) and bool(bench.board.allowed[g.domain, s.pos].all())
    if good and len(g.apart) == 0 and kinds_kept(s):
        return s.pos
    return make_feasible(g, bench.board, s.pos, bench.rng, bench.budget.stop)


def polish(
    g: Graph, s: State, bench: Bench, until: float = 1.0, after_pass: Callable[[], None] | None = None
) -> None:
    """Descend to a move-and-swap optimum, or till the run is at ``until``; ``after_pass`` is called after each but the last."""
    nodes = np.arange(len(s.pos), dtype=np.int32)
    for _ in range(20):
        moves, promise = 0, promises(bench.board, s)
        for part in np.array_split(nodes, max(1, len(nodes) // 2000)):
            moves += descend(g, bench.board, s, part, promise, bench.scratch.step)
            if bench.budget.stop() or bench.budget.done() >= until:
                return
        if moves <= len(nodes) // 5000:
            return
        if after_pass is not None:
            after_pass()


def relaxed(g: Graph, board: Lines) -> IntArray:
    """Return (P, resources) capacities of a coarse level, a little larger so that clusters of different sizes can pass.

    Equal sizes pass anyway. Where cores are full, what is added here must be taken back in the end, at a high price.
    """
    limit = board.capacity.copy()
    if g.sizes.shape[1] and (g.sizes != g.sizes[0]).any():
        limit += np.where(limit > 0, np.minimum(g.sizes.max(axis=0), limit // LOOSENED), 0)
    return limit
