"""The engine ``m5-policy``: method M5 as published, a trained policy that takes its actions in its environment."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.learn.checkpoint import Checkpoint, sized
from nmsolve.learn.pipeline.policy import Size, core_features, draw, scores
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

#: Episodes side by side, and rounds of them without a better plan before the engine ends.
EPISODES, IDLE = 16, 4


def m5_model() -> tuple[Checkpoint, Size]:
    """Return the trained policy and its sizes; InputError as of :func:`.checkpoint.sized`."""
    return sized("m5", Size)


def steps_of(problem: PipelineProblem) -> int:
    """Return the steps of an episode: enough to merge all cores and to pass layers between all neighbours a few times."""
    return 32 + 6 * problem.cores


def _chain(problem: PipelineProblem) -> PipelinePlan | None:
    """Return the best plan along the order of the layers' numbers, those that belong together kept so."""
    merged = merge(problem)
    plan = ChainPartition(merged.problem).in_order(np.arange(merged.problem.count))[0]
    return None if plan is None else merged.lift(plan)


class M5Policy:
    """Episodes from the evenly cut pipeline; a plan on the way is offered if its reward is the best so far."""

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
        rng, best, idle = np.random.default_rng(context.seed), -float("inf"), 0
        envs = [GroupsEnv(problem, steps=steps_of(problem)) for _ in range(EPISODES)]
        while idle < IDLE:
            before, begun = best, [env.reset() for env in envs]
            seen, known = np.stack([state for state, _ in begun]), [info for _, info in begun]
            for _ in range(envs[0].steps):
                for env, info in zip(envs, known, strict=True):
                    if info["fits"] and info["reward"] > best:
                        best = info["reward"]
                        context.offer(env.plan().packed(problem), "actions")
                if context.should_stop() or problem.cores == 1:
                    return
                actions = draw(scores(model.arrays, core_features(seen)), rng)
                taken = [env.step(action) for env, action in zip(envs, actions.tolist(), strict=True)]
                seen, known = np.stack([t[0] for t in taken]), [t[4] for t in taken]
            idle = 0 if best > before else idle + 1
