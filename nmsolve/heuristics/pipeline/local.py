"""Engines that improve plans step by step: ``pipeline-local`` moves layers, ``groups-local`` takes the actions of method M5."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.actions import act, arranged, even, groups_of, worst
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.intervals import Intervals, intervals_of
from nmsolve.heuristics.pipeline.moves import anneal, energy, ground_of, state_of
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

#: Steps of one call of a kernel, and of one annealing from hot to cold, per layer and stage.
CHUNK, EFFORT = 10_000, 40
#: Relative changes of energy that are taken with probability 1/e, at the start and at the end.
HOT, COLD = 0.6, 0.0005
#: Annealings without a better plan before an engine ends.
IDLE = 16
#: Actions that are tried until one applies.
TRIES = 64
#: Entries (tensors times stages) above which counting users per stage takes too much memory.
MOST = 50_000_000


class PipelineLocal:
    """Annealing of single layers between stages, for any split and for contiguous ones."""

    name = "pipeline-local"
    finds = "mappings"
    refuses = takes(
        "-chain", at_most(MOST, lambda problem: problem.tensors.count * problem.slots, "tensors times stages")
    )

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Anneal again and again from the best plan known, hotter in turn."""
        merged = merge(problem)
        if merged.problem.slots == 1:
            return
        rng = np.random.default_rng(context.seed)
        idle = 0
        while idle < IDLE and not context.should_stop():
            known, _ = context.incumbent()
            start = _first(merged) if known is None else merged.lower(PipelinePlan.unpacked(problem, known))
            if start is None:
                context.note("no plan to start from")
                return
            plan = polish(merged, start, context, rng, HOT / 4 ** (idle % 4))
            better = context.offer(merged.lift(plan).packed(problem), "moves") or known is None
            idle = 0 if better else idle + 1


def _first(merged: Merged) -> PipelinePlan | None:
    """The best plan along the order of the layers' numbers."""
    return ChainPartition(merged.problem).in_order(np.arange(merged.problem.count))[0]


