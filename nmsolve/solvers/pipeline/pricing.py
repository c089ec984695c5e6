"""The question of ``cover`` answered on a sweep: is there a block whose prices are more than its cores and its stage are worth?

For each number of cores apart: first by multipliers of what a block needs, whose best block ignores the limits and so is worth no
less (Lagrange; Geoffrion 1974). Where that leaves it open, all ways through the sweep that may still be good enough are
followed (Desrochers and Soumis 1988), those together that are near where they would be too many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.blocks import Cover
from nmsolve.solvers.pipeline.sweep import Sweep
from nmsolve.solvers.pipeline.sweep_kernels import (
    Asked,
    RestBounds,
    followed,
    most_valuable,
    remaining,
    within_limits,
)
from nmsolve.solvers.search.linear import LinearProgram, minimise

#: Most multipliers tried for one size of a group.
TRIES = 40
#: Ways kept per step where the best are wanted quickly, and where all count but the answer may be open.
THIN, ROOM = 400, 5000
#: Sizes for which a block is found after which the others are not asked.
ENOUGH = 12
#: Multipliers around the best that bound the search for ways.
AROUND = (1.0, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 4.0)
#: Prices are whole numbers, so a block whose worth is within this of less than the least asked for has less.
HALF = 0.5


@dataclass(frozen=True)
class Answer:
    """``blocks`` (items,) worth more than they may be, with the number of their ``sizes``.

    ``rough``: sets that may be no blocks, but none is worth more; ``stopped``: not all was asked for.
    """

    blocks: list[BoolArray]
    sizes: list[int]
    rough: list[tuple[BoolArray, int]]
    stopped: bool

    @property
    def none(self) -> bool:
        """There is no such block."""
        return not self.blocks and not self.rough and not self.stopped


class Pricing:
    """Questions about the blocks of a problem; remembers good multipliers, ``rates`` (S, R), from one to the next."""

    def __init__(self, cover: Cover, sweep: Sweep, stop: Callable[[], bool]) -> None:
        self.cover, self.sweep, self.stop = cover, sweep, stop
        order = sweep.order
        needs = [cover.time[order]]
        if cover.data.problem.overlap:
            needs.append(np.zeros_like(needs[0]))
        if cover.limits_storage:
            needs.append(np.repeat(cover.storage[order, None], len(cover.sizes), axis=1))
        #: (S, I, R)
        self.needs = np.ascontiguousarray(np.stack(needs, axis=2).transpose(1, 0, 2))
        self.moves = int(cover.data.problem.overlap)
        self.rates: list[FloatArray | None] = [None] * len(cover.sizes)
        self.at, self.ways = -1, dict[int, Sweep]()

    def inside(self, asked: Asked, size: int, ceiling: int) -> Sweep:
        """Return the sweep without what no block of this size takes."""
        if self.at != ceiling:
            self.at, self.ways = ceiling, {}
        if size not in self.ways:
            self.ways[size] = within_limits(self.sweep, asked)
        return self.ways[size]

    def asked(self, size: int, price: IntArray, ceiling: int) -> Asked:
        """Return the question for groups of the size of this number; ``price`` (items,)."""
        limit = [ceiling, *([ceiling] if self.moves else [])]
        if self.cover.limits_storage:
            limit.append(int(self.cover.room[size]))
        return Asked(price[self.sweep.order], self.needs[size], self.moves, np.array(limit, np.int64))

    def better(self, price: IntArray, least: IntArray, ceiling: int, room: int) -> Answer:
        """Look for blocks of load ``ceiling`` or less worth ``least`` (S,) on groups of every size; ``price`` (items,).

        ``room``: ways kept per step where all count.
        """
        found = Answer([], [], [], True)
        left: list[tuple[float, int]] = []
        for size in range(len(least)):
            if self.stop():
                return found
            most, block = self.relaxed(self.asked(size, price, ceiling), size, int(least[size]))
            if block is not None:
                found.blocks.append(block)
                found.sizes.append(size)
            elif most >= least[size] - HALF:
                left.append((float(most / max(1, least[size])), size))
        undecided = [size for _, size in sorted(left, reverse=True)]
        for ways in (ROOM, room):
            found.rough.clear()
            for size in undecided:
                if len(found.blocks) >= ENOUGH or self.stop():
                    return found
                block, sure = self.exact(self.asked(size, price, ceiling), size, int(least[size]), ways)
                if block is not None and sure:
                    found.blocks.append(block)
                    found.sizes.append(size)
                elif block is not None:
                    found.rough.append((block, size))
            if found.blocks or not found.rough:
                break
            undecided = [size for _, size in found.rough]
        return replace(found, stopped=False)

    def relaxed(self, asked: Asked, size: int, least: int) -> tuple[float, BoolArray | None]:
        """Return a bound on the worth of blocks by multipliers, lowered until it is below ``least``; or a block worth that."""
        width, best = len(asked.limit), np.inf
        sweep = self.inside(asked, size, int(asked.limit[0]))
        lines: list[tuple[int, IntArray]] = [(0, np.zeros(width, np.int64))]
        rate = self.rates[size]
        if rate is None:
            rate = np.zeros(width)
        for _ in range(TRIES):
            rest = remaining(sweep, asked, rate)
            value = float(rest[0] + rate @ asked.limit)
            if value < best:
                best, self.rates[size] = value, rate
            if best < least - HALF:
                return best, None
            taken, price, needs = followed(sweep, asked, rate, rest)
            if (needs <= asked.limit).all() and price >= least:
                return best, self.block(taken)
            lines.append((price, needs))
            rate, low = _lowest(lines, asked.limit)
            if low >= best - 1e-9 * abs(best) - 0.01:
                break
        return best, None

    def exact(self, asked: Asked, size: int, least: int, room: int) -> tuple[BoolArray | None, bool]:
        """Return a set worth ``least``, if there may be one, and whether it is a block."""
        best, sweep = self.rates[size], self.inside(asked, size, int(asked.limit[0]))
        assert best is not None
        rates = np.array([best * part for part in AROUND])
        rest_bounds = RestBounds(rates, np.array([remaining(sweep, asked, rate) for rate in rates]))
        for ways, thin in ((min(THIN, room), True), (room, False)):
            price, _, taken = most_valuable(sweep, asked, rest_bounds, least - HALF, ways, thin)
            if price >= least:
                block = self.block(taken)
                return block, self.cover.fits(block, size, int(asked.limit[0]))
        return None, True

    def block(self, taken: BoolArray) -> BoolArray:
        """Return what is taken in the sweep's order as a block (items,)."""
        out = np.zeros(len(taken), bool)
        out[self.sweep.order] = taken
        return out


