"""Which cores of the board each stage takes: every stage one connected region, and stages that follow each other side by side.

First *bands*: strips of the board, one beside the other, are filled line by line, to and fro, so that what is cut from them stays
in one piece. Strips of many thicknesses are tried. Then annealing exchanges single cores of two regions that touch. Regions keep
their sizes, and what is in one piece stays so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below, new_rng, uniform
from nmsolve.model import clock
from nmsolve.model.compiled import kernel
from nmsolve.model.links import link_ends, link_works, require_links
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, IntArray, starts

#: Numbers of strips along a side that are tried, at most.
THICKNESSES = 32
#: A core to give back is drawn up to so often, until one touches the region that it goes to.
DRAWS = 6
#: Exchanges between looks at the clock.
SLICE = 2000
#: Exchanges that are tried per core of the board, and at most in all.
TRIES, MOST_TRIES = 20_000, 4_000_000
#: A piece too many, and two stages that do not touch, cost more than all traffic, which is at most a few board widths.
BROKEN = 1e4
#: Part of a board's width by which all traffic may get longer in an exchange that is still likely at the beginning.
HEAT = 0.05
#: Tensors come from all cores of a region: its width counts by this part of a way between two regions.
WIDTH = 2.0


class Floorplan(NamedTuple):
    """Regions of a board of P cores.

    Attributes
    ----------
    stage : (P,) stage of every core; S, the number of stages: free; -1: unusable
    pieces : regions beyond one per stage
    apart : pairs of stages, of those that should touch, that do not
    """

    stage: IntArray
    pieces: int
    apart: int


class Board(NamedTuple):
    """What the kernels need.

    Stage number S is all that is free.

    Attributes
    ----------
    beside : (P, 4) usable cores at the other ends of links that work both ways, else -1
    row, column : (P,) of every core
    traffic : (S + 1, S + 1) parts of all bytes, both ways
    after, before : (S + 1,) the stage that should touch this one, next and last in the chain's order, or -1
    stage : (P,) of every core
    cells : (P',) usable cores by stage, those of stage s from ``first[s]`` on; ``first`` (S + 2,)
    place : (P,) where a core stands in ``cells``
    sums : (S + 1, 3) of rows, columns, squares of both
    broken : (S + 1, 2) pieces too many, and 1 for a stage apart from ``after``
    queue, seen : (P,) scratch
    """

    beside: IntArray
    row: FloatArray
    column: FloatArray
    traffic: FloatArray
    after: IntArray
    before: IntArray
    stage: IntArray
    cells: IntArray
    first: IntArray
    place: IntArray
    sums: FloatArray
    broken: IntArray
    queue: IntArray
    seen: AnyArray


def floorplan(
    machine: Machine, sizes: IntArray, traffic: FloatArray, seed: int = 0, seconds: float = math.inf
) -> Floorplan:
    """Return regions for stages in the order of a chain; two in a row should touch if one sends the other anything.

    Parameters
    ----------
    sizes : (S,) cores of every stage, 0 for one that is not on the board; together no more than the usable cores
    traffic : (S, S) bytes that one stage sends another
    seconds : after which exchanges end; at least one cut of strips is tried

    Raises
    ------
    InputError : the machine is given by a distance matrix, so that nothing is known of its links
    """
    require_links(machine)
    begun, best, least = clock.now(), None, np.inf
    for stage in bands(machine, sizes):
        board = _board(machine, sizes, traffic, stage)
        cost = _whole_cost(board)
        if cost < least:
            best, least = board, cost
        if clock.now() - begun > seconds / 2:
            break
    assert best is not None
    tries, rng, done = min(MOST_TRIES, TRIES * machine.size), new_rng(seed), 0.0
    kept = best.stage.copy(), *best.broken.sum(axis=0).tolist()
    while done < 1:
        _anneal(best, SLICE, HEAT * (1 - done) ** 2, rng)
        done = max(done + SLICE / tries, (clock.now() - begun) / seconds)
        cost = _whole_cost(best)
        if cost < least:
            kept, least = (best.stage.copy(), *best.broken.sum(axis=0).tolist()), cost
    return Floorplan(*kept)


def bands(machine: Machine, sizes: IntArray) -> Iterator[IntArray]:
    """Yield regions (P,) as cut from strips of every thickness, along rows and along columns."""
    grid = np.arange(machine.size).reshape(machine.rows, machine.cols)
    stage = np.repeat(np.arange(len(sizes)), sizes)
    for lines in (grid, grid.T):
        for count in np.unique(np.geomspace(1, len(lines), THICKNESSES).round().astype(int)).tolist():
            for turned in (0, 1):
                order = np.array(_to_and_fro(np.array_split(lines, count), turned))
                order = order[machine.usable[order]]
                out = np.full(machine.size, -1, np.int64)
                out[order] = len(sizes)
                out[order[: len(stage)]] = stage
                yield out


def _to_and_fro(strips: list[AnyArray], turned: int) -> list[int]:
    """Return the cores of strips, each line by line across it; a strip begins where the last one is near."""
    order: list[int] = []
    for k, strip in enumerate(strips):
        across = strip.T if k % 2 == 0 else strip.T[::-1]
        for j, line in enumerate(across):
            back = (j + (turned if k == 0 else 0)) % 2
            order += (line[::-1] if back else line).tolist()
    return order


def _board(machine: Machine, sizes: IntArray, traffic: FloatArray, stage: IntArray) -> Board:
    count = len(sizes)
    ends, works = link_ends(machine).reshape(-1, 4), link_works(machine).reshape(-1, 4)
    back = works[ends, [1, 0, 3, 2]]  # of the link the other way
    ends = np.where(works & back & machine.usable[:, None] & machine.usable[ends], ends, -1)
    both = np.zeros((count + 1, count + 1))
    both[:count, :count] = traffic + traffic.T
    on = np.flatnonzero(sizes)
    linked = both[on[:-1], on[1:]] > 0
    after, before = np.full(count + 1, -1, np.int64), np.full(count + 1, -1, np.int64)
    after[on[:-1][linked]], before[on[1:][linked]] = on[1:][linked], on[:-1][linked]
    row, column = (x.astype(float) for x in np.divmod(np.arange(machine.size), machine.cols))
    used = np.flatnonzero(stage >= 0)
    cells = used[np.argsort(stage[used], kind="stable")]
    place = np.full(machine.size, -1, np.int64)
    place[cells] = np.arange(len(cells))
    sums: FloatArray = np.stack(
        [np.bincount(stage[used], x[used], count + 1) for x in (row, column, row**2 + column**2)],
        axis=1,
    ).astype(float)
    board = Board(
        ends, row, column, both / max(float(both.sum()) / 2, 1e-300), after, before, stage, cells,
        starts(np.bincount(stage[used], minlength=count + 1)), place, sums, np.zeros((count + 1, 2), np.int64),
        np.zeros(machine.size, np.int64), np.zeros(machine.size, np.int8),
    )  # fmt: skip
    _find_broken(board)
    return board


@kernel
def _find_broken(b: Board) -> None:
    for s in range(len(b.after)):
        b.broken[s, 0] = _pieces(b, s)
        b.broken[s, 1] = _apart(b, s)


@kernel
def _pieces(b: Board, s: int) -> int:
    """Return how many regions stage ``s`` has beyond one; free cores may lie anywhere."""
    low, high = b.first[s], b.first[s + 1]
    if s == len(b.after) - 1 or high == low:
        return 0
    count = -1
    for k in range(low, high):
        start = b.cells[k]
        if b.seen[start]:
            continue
        count += 1
        b.queue[0], b.seen[start] = start, 1
        done, end = 0, 1
        while done < end:
            p = b.queue[done]
            done += 1
            for d in range(4):
                q = b.beside[p, d]
                if q >= 0 and b.stage[q] == s and not b.seen[q]:
                    b.seen[q] = 1
                    b.queue[end] = q
                    end += 1
    for k in range(low, high):
        b.seen[b.cells[k]] = 0
    return count


@kernel
def _touches(b: Board, p: int, s: int) -> bool:
    for d in range(4):
        q = b.beside[p, d]
        if q >= 0 and b.stage[q] == s:
            return True
    return False


@kernel
def _apart(b: Board, s: int) -> int:
    """Return 1 if stage ``s`` does not touch the one after it, which it should."""
    other = b.after[s]
    if other < 0:
        return 0
    for k in range(b.first[s], b.first[s + 1]):
        if _touches(b, b.cells[k], other):
            return 0
    return 1


@kernel
def _stage_cost(b: Board, s: int, but: int) -> float:
    """Return what traffic between stage ``s`` and all others but one costs by the ways between their middles, and its width."""
    free = len(b.after) - 1
    n = b.first[s + 1] - b.first[s]
    if s == free or n == 0:
        return 0.0
    row, column = b.sums[s, 0] / n, b.sums[s, 1] / n
    cost, sent = 0.0, 0.02
    for t in range(free):
        amount = b.traffic[s, t]
        if amount > 0:
            sent += amount
            m = b.first[t + 1] - b.first[t]
            if t != but and t != s and m > 0:
                cost += amount * (abs(row - b.sums[t, 0] / m) + abs(column - b.sums[t, 1] / m))
    spread = b.sums[s, 2] / n - row * row - column * column
    return cost + WIDTH * sent * math.sqrt(max(0.0, spread))


@kernel
def _whole_cost(b: Board) -> float:
    cost = 0.0
    for s in range(len(b.after) - 1):
        cost += _stage_cost(b, s, -1) + BROKEN * (b.broken[s, 0] + b.broken[s, 1])
    return cost


@kernel
def _swap(b: Board, x: int, y: int) -> None:
    """Exchange the stages of two cores."""
    for p, q in ((x, y), (y, x)):
        s = b.stage[p]
        b.sums[s, 0] += b.row[q] - b.row[p]
        b.sums[s, 1] += b.column[q] - b.column[p]
        b.sums[s, 2] += b.row[q] ** 2 + b.column[q] ** 2 - b.row[p] ** 2 - b.column[p] ** 2
    b.stage[x], b.stage[y] = b.stage[y], b.stage[x]
    b.place[x], b.place[y] = b.place[y], b.place[x]
    b.cells[b.place[x]], b.cells[b.place[y]] = x, y


@kernel
def _anneal(b: Board, tries: int, heat: float, rng: AnyArray) -> None:
    """Try exchanges of two cores of regions that touch; those that break a region or part neighbours are taken back."""
    kinds = len(b.after)
    changed, now = np.empty(4, np.int64), np.zeros((4, 2), np.int64)
    used = b.first[kinds]
    for _ in range(tries):
        x = b.cells[below(rng, used)]
        y = b.beside[x, below(rng, 4)]
        if y < 0 or b.stage[x] == b.stage[y]:
            continue
        # core x goes over to the region beside it, which gives back another core
        s, t = b.stage[x], b.stage[y]
        z = b.cells[b.first[t] + below(rng, b.first[t + 1] - b.first[t])]
        for _ in range(DRAWS):
            if s == kinds - 1 or _touches(b, z, s):
                break
            z = b.cells[b.first[t] + below(rng, b.first[t + 1] - b.first[t])]
        cost = _stage_cost(b, s, -1) + _stage_cost(b, t, s)
        _swap(b, x, z)
        cost -= _stage_cost(b, s, -1) + _stage_cost(b, t, s)
        good = cost >= 0 or uniform(rng) < math.exp(cost / max(heat, 1e-12))
        changed[0], changed[1] = s, t
        changed[2] = b.before[s] if b.before[s] != t else -1
        changed[3] = b.before[t] if b.before[t] != s else -1
        old = 0
        for i in range(4):
            if changed[i] >= 0:
                old += b.broken[changed[i], 0] + b.broken[changed[i], 1]
        new = old
        if good or old > 0:
            new = 0
            for i in range(4):
                r = changed[i]
                if r >= 0:
                    now[i, 0] = _pieces(b, r) if i < 2 else b.broken[r, 0]
                    now[i, 1] = _apart(b, r)
                    new += now[i, 0] + now[i, 1]
        if new < old or (new == old and good):
            for i in range(4):
                if changed[i] >= 0:
                    b.broken[changed[i]] = now[i]
        else:
            _swap(b, x, z)
