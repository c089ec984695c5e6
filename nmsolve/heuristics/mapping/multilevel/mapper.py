"""The multilevel mapper: coarsen, bisect, anneal at every level on the way down, then V-cycles.

``map_multilevel`` is a plain function; the engine in ``engine.py`` wraps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.multilevel.bisection import recursive_bisection
from nmsolve.heuristics.mapping.multilevel.coarsen import cluster, contract, renumber
from nmsolve.heuristics.mapping.multilevel.descent import descend, evict
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net, board_of, finest_net, metric_of
from nmsolve.heuristics.mapping.multilevel.pack import make_feasible
from nmsolve.heuristics.mapping.multilevel.schedule import Budget, Scratch, anneal, scratch_for, warm_up
from nmsolve.heuristics.mapping.multilevel.state import State, line_cost, new_state
from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: No cluster takes more than this share of a core.
LARGEST_CLUSTER = 1 / 16
#: Coarsening stops at about this many nodes per usable core.
COARSEST = 16
#: Shares of the first cycle's work that coarsest, middle (together) and finest level get.
SHARES = (0.3, 0.2, 0.5)
#: Start and end temperature in units of the median step between neighbouring lines.
COARSEST_HEAT, HEAT, COLD = 2.0, 1.0, 0.02
#: Rise of the cost (share) that the start of a level may cause.
RISE = 0.0


@dataclass
class _Run:
    """What every phase needs."""

    problem: MappingProblem
    board: Board
    budget: Budget
    rng: AnyArray
    scratch: Scratch
    report: Callable[[IntArray, str], object]
    order: Int32Array

    def offer(self, pos: Int32Array, move: str) -> IntArray:
        """Offer a placement of the finest level in the problem's own numbering, which is returned."""
        core = np.empty(len(pos), np.int64)
        core[self.order] = pos
        self.report(core, move)
        return core


def map_multilevel(
    problem: MappingProblem,
    seed: int,
    work: float,
    should_stop: Callable[[], bool],
    offer: Callable[[IntArray, str], object],
    elapsed: Callable[[], float] = lambda: 0.0,
) -> IntArray | None:
    """Best mapping found, (n,) int64, or None if no feasible one was found.

    Parameters
    ----------
    work : units of work (about one nanosecond each) after which the search ends
    should_stop : asked at least every 0.2 s; the search ends soon after it first says True
    offer : called with every improvement (mapping, name of the move); all are feasible
    elapsed : share of the allowed time that is over; compresses the schedule on slow machines

    Notes
    -----
    The objective inside is pairwise: :func:`nmsolve.hw.cost.core_distance` over ``graph.traffic``. For net
    objectives it is a surrogate.
    """
    distance = core_distance(problem)
    board = board_of(problem, distance)
    run = _Run(
        problem,
        board,
        Budget(max(1.0, work), should_stop, elapsed),
        new_rng(seed),
        scratch_for(board),
        offer,
        np.arange(problem.n, dtype=np.int32),
    )
    levels, labels = _coarsen(finest_net(problem), run)
    start = recursive_bisection(levels[-1], board, metric_of(distance), problem.machine, run.rng)
    start = _sort_by_core(levels, labels, start, run)
    _offer_early(levels[0], labels, start, run)
    return _descend_levels(levels, labels, start, run)


def _coarsen(net: Net, run: _Run, pos: Int32Array | None = None) -> tuple[list[Net], list[Int32Array]]:
    """Levels from fine to coarse and the labels between them."""
    levels, labels = [net], []
    goal = COARSEST * int(run.problem.machine.usable.sum())
    while len(levels[-1].volume) > goal:
        fine = levels[-1]
        limit = min(LARGEST_CLUSTER, 5 * float(fine.volume.mean()))
        label = cluster(fine, limit, run.rng, pos)
        if int(label.max()) + 1 > 0.9 * len(label):
            break
        levels.append(contract(fine, label))
        labels.append(label)
        if pos is not None:
            coarse = np.zeros(len(levels[-1].volume), np.int32)
            coarse[label] = pos
            pos = coarse
    return levels, labels


