"""The engine ``chain-batch``: the chain of stages that takes a batch through in the least time, or takes the least energy per
micro-batch, with a bound on all others."""

from __future__ import annotations

import itertools
import math

from nmsolve.heuristics.pipeline.baselines import RULES, one_group, proportional
from nmsolve.heuristics.pipeline.batch import Descent, fastest_batch
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.bounds import claimed
from nmsolve.solvers.pipeline.checker import complaint

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
