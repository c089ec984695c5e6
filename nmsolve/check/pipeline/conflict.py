"""That no plan keeps the rules, shown again without a solver: by counting in fractions, or by trying every plan."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np

from nmsolve.model import clock
from nmsolve.model.pipeline.check import memory_needs, plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

#: More than two roundings of floats add.
ROUNDED = 1 + Fraction(1, 2**50)


class _Late(Exception):
    """No time is left."""


def impossible(problem: PipelineProblem, seconds: float) -> bool | None:
    """Return True if no plan keeps the rules, False if one does, None if that takes more than about ``seconds``."""
    if _too_much(problem):
        return True
    try:
        return next(_plans(problem, clock.now() + seconds), None) is None
    except _Late:
        return None


def _too_much(problem: PipelineProblem) -> bool:
    """Without hosts: a layer that no group holds, or layers that all cores together do not hold."""
    if problem.memory is None or problem.streams or (problem.hosts and problem.host_time is not None):
        return False
    # the rule rounds the sum of what a stage holds, and the memory of its cores, once each
    memory, held = Fraction(problem.memory) * ROUNDED, [Fraction(x) for x in problem.storage.tolist()]
    return max(held) > memory * problem.largest_group or sum(held) > memory * problem.cores


def _plans(problem: PipelineProblem, end: float) -> Iterator[PipelinePlan]:
    """Yield every division of the layers into stages that some numbers of cores make a plan."""
    free = problem.split == "any"  # then stages can be numbered as their first layers come
    partner: dict[int, int] = {}
    leads = [-1] * problem.count
    for layer, number in enumerate([] if problem.together is None else problem.together.tolist()):
        leads[layer] = partner.setdefault(number, layer) if number >= 0 else layer

    def divided(stage: list[int]) -> Iterator[list[int]]:
        if clock.now() > end:
            raise _Late
        k = len(stage)
        if k == problem.count:
            yield stage
            return
        opened = max(stage, default=-1) + 1
        choices = range(min(problem.slots, opened + 1) if free else problem.slots)
        if 0 <= leads[k] < k:
            choices = range(stage[leads[k]], stage[leads[k]] + 1)
        elif problem.split == "chain" and stage:
            choices = range(stage[-1], min(stage[-1] + 2, problem.slots))
        for s in choices:
            yield from divided([*stage, s])

    for stage in divided([]):
        used = max(stage) + 1
        if len(set(stage)) == used:
            for cores in _cores(problem, stage, used):
                plan = PipelinePlan(np.array(stage, np.int64), np.array(cores, np.int64))
                if plan_complaint(problem, plan) is None:
                    yield plan


def _cores(problem: PipelineProblem, stage: list[int], used: int) -> Iterator[list[int]]:
    """For every choice of hosts: the fewest cores that hold what the other stages hold, and more of them if all must work."""
    least = [1] * used
    if problem.memory is not None and not problem.streams:
        for s, held in enumerate(memory_needs(problem, stage, used)):
            if held > problem.memory * problem.largest_group:
                least[s] = problem.largest_group + 1
            elif held > 0:
                least[s] = next(c for c in range(1, problem.largest_group + 1) if held <= c * problem.memory)
    for count in range(min(problem.hosts, used) + 1):
        for hosts in combinations(range(used), count):
            cores = [0 if s in hosts else c for s, c in enumerate(least)]
            spare = problem.cores - sum(cores) if problem.use_all else 0
            for s, c in enumerate(cores):
                more = max(0, min(spare, problem.largest_group - c)) if c else 0
                cores[s], spare = c + more, spare - more
            yield cores