def _relaxed(net: Net, board: Board) -> IntArray:
    """Capacities at a coarse level: a little more than they are, so that clusters of different sizes can pass."""
    limit = board.capacity.copy()
    if net.sizes.shape[1]:
        limit += np.where(limit > 0, np.minimum(net.sizes.max(axis=0), limit // 16), 0)
    return limit


def line_step(board: Board, s: State) -> float:
    """Median over the nodes of what one column or row to the right or below changes, the unit of temperature."""
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


def neutral_temperature(net: Net, s: State, highest: float, run: _Run) -> float:
    """The highest temperature, from ``highest`` down in steps, at which a few sweeps do not raise the cost.

    What a coarser level has found then survives at this level, and nothing colder is wasted on it.
    """
    before = line_cost(run.board, s)
    saved = [a.copy() for a in s]
    temperature = highest
    for _ in range(12):
        warm_up(net, run.board, s, temperature, 3, run.budget, run.rng, run.scratch)
        after = line_cost(run.board, s)
        for a, b in zip(s, saved, strict=True):
            a[...] = b
        if after <= before * (1 + RISE) or run.budget.stop():
            break
        temperature *= 0.75
    return temperature


def _descend_levels(
    levels: list[Net], labels: list[Int32Array], pos: Int32Array, run: _Run
) -> IntArray | None:
    """From the coarsest placement to the finest, annealing at every level."""
    last = len(levels) - 1
    done = run.budget.done()
    middle = SHARES[1] / max(1, last - 1)
    until = 0.0
    for number in range(last, -1, -1):
        net = levels[number]
        if number < last:
            pos = pos[labels[number]]
        if number == 0:
            repaired = _strict(net, pos, run)
            if repaired is None:
                return None
            pos = repaired
        limit = _relaxed(net, run.board) if number else run.board.capacity
        s = new_state(net, run.board, pos, limit, with_lines=True)
        if number:
            evict(net, run.board, s, run.scratch.step)
        unit = line_step(run.board, s)
        hot = COARSEST_HEAT * unit if number == last else neutral_temperature(net, s, HEAT * unit, run)
        until += SHARES[0] if number == last else (middle if number else 1.0)
        anneal(
            net,
            run.board,
            s,
            hot,
            COLD * unit,
            done + min(until, 0.97) * (1 - done),
            run.budget,
            run.rng,
            run.scratch,
        )
        if number == 0:
            _polish(net, s, run)
        pos = s.pos
    return run.offer(pos, "multilevel")


def _sort_by_core(levels: list[Net], labels: list[Int32Array], start: Int32Array, run: _Run) -> Int32Array:
    """Renumber the finest level so that nodes close on the board are close in memory. Returns the new ``start``."""
    pos = start
    for label in reversed(labels):
        pos = pos[label]
    order = np.argsort(pos, kind="stable").astype(np.int32)
    levels[0] = renumber(levels[0], order)
    if labels:
        labels[0] = labels[0][order]
    run.order = run.order[order]
    return start if labels else start[order]


def _offer_early(net: Net, labels: list[Int32Array], pos: Int32Array, run: _Run) -> None:
    """Offer the bisection as it stands, so that there is an answer within moments."""
    for label in reversed(labels):
        pos = pos[label]
    feasible = _strict(net, pos, run)
    if feasible is not None:
        run.offer(feasible, "bisection")


def _strict(net: Net, pos: Int32Array, run: _Run) -> Int32Array | None:
    """A feasible placement near ``pos``."""
    s = new_state(net, run.board, pos, run.board.capacity, with_lines=True)
    evict(net, run.board, s, run.scratch.step)
    bad = (
        bool((s.load > s.limit).any()) or not run.board.allowed[net.domain, s.pos].all() or len(net.apart) > 0
    )
    if not bad:
        return s.pos
    for _ in range(20):
        found = make_feasible(net, run.board, s.pos, run.rng)
        if found is not None or run.budget.stop():
            return found
    return None


def _polish(net: Net, s: State, run: _Run) -> None:
    """Descent to a move-and-swap optimum."""
    nodes = np.arange(len(s.pos), dtype=np.int32)
    for _ in range(20):
        moves = 0
        for part in np.array_split(nodes, max(1, len(nodes) // 2000)):
            moves += descend(net, run.board, s, part, run.scratch.step)
            if run.budget.stop():
                return
        if moves == 0:
            return
