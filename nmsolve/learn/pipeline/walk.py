"""Episodes of method M5's policy, compiled: actions of the environment, taken from left to right along the chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.actions import LAST_TO_LATER, act, own_paid, worst
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.heuristics.pipeline.intervals import Intervals
from nmsolve.learn.pipeline.policy import CHOICES, Network, score
from nmsolve.learn.pipeline.window import FEATURES, Reach, View, look, pressure, view_of
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Most steps of an episode, however long the chain.
MOST_STEPS = 50_000


class Rules(NamedTuple):
    """What an episode keeps and is paid for: most stages and steps, the weights (4,) of the largest load, compute, storage and
    routing in their own units, the user's own amounts (:attr:`.GroupsEnv.own`), and the penalty."""

    stages: int
    steps: int
    weight: FloatArray
    own: FloatArray
    penalty: float


class Episode(NamedTuple):
    """What was seen (T, F), which choices were open (T, C), the choice made (T,), the views (T, 7), all empty if not recorded.

    Then the state of the best reward on the way, that reward, the least load on the way, and the last state.
    """

    features: FloatArray
    open: BoolArray
    choice: IntArray
    view: IntArray
    best: IntArray
    reward: float
    load: float
    last: IntArray


def rules_of(env: GroupsEnv) -> Rules:
    """Return the rules of an environment's problem. Steps are enough to hand every layer past half of all stages that fit."""
    count, cores, stages = env.merged.problem.count, env.problem.cores, env.merged.problem.stages
    steps = min(MOST_STEPS, 32 + 2 * (count + cores) + count * min(cores, count, stages) // 2)
    weights = np.array([env.reward.a, env.reward.compute, env.reward.storage, env.reward.routing])
    return Rules(stages, steps, weights / env.unit, env.own, env.reward.penalty)


def start(layers: int, cores: int) -> IntArray:
    """Return the state that episodes begin with: all layers but the last on the first core, the last one on all others."""
    state = np.zeros(cores, np.int64)
    state[0] += layers - 1
    state[-1] += 1
    return state


@plain
def _applies(state: IntArray, action: int, stages: int, most: int) -> bool:
    i = action % (len(state) - 1)
    early, late = state[i], state[i + 1]
    if act(state, action, stages, most, False) < 0:
        return False
    state[i], state[i + 1] = early, late
    return True


@plain
def action_of(choice: int, view: View, cores: int) -> int:
    """Return the number of the action that a choice is (M5.4), -1 for one that is not in sight."""
    if choice < 4:
        return int(choice * (cores - 1) + view.b) if view.b < cores - 1 else -1
    return int((choice - 2) * (cores - 1) + view.a) if view.a >= 0 and view.cores_b == 1 else -1


@plain
def _ended(runs: Intervals, view: View, target: float) -> bool:
    """Everything from stage A on keeps the target."""
    count = len(runs.order)
    if view.a >= 0 and pressure(runs, view.first_a, view.first_b, view.cores_a, target) > 1.0:
        return False
    if view.left == 1:
        return True
    if view.cores_b < view.left and pressure(runs, count - 1, count, view.left - view.cores_b, target) > 1.0:
        return False
    return bool(pressure(runs, view.first_b, count - 1, view.cores_b, target) <= 1.0)


@kernel
def walk(
    runs: Intervals, reach: Reach, rules: Rules, net: Network, state: IntArray, heat: float, record: bool,
    rng: np.random.Generator,
) -> Episode:  # fmt: skip
    """Play an episode from ``state``, which changes; draws by the scores over ``heat``, 0 for the best score each time.

    It ends when every stage keeps the target, when all layers have a stage, when the best score would undo the step before, or
    after the set number of steps.
    """
    cores, room = len(state), rules.steps if record else 1
    features, opened = np.zeros((room, FEATURES)), np.zeros((room, CHOICES), np.bool_)
    choice, views = np.zeros(room, np.int64), np.zeros((room, 7), np.int64)
    stages, best = np.count_nonzero(state), state.copy()
    reward, load, before, t = -np.inf, np.inf, -1, 0
    while True:
        amounts = worst(runs, state)
        if amounts[2] <= runs.memory:
            load, value = min(load, amounts[0]), _reward(rules, amounts)
            value -= own_paid(rules.own, state, runs.time.shape[0])
            if value > reward:
                reward = value
                copy_to(best, state)
        view = view_of(state)
        if view.b < 0 or t == rules.steps or _ended(runs, view, reach.target):
            break
        row = t if record else 0
        look(runs, reach, view, features[row])
        found = score(net, features[row])
        chosen, high = -1, -np.inf
        for k in range(CHOICES):
            action = action_of(k, view, cores)
            opened[row, k] = action >= 0 and _applies(state, action, stages, rules.stages)
            if opened[row, k]:
                value = found[k]
                if heat > 0.0:  # Gumbel noise: draws by probability
                    value -= heat * np.log(-np.log(rng.random()))
                if value > high:
                    chosen, high = k, value
        if chosen < 0:
            break
        action = action_of(chosen, view, cores)
        if heat == 0.0 and _undoes(action, before, cores - 1):
            break
        choice[row] = chosen
        views[row, 0], views[row, 1], views[row, 2], views[row, 3] = (
            view.a,
            view.b,
            view.first_a,
            view.first_b,
        )
        views[row, 4], views[row, 5], views[row, 6] = view.cores_a, view.cores_b, view.left
        stages, before = act(state, action, stages, rules.stages, False), action
        t += 1
    rows = t if record else 0
    return Episode(features[:rows], opened[:rows], choice[:rows], views[:rows], best, reward, load, state)


@plain
def _reward(rules: Rules, amounts: FloatArray) -> float:
    out = 0.0
    for k in range(4):
        out -= rules.weight[k] * amounts[k]
    return out


@plain
def _undoes(action: int, before: int, pairs: int) -> bool:
    """One hands the layer back that the other has handed on."""
    return bool(
        before >= 0 and abs(action - before) == pairs and min(action, before) // pairs == LAST_TO_LATER
    )
