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
    lightest,
    needed,
    question,
)
from nmsolve.solvers.pipeline.bounds import work_bound
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.search.cpsat import new_solver

#: Most items: a question has three variables for each.
MOST = 3000
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
    refuses = takes("-chain -groups", at_most(MOST, lambda problem: problem.count, "layers"))

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
        if high > WIDE * climb.low:
            climb.lift(climb.center, high, value)
        while climb.low <= high and not context.should_stop():
            ceiling = (climb.low + high) // 2
            if not climb.prove(ceiling, value, max(LEAST, PART * context.time_left())):
                high = ceiling - 1


class Climb:
    """Blocks found so far, ``blocks`` (B, I) with their ``loads`` (B,); no plan has a whole load below ``low``."""

    def __init__(self, cover: Cover, context: Context) -> None:
        self.cover, self.context, self.low = cover, context, 0
        self.blocks: BoolArray = np.zeros((0, cover.data.count), bool)
        self.loads: IntArray = np.zeros(0, np.int64)
        self.center: FloatArray = cover.time / cover.time.sum()

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
        self.loads = np.append(self.loads, self.cover.load(block))

    def lift(self, share: FloatArray, high: int, below: float) -> None:
        """Raise ``low`` to the least load, up to ``high``, of blocks that have a group's part of the prices.

        ``share`` (items,) are the prices, with sum 1.
        """
        price = np.floor(share * UNIT).astype(np.int64)
        asked = lightest(self.cover, price, high, needed(self.cover, price, high))
        solver, status = self.answer(asked, FIRST)
        bound = high + 1
        if status != "INFEASIBLE":
            bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        if bound > self.low:
            self.offer(price, bound - 1, below)

    def prove(self, ceiling: int, below: float, seconds: float) -> bool:
        """Are there prices that no plan with this ceiling can cover? The bound is offered; False also if it stays open."""
        effort, share, until = EFFORT, SMOOTH, self.context.time_left() - seconds
        mixed = self.center
        while not self.context.should_stop() and self.context.time_left() > until:
            usable = self.blocks[self.loads <= ceiling]
            prices, worth = best_prices(self.cover, usable, ceiling)
            if worth <= self.cover.groups * (1 + 1e-7):
                return False
            mixed = share * self.center + (1 - share) * prices / prices.sum()
            price = np.floor(mixed * UNIT).astype(np.int64)
            _, answer = self.answer(
                question(self.cover, price, ceiling, needed(self.cover, price, ceiling)), effort
            )
            if answer == "INFEASIBLE":
                self.center = mixed
                self.offer(price, ceiling, below)
                return True
            helps = answer != "UNKNOWN" and float(prices[self.blocks[-1]].sum()) > 1 + 1e-7
            share = SMOOTH if helps else 0.0
            effort = effort * MORE if answer == "UNKNOWN" and share == 0.0 else EFFORT
        if not self.context.should_stop():
            self.lift(mixed, ceiling, below)
        return False

    def answer(self, asked: Question, effort: float) -> tuple[Any, str]:
        """Ask CP-SAT and keep all blocks that turn up; the solver and its status."""
        from ortools.sat.python import cp_model

        found: list[BoolArray] = []

        class Listener(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                found.append(np.array([self.boolean_value(v) for v in asked.x]))

        solver = new_solver(self.context.time_left(), self.context.workers, self.context.seed, effort)
        status = str(solver.status_name(solver.solve(asked.model, Listener())))
        for block in found:
            self.add(block)
        return solver, status

    def offer(self, price: IntArray, ceiling: int, below: float) -> None:
        """Raise the bound that ``price`` (items,) proves; ``below`` is the value of the plan known, if any."""
        self.low = max(self.low, ceiling + 1)
        value = self.cover.bound(ceiling, below)
        layers = self.cover.data.item
        certificate = {
            "method": "cover", "ceiling": max(0, ceiling - self.cover.slack), "factor": self.cover.factor,
            "price": price.tolist(), "item": layers.tolist(), "seed": self.context.seed,
        }  # fmt: skip
        if np.isinf(value):
            certificate["status"] = "infeasible"
        self.context.raise_bound(Bound(value, "cover", certificate=certificate))
