"""The engine ``cover``: bounds by blocks (:mod:`.blocks`), the ceiling halved between what is proved and what is known.

Blocks come from a sweep (:mod:`.sweeping`). Where that is too large, CP-SAT looks for those of groups of one core.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray
from nmsolve.solvers.pipeline.blocks import Question, cover_of, lightest, needed, question
from nmsolve.solvers.pipeline.bounds import work_bound
from nmsolve.solvers.pipeline.data import pipeline_data
from nmsolve.solvers.pipeline.sweep import sweep_of
from nmsolve.solvers.pipeline.sweeping import LEAST, PART, WORTH, Climb, Sweeping
from nmsolve.solvers.search.cpsat import new_solver

#: Most items: a question has three variables for each.
MOST = 3000
#: Most nodes of a sweep.
NODES = 300_000
#: CP-SAT's effort (about CPU seconds) for the first answer to a question, and how much it grows while there is none.
EFFORT, MORE = 0.5, 4.0
#: The first question's effort.
FIRST = 2.0
#: Share of the prices that proved something last in those tried next: the best for few blocks are far off (Wentges 1997).
SMOOTH = 0.5
#: Ratio of what is known to what is proved from which on the lightest block is asked for first.
WIDE = 1.05


class CoverBound:
    """Proves that no plan keeps a ceiling, by prices of layers; runs in a child process."""

    name = "cover"
    finds = "bounds"
    refuses = takes("-chain", at_most(MOST, lambda problem: problem.count, "layers"))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Raise the bound until prices prove no more, or no plan is better than the one known."""
        known, value = context.incumbent()
        cover = cover_of(pipeline_data(problem))
        if not cover.time.any():
            return
        sweep = sweep_of(cover.data, cover.cost, NODES)
        if sweep is None and len(cover.sizes) > 1:
            context.note("cover: in every order of the layers too many tensors pass one place")
            return
        climb: Climb = Asking(cover, context) if sweep is None else Sweeping(cover, context, sweep)
        if known is not None:
            climb.learn(PipelinePlan.unpacked(problem, known))
        climb.low = cover.least(max(context.bound(), work_bound(problem).value))
        climb.run(value)


class Asking(Climb):
    """Blocks of groups of one core, as the answers of CP-SAT to the question for a valuable one."""

    def run(self, below: float) -> None:
        """Ask for the lightest block first, then halve what is open."""
        high = self.cover.most(below)
        if high > WIDE * self.low:
            self.lift(self.center, high, below)
        while self.low <= high and not self.context.should_stop():
            ceiling = (self.low + high) // 2
            if not self.prove(ceiling, below, max(LEAST, PART * self.context.time_left())):
                high = ceiling - 1

    def lift(self, share: FloatArray, high: int, below: float) -> None:
        """Raise ``low`` to the least load, up to ``high``, of blocks that have a group's part of the prices.

        ``share`` (items,) are the prices, with sum 1.
        """
        price, _ = self.whole(share, 0.0)
        asked = lightest(self.cover, price, high, int(needed(self.cover, price, high)[0]))
        solver, status = self.answer(asked, FIRST)
        bound = high + 1
        if status != "INFEASIBLE":
            bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        if bound > self.low:
            self.offer(price, 0, bound - 1, below)

    def prove(self, ceiling: int, below: float, seconds: float) -> bool:
        """Are there prices that no plan with this ceiling can cover? The bound is offered; False also if it stays open."""
        effort, share, until = EFFORT, SMOOTH, self.context.time_left() - seconds
        mixed = self.center
        while not self.context.should_stop() and self.context.time_left() > until:
            best = self.best(ceiling, self.blocks[:0], self.cover.sizes[:0])
            if best.worth <= WORTH:
                return False
            mixed, _ = self.mixed(best, share)
            price, _ = self.whole(mixed, 0.0)
            least = int(needed(self.cover, price, ceiling)[0])
            _, answer = self.answer(question(self.cover, price, ceiling, least), effort)
            if answer == "INFEASIBLE":
                self.center = mixed
                self.offer(price, 0, ceiling, below)
                return True
            single = 1 / min(self.cover.cores, self.cover.groups)
            helps = answer != "UNKNOWN" and float(best.item[self.blocks[-1]].sum()) > single * WORTH
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
        self.add(found)
        return solver, status
