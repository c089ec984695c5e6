"""The engine ``m5-policy``: method M5 as published, a trained policy that takes its actions in its environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.learn.checkpoint import Checkpoint, sized
from nmsolve.learn.pipeline.policy import Size, network
from nmsolve.learn.pipeline.walk import Episode, rules_of, start, walk
from nmsolve.learn.pipeline.window import reach_of
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

#: Episodes of a round, each with a target of its own, and rounds of draws without a better plan before the engine ends.
EPISODES, IDLE = 16, 8
#: Least targets of the rounds in which the best action is always taken, in parts of the least load so far.
GREEDY = (0.0, 0.7, 0.9, 0.98)
#: Least targets of rounds of draws, in parts of the least load so far: drawn up to this much below it.
BELOW = 0.1


def m5_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError as of :func:`.checkpoint.sized`."""
    return sized("m5", Size)


def episodes(
    env: GroupsEnv, arrays: Mapping[str, Any], seed: int, stop: Callable[[], bool], draws: bool = True
) -> Iterator[Episode]:
    """Yield episodes of a policy with the given arrays.

    First the best action is taken each time, for targets from the even cut's load down to a perfect balance, and then closer to
    the least load so far. With ``draws`` actions are drawn after that, for targets a little below that load, until some rounds
    bring nothing better.
    """
    runs, rules, net, rng = env.runs, rules_of(env), network(arrays), np.random.default_rng(seed)
    least = 0.9 * float(runs.time[0, -1]) / env.problem.cores
    load, reward, idle = float(env.unit[0]) / runs.unit, -np.inf, 0
    if least <= 0.0 or env.problem.cores == 1 or len(runs.order) == 1:
        return
    rounds = 0
    while idle < IDLE:
        greedy, before = rounds < len(GREEDY), (load, reward)
        if greedy:
            targets = np.geomspace(max(least, GREEDY[rounds] * load), max(least, load), EPISODES + 1)[:-1]
        else:
            targets = load * (1.0 - BELOW * rng.random(EPISODES) ** 2)
        for target in targets.tolist():
            if stop():
                return
            first = start(len(runs.order), env.problem.cores)
            episode = walk(
                runs,
                reach_of(runs, env.problem.cores, target),
                rules,
                net,
                first,
                0.0 if greedy else 1.0,
                False,
                rng,
            )
            load, reward = min(load, episode.load / runs.unit), max(reward, episode.reward)
            yield episode
        rounds += 1
        if rounds >= len(GREEDY) and not draws:
            return
        idle = idle + 1 if not greedy and (load, reward) == before else 0


def _chain(problem: PipelineProblem) -> PipelinePlan | None:
    """Return the best plan along the order of the layers' numbers, those that belong together kept so."""
    merged = merge(problem)
    plan = ChainPartition(merged.problem).in_order(np.arange(merged.problem.count))[0]
    return None if plan is None else merged.lift(plan)


class M5Policy:
    """Episodes along the chain; a plan on the way is offered if its reward is the best so far, the even cut first."""

    name = "m5-policy"
    finds = "mappings"
    refuses = takes("-one -stages -all")

    def __init__(self) -> None:
        self._said = False

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Take actions; without a usable model file say so, once, and offer the best chain instead."""
        try:
            model, _ = m5_model()
        except InputError as error:
            if not self._said:
                self._said = True
                context.note(f"no policy, the best chain instead: {error}")
                plan = _chain(problem)
                if plan is not None:
                    context.offer(plan.packed(problem), "chain")
            return
        env = GroupsEnv(problem)
        _, even = env.reset()
        best = -np.inf
        if even["fits"]:
            best = even["reward"]
            context.offer(env.plan().packed(problem), "even cut")
        for episode in episodes(env, model.arrays, context.seed, context.should_stop):
            if episode.reward > best:
                best = episode.reward
                context.offer(env.plan(episode.best).packed(problem), "actions")
