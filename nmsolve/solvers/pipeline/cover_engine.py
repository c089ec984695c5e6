"""The engine ``cover``: bounds by blocks (:mod:`.blocks`), the ceiling halved between what is proved and what is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.blocks import (
    UNIT,
    Cover,
    Question,
    best_prices,
    cover_of,
    kinds_of,
    lightest,
    needed,
    question,
)
from nmsolve.solvers.pipeline.bounds import work_bound
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.pricing import Answer, Pricing
from nmsolve.solvers.pipeline.sweep import sweep_of
from nmsolve.solvers.search.cpsat import new_solver

#: Most items: a question has three variables for each.
MOST = 3000
#: Most nodes of a sweep.
NODES = 300_000
#: CP-SAT's effort (about CPU seconds) for the first answer to a question, and how much it grows while there is none.
EFFORT, MORE = 0.5, 4.0
#: Seconds for one ceiling: a part of those left, and no fewer than this. The first question's effort.
PART, LEAST, FIRST = 0.3, 2.0, 2.0
#: Ratio of what is known to what is proved from which on the lightest block is asked for first.
WIDE = 1.05
#: Share of the prices that proved something last in those tried next: the best ones for few blocks are far off (Wentges 1997).
SMOOTH = 0.5


class CoverBound:
    """Proves that no plan keeps a ceiling, by prices of layers; runs in a child process."""

    name = "cover"
    finds = "bounds"
    refuses = takes("-chain", at_most(MOST, lambda problem: problem.count, "layers"))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Raise the bound until prices prove no more, or no plan is better than the one known."""
        known, value = context.incumbent()
        data = pipeline_data(problem)
        cover = cover_of(data)
        if not cover.time.any():
            return
        climb = Climb(cover, context)
        if known is not None:
            climb.learn(PipelinePlan.unpacked(problem, known))
        climb.low = cover.least(max(context.bound(), work_bound(problem).value))
        high = cover.most(value)
        if high > WIDE * climb.low and climb.pricing is None:
            climb.lift(climb.center, high, value)
        for kind in (kinds_of(cover), np.arange(data.count)):
            climb.kind = kind
            print("kinds", kind.max()+1)
            high = cover.most(value)
            while climb.low <= high and not context.should_stop():
                ceiling = (climb.low + high) // 2
                if not climb.prove(ceiling, value, max(LEAST, PART * context.time_left())):
                    high = ceiling - 1


class Climb:
    """Blocks found so far, ``blocks`` (B, I) with their ``loads`` (B, S); no plan has a whole load below ``low``.

    ``center`` (I,) are the prices that proved something last, with sum 1, and ``core`` what a core was worth.
    """

    def __init__(self, cover: Cover, context: Context) -> None:
        self.cover, self.context, self.low = cover, context, 0
        count = cover.data.count
        self.blocks: BoolArray = np.zeros((0, count), bool)
        self.loads: IntArray = np.zeros((0, len(cover.sizes)), np.int64)
        area = (cover.time * cover.sizes).min(axis=1).astype(float)
        self.center: FloatArray = area / area.sum()
        self.core = 1.0 / cover.cores
        sweep = sweep_of(cover.data, cover.cost, NODES)
        self.pricing = None if sweep is None else Pricing(cover, sweep, context.should_stop)
        for i in range(count):
            self.add(np.arange(count) == i)

    def learn(self, plan: PipelinePlan) -> None:
        """Take the stages of a plan as blocks (those that tear no item apart)."""
        item = self.cover.data.item
        for stage in np.flatnonzero(plan.cores > 0).tolist():
            inside = plan.stage == stage
            block = np.zeros(self.cover.data.count, bool)
            block[item[inside]] = True
            if not block[item[~inside]].any():
                self.add(block)

    def add(self, block: BoolArray) -> None:
        """Keep a block (items,)."""
        self.blocks = np.concatenate([self.blocks, block[None]])
        self.loads = np.concatenate([self.loads, self.cover.loads(block)[None]])

    def fewest(self, ceiling: int) -> tuple[BoolArray, IntArray]:
        """Return which blocks (B,) some group can hold, and the fewest cores (B,) of one."""
        held = self.blocks @ self.cover.storage
        fits = (self.loads <= ceiling) & (held[:, None] <= self.cover.room[None, :])
        return fits.any(axis=1), self.cover.sizes[fits.argmax(axis=1)]

    def prove(self, ceiling: int, below: float, seconds: float) -> bool:
        """Are there prices that no plan with this ceiling can cover? The bound is offered; False also if it stays open."""
        effort, share, until = EFFORT, SMOOTH, self.context.time_left() - seconds
        while not self.context.should_stop() and self.context.time_left() > until:
            usable, cores = self.fewest(ceiling)
            prices, worth_core, worth = best_prices(self.cover, self.kind, self.blocks[usable], cores[usable], ceiling)
            if worth <= 1 + 1e-7:
                return False
            mixed = share * self.center + (1 - share) * prices / prices.sum()
            mixed_core = share * self.core + (1 - share) * worth_core
            price = np.floor(mixed * UNIT).astype(np.int64)
            core = int(mixed_core * float(price.sum()))
            known = len(self.blocks)
            least = needed(self.cover, price, ceiling, core)
            answer = self.pricing.better(price, least, ceiling)
            for block in answer.blocks:
                self.add(block)
            if answer.none:
                self.center, self.core = mixed, mixed_core
                self.offer(price, core, ceiling, below)
                return True
            usable, cores = self.fewest(ceiling)
            worth_stage = max(0.0, (1 - self.cover.cores * worth_core) / self.cover.groups)
            pays = cores[known:] * worth_core + worth_stage
            helps = bool((usable[known:] & (self.blocks[known:] @ prices > pays * (1 + 1e-7))).any())
            print(f"  T={ceiling/self.cover.factor:.4f} worth {worth:.5f} new {len(self.blocks)-known} open {answer.open} helps {helps} core {worth_core*self.cover.cores:.3f} t {self.context.time_left():.1f}")
            if not helps and share == 0.0 and len(self.blocks)==known:
                return False
            share = SMOOTH if helps else 0.0
        return False

    def offer(self, price: IntArray, core: int, ceiling: int, below: float) -> None:
        """Raise the bound that ``price`` (items,) and ``core`` prove; ``below`` is the value of the plan known, if any."""
        self.low = max(self.low, ceiling + 1)
        value = self.cover.bound(ceiling, below)
        layers = self.cover.data.item
        certificate = {
            "method": "cover", "ceiling": max(0, ceiling - self.cover.slack), "factor": self.cover.factor,
            "price": price.tolist(), "core": core, "item": layers.tolist(), "seed": self.context.seed,
        }  # fmt: skip
        if np.isinf(value):
            certificate["status"] = "infeasible"
        print("PROVED", value)
        self.context.raise_bound(Bound(value, "cover", certificate=certificate))
