"""The exact dynamic programs as engines: along one order of the layers, over downsets, and for sums over a chain's stages."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.pipeline.baselines import RULES, one_group, proportional
from nmsolve.heuristics.pipeline.batch import Descent, fastest_batch
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.downsets import best_contiguous
from nmsolve.hw.pipeline.stages import held_complaint
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.bounds import claimed
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


#: Stages of the cuts that are tried first: a search among large models takes a while.
SIMPLE = (2, 3, 4, 6, 8, 12, 16)


class ChainBatch:
    """See :mod:`nmsolve.heuristics.pipeline.batch`."""

    name = "chain-batch"
    finds = "both"
    refuses = takes("live shared held +sum")

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Offer one group of all cores, cuts by rules of thumb, then every better plan, and raise the bound."""
        single = one_group(problem)
        if complaint(problem, single) is None:
            context.offer(single.packed(problem), "one group")
        merged = merge(problem)
        for rule, stages in itertools.product(RULES.values(), SIMPLE):
            if stages <= min(problem.stages, problem.cores, merged.problem.count):
                simple = merged.lift(proportional(merged.problem, rule(merged.problem.time[:, 0], stages)))
                if complaint(problem, simple) is None:
                    context.offer(simple.packed(problem), "by hand")
        best, proved = math.inf, 0.0
        for found in fastest_batch(problem, lambda: 0.0 if context.should_stop() else context.time_left()):
            if found.plan is not None and found.value < best:
                best = found.value
                context.offer(found.plan.packed(problem), problem.goal.name)
            if found.bound > proved:
                proved = found.bound
                context.raise_bound(bound_of(problem, found))


def bound_of(problem: PipelineProblem, found: Descent) -> Bound:
    """Return what a search has proved, with the certificate for :mod:`nmsolve.check.pipeline.batch_bound`."""
    if math.isinf(found.bound):
        return Bound(
            math.inf, ChainBatch.name, certificate={"method": ChainBatch.name, "status": "infeasible"}
        )
    certificate = {
        "method": ChainBatch.name, "floor": found.floor, "ceiling": list(found.ceilings), "price": list(found.prices),
    }  # fmt: skip
    value = math.ldexp(found.bound, -problem.sums.exponent)
    return Bound(claimed(value), ChainBatch.name, certificate=certificate)