def polish(
    merged: Merged, plan: PipelinePlan, context: Context, rng: np.random.Generator, hot: float = HOT / 48
) -> PipelinePlan:
    """The best plan of one annealing from a plan of the merged problem; the plan itself if nothing better is found.

    Stages the plan does not use are there to be filled; those that are or become empty are dropped.
    """
    small = merged.problem
    plan = _opened(small, plan)
    ground = ground_of(merged, 1.0)
    state = state_of(ground, plan)
    known = np.zeros(2)
    energy(ground, state, known)
    if not 0 < known[0] < np.inf:
        return _closed(plan)
    ground = ground_of(merged, float(known[0]))
    state = state_of(ground, plan)
    best, cores, value = plan.stage.copy(), plan.cores.copy(), 1.0
    chunks = max(1, EFFORT * small.count * len(plan.cores) // CHUNK)
    for k in range(chunks):
        if context.should_stop():
            break
        high, low = hot * (COLD / hot) ** (k / chunks), hot * (COLD / hot) ** ((k + 1) / chunks)
        value = anneal(ground, state, best, cores, value, high, low, CHUNK, rng)
    return _closed(PipelinePlan(best, cores))


def _opened(problem: PipelineProblem, plan: PipelinePlan) -> PipelinePlan:
    """The plan with empty stages after its own: hosts that are idle, and groups as far as their number is free."""
    if problem.exact_stages or problem.use_all:
        return plan
    hosts = 0 if problem.host_time is None else max(0, problem.hosts - int((plan.cores == 0).sum()))
    groups = min(problem.stages, problem.cores) - int((plan.cores > 0).sum())
    hosts = min(hosts, problem.stages - len(plan.cores))
    more = np.repeat(
        np.array([1, 0], np.int64), [min(groups, problem.stages - len(plan.cores) - hosts), hosts]
    )
    return PipelinePlan(plan.stage, np.concatenate([plan.cores, more]))


def _closed(plan: PipelinePlan) -> PipelinePlan:
    """The plan without empty stages."""
    used, stage = np.unique(plan.stage, return_inverse=True)
    return PipelinePlan(stage.astype(np.int64), plan.cores[used])


class GroupsLocal:
    """Annealing over the actions of method M5 (:mod:`.actions`), along one order of the layers."""

    name = "groups-local"
    finds = "mappings"
    refuses = takes("-one -stages -all")

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Anneal from the plan known if it goes along the order, else from an even one, then from the best found."""
        merged = merge(problem)
        small = merged.problem
        runs = intervals_of(small, np.arange(small.count))
        state = self._start(problem, merged, context)
        best, rng = state.copy(), np.random.default_rng(context.seed)
        value = _worth(runs, state)
        idle, chunks = 0, max(1, EFFORT * small.count * small.cores // CHUNK // 16)
        while idle < IDLE and not context.should_stop():
            before, hot = value, HOT / 4 ** (idle % 4)
            for k in range(chunks):
                if context.should_stop():
                    break
                high, low = hot * (COLD / hot) ** (k / chunks), hot * (COLD / hot) ** ((k + 1) / chunks)
                value = _wander(runs, state, best, value, small.stages, high, low, CHUNK, rng)
            if value < np.inf:
                layers, cores = groups_of(best, small.largest_group)
                plan = PipelinePlan(np.repeat(np.arange(len(layers)), layers), cores)
                context.offer(merged.lift(plan).packed(problem), "actions")
            state[:] = best
            idle = 0 if value < before else idle + 1

    @staticmethod
    def _start(problem: PipelineProblem, merged: Merged, context: Context) -> IntArray:
        known, _ = context.incumbent()
        if known is not None:
            plan = merged.lower(PipelinePlan.unpacked(problem, known))
            if (np.diff(plan.stage) >= 0).all() and plan.cores.min() >= 1:
                return arranged(np.bincount(plan.stage), plan.cores, problem.cores)
        return even(merged.problem.count, problem.cores, problem.stages)


def _worth(runs: Intervals, state: IntArray) -> float:
    """The objective of a state; inf beyond the memory limit."""
    amounts = worst(runs, state)
    return float(amounts[0]) if amounts[2] <= runs.memory else float("inf")


@kernel
def _wander(
    runs: Intervals,
    state: IntArray,
    best: IntArray,
    known: float,
    most: int,
    hot: float,
    cold: float,
    steps: int,
    rng: np.random.Generator,
) -> float:
    """Random actions from temperature ``hot`` to ``cold``; ``best`` takes the best state below ``known``, which is returned.

    States beyond the memory limit cost as many times more as the limit is exceeded.
    """
    stages, actions = np.count_nonzero(state), 4 * (len(state) - 1)
    trial, now = state.copy(), _cost(worst(runs, state), runs.memory)
    for step in range(steps):
        after, taken = stages, 0
        while taken == 0 or rng.random() < 0.5:  # several at once, as one alone often makes things worse
            for _ in range(TRIES):
                next_one = act(trial, int(rng.random() * actions), after, most, True)
                if next_one >= 0:
                    after = next_one
                    break
            taken += 1
        amounts = worst(runs, trial)
        new = _cost(amounts, runs.memory)
        heat = hot * (cold / hot) ** (step / steps)
        if new <= now or rng.random() < np.exp(-(new / now - 1.0) / heat):
            now, stages = new, after
            copy_to(state, trial)
            if amounts[0] < known and amounts[2] <= runs.memory:
                known = amounts[0]
                copy_to(best, state)
        else:
            copy_to(trial, state)
    return known


@plain
def _cost(amounts: FloatArray, memory: float) -> float:
    over = amounts[2] / memory if memory > 0 else np.inf
    return float(amounts[4] * max(1.0, over) if np.isfinite(memory) else amounts[4])
