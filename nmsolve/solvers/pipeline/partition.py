"""The exact dynamic programs as engines: along one order of the layers, and over downsets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.pipeline.baselines import one_group
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.downsets import best_contiguous
from nmsolve.hw.pipeline.stages import held_complaint
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.checker import complaint


class Chain:
    """The best plan along the order of the layers: the optimum where the split is ``chain``, else a start."""

    name = "chain"
    finds = "both"
    refuses = takes("live shared held")

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Offer one group of all cores, then the best plan, whose value is the bound of a chain."""
        exact = problem.split == "chain"
        single = one_group(problem)
        if complaint(problem, single) is None:
            context.offer(single.packed(problem), "one group")
        merged = merge(problem if exact else replace(problem, split="contiguous"))
        # live ranges are those of single layers; and sums of classes, rounded once more, would not be those of the rules
        joined = problem.together is not None and (exact or problem.buffers is not None)
        if joined or not problem.groups.single:
            merged = Merged(problem, np.arange(problem.count), merged.before[:0], merged.after[:0])
        order = np.arange(merged.problem.count)
        plan, value = ChainPartition(merged.problem).in_order(order, fewest_stages=exact)
        lifted = None if plan is None else merged.lift(plan)
        if lifted is not None and held_complaint(problem, lifted) is None:
            context.offer(lifted.packed(problem), "one order")
        if exact:
            certificate = {"status": "infeasible"} if plan is None else {}
            context.raise_bound(Bound(value, self.name, certificate=certificate))


class Downsets:
    """The best plan whose stages pass data only forwards: the optimum where the split is ``contiguous``, else a start."""

    name = "downsets"
    finds = "both"
    refuses = takes("-chain")

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Offer plans and raise bounds as they come; bounds hold only where the split asks for an order."""
        exact = problem.split == "contiguous"

        def tell(plan: PipelinePlan | None, bound: float) -> None:
            if plan is not None:
                context.offer(plan.packed(problem), "downsets")
            if exact and bound > 0:
                certificate = {"status": "infeasible"} if bound == math.inf else {}
                context.raise_bound(Bound(bound, self.name, certificate=certificate))

        plan, bound, _ = best_contiguous(
            problem if exact else replace(problem, split="contiguous"),
            lambda: 0.0 if context.should_stop() else context.time_left(),
            memory=context.memory,
            news=tell,
            note=context.note,
        )
        tell(plan, bound)
