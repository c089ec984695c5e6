"""What both ways to raise the bound of ``cover`` have in common: blocks found, the best prices for them, certificates."""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.blocks import UNIT, Cover, Prices, best_prices

#: Prices that are worth no more than this, times what cores and stages cost, prove nothing: solvers of linear programs round.
WORTH = 1 + 1e-7
#: Seconds for one ceiling: a part of those left, and no fewer than this.
PART, LEAST = 0.25, 2.0


class Climb:
    """Blocks found so far, ``blocks`` (B, I) with their ``loads`` (B, S); no plan has a whole load below ``low``.

    ``center`` (I,) are the prices that proved something last, with sum 1, and ``core`` what a core was worth; items of one
    ``kind`` (I,) have one price.
    """

    def __init__(self, cover: Cover, context: Context) -> None:
        self.cover, self.context, self.low = cover, context, 0
        count = cover.data.count
        self.blocks: BoolArray = np.zeros((0, count), bool)
        self.loads: IntArray = np.zeros((0, len(cover.sizes)), np.int64)
        self.kind: IntArray = np.arange(count)
        area = (cover.time * cover.sizes).min(axis=1).astype(float)
        self.center: FloatArray = area / area.sum()
        self.core = 1.0 / cover.cores

    def run(self, below: float) -> None:
        """Raise the bound until prices prove no more; ``below`` is the value of the plan known, if any."""
        raise NotImplementedError

    def learn(self, plan: PipelinePlan) -> None:
        """Take the stages of a plan as blocks (those that tear no item apart)."""
        item = self.cover.data.item
        for stage in np.flatnonzero(plan.cores > 0).tolist():
            inside = plan.stage == stage
            block = np.zeros(self.cover.data.count, bool)
            block[item[inside]] = True
            if not block[item[~inside]].any():
                self.add([block])

    def add(self, blocks: list[BoolArray]) -> None:
        """Keep blocks (items,)."""
        if blocks:
            self.blocks = np.concatenate([self.blocks, np.array(blocks)])
            self.loads = np.concatenate([self.loads, np.array([self.cover.loads(block) for block in blocks])])

    def fewest(self, ceiling: int, first: int = 0) -> tuple[BoolArray, IntArray]:
        """Return the blocks from number ``first`` on that some group can hold, and the fewest cores of one."""
        blocks, loads = self.blocks[first:], self.loads[first:]
        held = blocks @ self.cover.storage
        fits = (loads <= ceiling) & (held[:, None] <= self.cover.room[None, :])
        usable = fits.any(axis=1)
        return blocks[usable], self.cover.sizes[fits.argmax(axis=1)][usable]

    def best(self, ceiling: int, blocks: BoolArray, cores: IntArray) -> Prices:
        """Return the best prices for the blocks known and these (B, I), which cost this many ``cores`` (B,)."""
        known, fewest = self.fewest(ceiling)
        every = np.concatenate([known, blocks]), np.concatenate([fewest, cores])
        return best_prices(self.cover, self.kind, *every, ceiling)

    def mixed(self, best: Prices, share: float) -> tuple[FloatArray, float]:
        """Return prices (I,), with sum 1, and that of a core, between the best and ``center``."""
        price = share * self.center + (1 - share) * best.item / best.item.sum()
        return price, share * self.core + (1 - share) * best.core / best.item.sum()

    @staticmethod
    def whole(price: FloatArray, core: float) -> tuple[IntArray, int]:
        """Return the same in whole numbers."""
        return np.floor(price * UNIT).astype(np.int64), int(core * UNIT)

    def hints(self) -> dict[str, object]:
        """Return what makes the re-check quicker, for certificates."""
        return {}

    def offer(self, price: IntArray, core: int, ceiling: int, below: float) -> None:
        """Raise the bound that ``price`` (items,) and ``core`` prove; ``below`` is the value of the plan known, if any."""
        self.low = max(self.low, ceiling + 1)
        value = self.cover.bound(ceiling, below)
        layers = self.cover.data.item
        certificate = {
            "method": "cover", "ceiling": max(0, ceiling - self.cover.slack), "factor": self.cover.factor,
            "price": price.tolist(), "core": core, "item": layers.tolist(), "seed": self.context.seed, **self.hints(),
        }  # fmt: skip
        if np.isinf(value):
            certificate["status"] = "infeasible"
        self.context.raise_bound(Bound(value, "cover", certificate=certificate))
