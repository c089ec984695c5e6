"""``cover``: blocks found, the best prices for them, certificates; groups of any size, as long as few tensors pass any place in
an order of the layers.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.blocks import UNIT, Cover, Prices, best_prices, kinds_of, needed
from nmsolve.solvers.pipeline.pricing import Pricing
from nmsolve.solvers.pipeline.sweep import Sweep

#: Prices that are worth no more than this, times what cores and stages cost, prove nothing: solvers of linear programs round.
WORTH = 1 + 1e-7
#: Seconds for one ceiling: a part of those left, and no fewer than this.
PART, LEAST = 0.25, 2.0


#: Ways kept per step of a sweep in one pass over the ceilings after the other, and most in all steps together.
ROOMS, WAYS = (40_000, 320_000), 100_000_000
#: Share of the prices that proved something last in those tried next: the best for few blocks are far off (Wentges 1997).
SMOOTH, SMOOTHER = 0.7, 0.92
#: Part of the time left for the ceiling just below the value known, which would end the search.
TOP = 0.4
#: Ceilings nearer to each other than this, relatively, are one, but for the last below the value known: in passes that others
#: follow, and in those with a price for each item.
NEAR = (1e-3, 1e-3, 1e-6)


class Sweeping:
    """Raises the bound in passes over the ceilings that are open, each with more prices or more room than the one before.

    Blocks found so far are ``blocks`` (B, I) with their ``loads`` (B, S); no plan has a whole load below ``low``. ``center`` (I,)
    are the prices that proved something last, with sum 1, and ``core`` what a core was worth; items of one ``kind`` (I,) have one
    price.
    """

    def __init__(self, cover: Cover, context: Context, sweep: Sweep) -> None:
        self.cover, self.context, self.low = cover, context, 0
        self.pricing = Pricing(cover, sweep, context.should_stop)
        count = cover.data.count
        self.blocks: BoolArray = np.zeros((0, count), bool)
        self.loads: IntArray = np.zeros((0, len(cover.sizes)), np.int64)
        self.kind: IntArray = np.arange(count)
        area = (cover.time * cover.sizes).min(axis=1).astype(float)
        self.center: FloatArray = area / area.sum()
        self.core = 1.0 / cover.cores
        self.smooth = SMOOTH
        self.add(list(np.eye(count, dtype=bool)))

    def run(self, below: float) -> None:
        """First all items of a kind have one price, which is found soon; then each has its own."""
        top, count = self.cover.most(below), self.cover.data.count
        kinds = (kinds_of(self.cover, tensors=False), kinds_of(self.cover, tensors=True), np.arange(count))
        tops = [top] * len(kinds)
        for room in ROOMS:
            for k, self.kind in enumerate(kinds):
                if self.low <= tops[k] and (room == ROOMS[0] or room * count <= WAYS):
                    tops[k] = self.climb(tops[k], top, room, NEAR[k], below)

    def climb(self, high: int, top: int, room: int, near: float, below: float) -> int:
        """Raise ``low`` towards ``high``; returns the highest ceiling that such prices might still prove."""
        might, proofs = high, 0
        while self.low <= high and not self.context.should_stop():
            if high < top and high - self.low < near * high:
                break
            ceiling = self.low + (high - self.low) // (2 if proofs else 4)
            if high == top and proofs:
                ceiling = top
            part = TOP if ceiling == top else PART
            proved, never = self.prove(ceiling, below, room, max(LEAST, part * self.context.time_left()))
            proofs += proved
            self.smooth = SMOOTH if proved else SMOOTHER
            if not proved:
                high = ceiling - 1
                might = high if never else might
                if proofs and not never and near > NEAR[-1]:  # more prices will do better than more time
                    break
        return might

    def prove(self, ceiling: int, below: float, room: int, seconds: float) -> tuple[bool, bool]:
        """Return whether prices prove that no plan has this ceiling, and else whether none can. The bound is offered."""
        share, until = self.smooth, self.context.time_left() - seconds
        rough: BoolArray = self.blocks[:0]
        paid: IntArray = self.cover.sizes[:0]
        while not self.context.should_stop() and self.context.time_left() > until:
            best = self.best(ceiling, rough, paid)
            if best.worth <= WORTH:
                return False, not len(rough)
            mixed = self.mixed(best, share)
            price, core = self.whole(*mixed)
            answer = self.pricing.better(price, needed(self.cover, price, ceiling, core), ceiling, room)
            if answer.none:
                self.center, self.core = mixed
                self.offer(price, core, ceiling, below)
                return True, False
            known = len(self.blocks)
            self.add(answer.blocks)
            new, cores = self.fewest(ceiling, known)
            if answer.rough and not answer.blocks:  # prices must not count on what is not shown
                others = np.array([block for block, _ in answer.rough])
                sizes = self.cover.sizes[[size for _, size in answer.rough]]
                rough, paid = np.concatenate([rough, others]), np.concatenate([paid, sizes])
                new, cores = np.concatenate([new, others]), np.concatenate([cores, sizes])
            if share == 0.0 and not len(new):
                break
            share = self.smooth if self.helps(best, new, cores) else 0.0
        return False, False

    def helps(self, best: Prices, new: BoolArray, cores: IntArray) -> bool:
        """Do the best prices change for ``new`` blocks (B, I) that cost this many ``cores`` (B,)?"""
        stage = max(0.0, (1 - self.cover.cores * best.core) / self.cover.groups)
        return bool((new @ best.item > (cores * best.core + stage) * WORTH).any())

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

    def offer(self, price: IntArray, core: int, ceiling: int, below: float) -> None:
        """Raise the bound that ``price`` (items,) and ``core`` prove; ``below`` is the value of the plan known, if any."""
        self.low = max(self.low, ceiling + 1)
        value = self.cover.bound(ceiling, below)
        layers = self.cover.data.item
        certificate = {
            "method": "cover", "ceiling": max(0, ceiling - self.cover.slack), "factor": self.cover.factor,
            "price": price.tolist(), "core": core, "item": layers.tolist(), "seed": self.context.seed,
            "turn": self.pricing.sweep.order.tolist(),
        }  # fmt: skip
        if np.isinf(value):
            certificate["status"] = "infeasible"
        self.context.raise_bound(Bound(value, "cover", certificate=certificate))