def _lowest(lines: list[tuple[int, IntArray]], limit: IntArray) -> tuple[FloatArray, float]:
    """Return the multipliers >= 0 for which the best of the ``lines`` (price, needs), less what it lacks of ``limit``, is
    lowest."""
    if len(limit) == 1:
        return _crossing(lines, int(limit[0]))
    from scipy.sparse import csr_array

    scale = np.maximum(1.0, limit.astype(float))
    rows = csr_array(np.array([[-1.0, *((limit - needs) / scale)] for _, needs in lines]))
    most, goal = np.array([-float(price) for price, _ in lines]), np.eye(1, 1 + len(limit))[0]
    none = np.full(len(lines), -np.inf), np.full(len(goal), np.inf)
    found = minimise(
        LinearProgram(goal, rows, none[0], most, np.where(goal > 0, -np.inf, 0.0), none[1]), np.inf
    )
    if found is None or not found.optimal:
        return np.zeros(len(limit)), np.inf
    return np.maximum(0.0, found.x[1:]) / scale, found.cost


def _crossing(lines: list[tuple[int, IntArray]], limit: int) -> tuple[FloatArray, float]:
    """The same for one need: where the best line that keeps the limit crosses one that does not."""
    price = np.array([float(p) for p, _ in lines])
    slope = np.array([float(limit - int(needs[0])) for _, needs in lines])
    falls, rises = slope < 0, slope >= 0
    if not falls.any():
        return np.zeros(1), float(price.max())
    at = (price[falls][:, None] - price[rises][None, :]) / (slope[rises][None, :] - slope[falls][:, None])
    points = np.unique(np.maximum(0.0, np.append(at.ravel(), 0.0)))
    values = (price[:, None] + slope[:, None] * points[None, :]).max(axis=0)
    k = int(values.argmin())
    return points[k : k + 1], float(values[k])
