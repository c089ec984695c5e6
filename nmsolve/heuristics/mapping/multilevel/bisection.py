"""Initial mapping by dual recursive bisection: the board and the graph are split together, the board as a grid.

The board starts as one cell. Step by step all its column groups or all its row groups are halved (between chips
first, then across the longer side), and so are the nodes of every cell: by growing and FM with terminal propagation,
where nodes of other cells pull from the middle of their cell. After each step all nodes are annealed on the grid so
far, which is itself a small board with the exact capacities of its usable cores.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import no_one
from nmsolve.heuristics.mapping.multilevel.cycle import (
    Bench,
    anneal_level,
    line_step,
    relaxed,
)
from nmsolve.heuristics.mapping.multilevel.descent import evict
from nmsolve.heuristics.mapping.multilevel.halving import halves
from nmsolve.heuristics.mapping.multilevel.kinds import LOOSE_KINDS, sorted_state
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.heuristics.mapping.multilevel.state import line_cost
from nmsolve.model.compiled import kernel
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Highest temperature, in line steps.
HEAT = 2.0
#: Share by which three sweeps at a grid's start temperature may raise the cost.
RISE = 0.1

Groups = list[IntArray]


def halves_of_lines(lines: IntArray, per_chip: int) -> Groups:
    """Two halves of consecutive lines (columns or rows): at the most central chip boundary, else in the middle."""
    if len(lines) < 2:
        return [lines]
    cuts = np.arange(1, len(lines))
    between = cuts[lines[cuts] % per_chip == 0]
    cuts = between if len(between) else cuts
    cut = int(cuts[int(np.argmin(np.abs(2 * cuts - len(lines))))])
    return [lines[:cut], lines[cut:]]


def halves_of_matrix(items: IntArray, distance: AnyArray) -> Groups:
    """Two halves of a set of cores by which of two far-apart ones they are nearer to."""
    if len(items) < 2:
        return [items]
    d = distance[items]
    far = int(np.argmax(d[0, items]))
    other = int(np.argmax(d[far, items]))
    order = np.argsort(d[far, items] - d[other, items], kind="stable")
    half = len(items) // 2
    return [np.sort(items[order[:half]]), np.sort(items[order[half:]])]


def next_axis(xs: Groups, ys: Groups, board: Board, chip: tuple[int, int], dense: bool) -> int:
    """0 to halve the row groups, 1 the column groups: more chips first, then the larger span."""
    if dense:
        return 1
    chips = [max(len(np.unique(g // c)) for g in groups) for groups, c in ((ys, chip[0]), (xs, chip[1]))]
    span = [
        max(float(lines[g[0], g[-1]]) for g in groups)
        for groups, lines in ((ys, board.lines_y), (xs, board.lines_x))
    ]
    longest = [max(len(g) for g in ys), max(len(g) for g in xs)]
    ranks = [(longest[a] > 1, chips[a], span[a], a) for a in (0, 1)]
    return 0 if ranks[0] > ranks[1] else 1


def group_distances(lines: AnyArray, a: Groups, b: Groups) -> FloatArray:
    """(len(a), len(b)) mean distance between the lines of groups."""
    left = np.stack([lines[g].mean(axis=0) for g in a])
    return np.stack([left[:, g].mean(axis=1) for g in b], axis=1).astype(np.float64)


def grid_board(board: Board, xs: Groups, ys: Groups, width: int) -> tuple[Board, IntArray]:
    """The board of cells, and the cell (len(xs) * row group + column group) of every core; ``width`` columns."""
    cores = np.arange(len(board.col))
    column, row = np.empty(width, np.int64), np.empty(len(cores) // width, np.int64)
    for k, g in enumerate(xs):
        column[g] = k
    for k, g in enumerate(ys):
        row[g] = k
    cell = row[cores // width] * len(xs) + column[cores % width]
    cells = len(xs) * len(ys)
    capacity = np.zeros((cells, board.capacity.shape[1]), np.int64)
    np.add.at(capacity, cell, board.capacity)
    allowed = np.zeros((len(board.allowed), cells), bool)
    for d in range(len(allowed)):
        allowed[d, cell[board.allowed[d]]] = True
    kinds = board.kinds
    if len(kinds.most):  # a cell may have as many kinds as its cores together
        most = np.zeros(cells, np.int64)
        np.add.at(most, cell, np.where(board.allowed.any(axis=0), kinds.most, 0))
        kinds = no_one(kinds.ptr, kinds.items, most, kinds.nodes.shape[1])
    lines: list[AnyArray] = []
    for table, groups in ((board.lines_x, xs), (board.lines_y, ys)):
        between = group_distances(table, groups, groups)
        np.fill_diagonal(between, 0.0)
        lines.append(np.ascontiguousarray(between, np.float32))
    at_row, at_col = np.divmod(np.arange(cells), len(xs))
    small = Board(
        at_col.astype(np.int32), at_row.astype(np.int32), lines[0], lines[1], capacity, allowed, kinds
    )
    return small, cell


@kernel
def _pulls(
    net: Net, nodes: Int32Array, local: Int32Array, cell: Int32Array, nearer: FloatArray
) -> FloatArray:
    """(k,) cost of side 0 minus side 1 of each node; ``nearer[c]`` is that difference per weight to cell ``c``."""
    out = np.zeros(len(nodes))
    for i in range(len(nodes)):
        for e in range(net.indptr[nodes[i]], net.indptr[nodes[i] + 1]):
            v = net.indices[e]
            if local[v] < 0:
                out[i] += net.weights[e] * nearer[cell[v]]
    return out


def split_cell(
    net: Net, grid: Board, nodes: Int32Array, sides: tuple[int, int], across: float, nearer: FloatArray,
    cell: Int32Array, local: Int32Array, bench: Bench,
) -> AnyArray:  # fmt: skip
    """Which of the two new cells ``sides`` each node of an old cell gets: (k,) int8. ``local`` is all -1 but inside.

    ``nearer[cell[v]]`` is what a unit of traffic with ``v`` costs more in the first of the two.
    """
    local[nodes] = np.arange(len(nodes), dtype=np.int32)
    pull = _pulls(net, nodes, local, cell, nearer)
    room = grid.capacity[list(sides)]
    weight = grid.allowed[0, list(sides)].astype(float)
    if room.shape[1]:
        weight = (room / np.maximum(1, room.sum(axis=0))).min(axis=1)
    goal = float(net.volume[nodes].sum()) * float(weight[0] / max(1e-9, weight.sum()))
    near, far = (grid.allowed[net.domain[nodes], s] for s in sides)
    fixed = np.where(near & ~far, 0, np.where(far & ~near, 1, -1)).astype(np.int8)
    side = halves(net, nodes, local, pull, across, room, goal, fixed, bench.rng)
    local[nodes] = -1
    return side


def _split_all(
    net: Net, grid: Board, cell: Int32Array, old: tuple[Groups, Groups], new: tuple[Groups, Groups], axis: int,
    lines: AnyArray, bench: Bench, may_stop: bool,
) -> Int32Array | None:  # fmt: skip
    """Cell of every node on the new grid; groups ``(xs, ys)`` differ from ``old`` along ``axis`` only. None: it was stopped."""
    before, after = old[1 - axis], new[1 - axis]
    to_old, to_new = group_distances(lines, after, before), group_distances(lines, after, after)
    first = np.cumsum([0] + [1 if len(g) < 2 else 2 for g in before])
    width, new_width = len(old[0]), len(new[0])
    cells = width * len(old[1])
    members = np.argsort(cell, kind="stable").astype(np.int32)
    start = np.searchsorted(cell[members], np.arange(cells + 1))
    # Nodes of cells that are split already pull from their new cells, numbered after the old ones: else the halves of two
    # neighbours may be the wrong way round, which no move of single nodes mends.
    out, where, local = np.empty_like(cell), cell.copy(), np.full(len(cell), -1, np.int32)
    at_old = np.arange(cells) // width if axis == 0 else np.arange(cells) % width
    at_new = np.arange(new_width * len(new[1]))
    at_new = at_new // new_width if axis == 0 else at_new % new_width
    row, col = np.divmod(np.arange(cells), width)
    k, nearer = -1, np.zeros(0)
    for c in np.argsort(at_old, kind="stable").tolist():  # those that have to agree one after the other
        if may_stop and bench.budget.stop():
            return None
        nodes = members[start[c] : start[c + 1]]
        if first[at_old[c]] != k:
            k = int(first[at_old[c]])
            if len(before[at_old[c]]) > 1:
                nearer = np.r_[(to_old[k] - to_old[k + 1])[at_old], (to_new[k] - to_new[k + 1])[at_new]]
        both = [k] if len(before[at_old[c]]) < 2 else [k, k + 1]
        sides = [j * new_width + int(col[c]) if axis == 0 else int(row[c]) * new_width + j for j in both]
        out[nodes] = sides[0]
        if len(sides) == 2 and len(nodes):
            across = float(to_new[k, k + 1])
            side = split_cell(net, grid, nodes, (sides[0], sides[1]), across, nearer, where, local, bench)
            out[nodes[side == 1]] = sides[1]
        where[nodes] = cells + out[nodes]
    return out


def dual_bisection(
    net: Net, machine: Machine, until: float, bench: Bench, may_stop: bool = False
) -> Int32Array | None:
    """(n,) int32 core of every node, annealed on every grid. Cores may overflow a little; repair is the caller's task.

    ``until`` is the share of the run at which to be done. Returns None where it was stopped before, if it ``may_stop``.
    """
    board = bench.board
    dense = len(board.lines_x) == len(board.col)
    width = len(board.lines_x)
    xs, ys = [np.arange(width)], [np.arange(len(board.lines_y))]
    steps = int(np.ceil(np.log2(max(1, len(xs[0])))) + np.ceil(np.log2(max(1, len(ys[0])))))
    cell = np.zeros(len(net.volume), np.int32)
    begin = bench.budget.done()
    for step in range(steps):
        axis = next_axis(xs, ys, board, machine.cores, dense)
        if axis == 0:
            new = (xs, [h for g in ys for h in halves_of_lines(g, machine.cores[0])])
        elif dense:
            new = ([h for g in xs for h in halves_of_matrix(g, board.lines_x)], ys)
        else:
            new = ([h for g in xs for h in halves_of_lines(g, machine.cores[1])], ys)
        grid, cell_of_core = grid_board(board, new[0], new[1], width)
        lines = board.lines_y if axis == 0 else board.lines_x
        split = _split_all(net, grid, cell, (xs, ys), new, axis, lines, bench, may_stop)
        if split is None:
            return None
        cell, (xs, ys) = split, new
        limit = relaxed(net, grid)
        s = sorted_state(net, grid, cell, limit, LOOSE_KINDS)
        here = bench.on(grid)
        evict(net, grid, s, here.scratch.step)
        goal = begin + (step + 1) / steps * (until - begin)
        before, first = line_cost(grid, s), s.pos.copy()
        fits = bool((s.load <= s.limit).all())
        anneal_level(net, s, HEAT * line_step(grid, s), RISE, goal, here)
        cell = first if fits and before < line_cost(grid, s) else s.pos
    core_of_cell = np.zeros(len(xs) * len(ys), np.int32)
    if steps:
        core_of_cell[cell_of_core] = np.arange(len(board.col), dtype=np.int32)
    return core_of_cell[cell]
