"""Method M5 as an environment to learn in: its state, its 4 (N - 1) actions and its reward (M5.3 to M5.5).

``reset`` and ``step`` take and return what Gymnasium's environments do, so that code written for those can use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.heuristics.pipeline.actions import act, arranged, even, groups_of, own_paid, worst
from nmsolve.heuristics.pipeline.intervals import intervals_of
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.reward import Reward
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True)
class ActionSpace:
    """Whole numbers ``0..n - 1``."""

    n: int

    def contains(self, action: int) -> bool:
        """Is it one of them?"""
        return 0 <= int(action) < self.n


@dataclass(frozen=True)
class ObservationSpace:
    """Arrays of this shape, all entries >= 0."""

    shape: tuple[int, int]
    dtype: type = np.float64


class GroupsEnv:
    """One pipeline, cut and given cores action by action.

    Observations are (2, N): row 0 ``arranged_core`` (how many layers each core ends with; zeros before a number are cores of
    its group), row 1 ``arranged_macs``, the MACs of those layers. Profiled graphs have no MACs: times on one core stand for them.
    Every state is a plan that keeps all rules but the memory limit, which the reward looks after.

    Parameters
    ----------
    problem : layers with equal ``together`` move as one; hosts stay unused
    order : (L,) topological order of the layers to cut; that of :func:`merge` if not given
    reward : weights; the problem's if not given
    target : an episode ends when the reward reaches this
    steps : most steps of an episode
    inside : allow splitting a group from within, which the method does not (:func:`~.actions.act`)
    """

    def __init__(
        self,
        problem: PipelineProblem,
        *,
        order: IntArray | None = None,
        reward: Reward | None = None,
        target: float = float("inf"),
        steps: int = 1000,
        inside: bool = False,
    ) -> None:
        require_groups(problem)
        if steps < 1:
            raise InputError(f"{steps} steps", "episode", "at least one")
        self.problem = problem
        self.merged = merge(problem)
        small = self.merged.problem
        self.order = self._order(order)
        self.runs = intervals_of(small, self.order)
        work = small.time[:, 0] if small.macs is None else small.macs
        self._work = np.concatenate([[0.0], np.cumsum(work[self.order])])
        self.reward = problem.reward if reward is None else reward
        self.target, self.steps, self.inside = target, steps, inside
        self.action_space = ActionSpace(4 * (problem.cores - 1))
        self.observation_space = ObservationSpace((2, problem.cores))
        self._state = even(small.count, problem.cores, small.stages)
        self._stages = int(np.count_nonzero(self._state))
        self._taken = 0
        amounts = worst(self.runs, self._state)[:4]
        #: (4,) load, compute, storage and routing of the even cut, which the reward's amounts are parts of
        self.unit: FloatArray = np.where(amounts > 0, amounts, 1.0)
        #: (k, L + 1) the user's own amounts, weighted, running up along the order; also parts of those of the even cut
        self.own = self._own_amounts()

    def _order(self, order: IntArray | None) -> IntArray:
        """Return the order as one of merged layers."""
        small = self.merged.problem
        if order is None:
            return np.arange(small.count)
        if not np.array_equal(np.sort(order), np.arange(self.problem.count)):
            raise InputError(
                "it is not a permutation of the layers", "order", f"0..{self.problem.count - 1} once each"
            )
        groups = self.merged.group[order]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        place = np.full(small.count, -1, np.int64)
        place[groups[starts]] = np.arange(len(starts))
        if len(starts) != small.count or (place[self.merged.before] > place[self.merged.after]).any():
            raise InputError("it breaks a group or passes data backwards", "order", "a topological order")
        return groups[starts]

    def _own_amounts(self) -> FloatArray:
        """Return ``own`` for the even cut."""
        small, out = self.merged.problem, np.zeros((len(self.reward.own), self.merged.problem.count + 1))
        for row, term in zip(out, self.reward.own, strict=True):
            np.cumsum(np.bincount(self.merged.group, term.layers, small.count)[self.order], out=row[1:])
            row *= term.weight / (own_paid(row[None], self._state, small.largest_group) or 1.0)
        return out

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Start an episode: evenly cut, or at ``options["plan"]``, or ``options["shuffle"]`` random actions (by ``seed``) later.

        Raises
        ------
        InputError : a plan that is not runs of layers in this order
        """
        options = options or {}
        small = self.merged.problem
        plan = options.get("plan")
        self._state = even(small.count, small.cores, small.stages) if plan is None else self.encode(plan)
        self._stages = int(np.count_nonzero(self._state))
        self._taken = 0
        for action in np.random.default_rng(seed).integers(
            self.action_space.n or 1, size=int(options.get("shuffle", 0))
        ):
            self._act(int(action))
        return self.observation(), self._info()

    def step(self, action: int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Take an action: observation, reward, target reached, steps used up, and what the reward is made of.

        ``info["changed"]`` is False if the action did not apply. InputError for an unknown action.
        """
        if not self.action_space.contains(action):
            raise InputError(f"action {action}", "step", f"0..{self.action_space.n - 1}")
        changed = self._act(int(action))
        self._taken += 1
        info = self._info()
        info["changed"] = changed
        reward = info["reward"]
        return self.observation(), reward, reward >= self.target, self._taken >= self.steps, info

    def _act(self, action: int) -> bool:
        if self.action_space.n == 0:
            return False
        after = int(act(self._state, action, self._stages, self.merged.problem.stages, self.inside))
        self._stages = after if after >= 0 else self._stages
        return after >= 0

    def observation(self) -> FloatArray:
        """Return (2, N) ``arranged_core`` and ``arranged_macs``."""
        ends = np.cumsum(self._state)
        return np.stack([self._state.astype(np.float64), self._work[ends] - self._work[ends - self._state]])

    def _info(self) -> dict[str, Any]:
        load, compute, storage, transfer, _ = worst(self.runs, self._state).tolist()
        weights = self.reward
        parts = (np.array([load, compute, storage, transfer]) / self.unit).tolist()
        over = self.problem.memory is not None and storage > self.problem.memory
        each = (weights.a, weights.compute, weights.storage, weights.routing)
        reward = -sum(weight * part for weight, part in zip(each, parts, strict=True))
        reward -= own_paid(self.own, self._state, self.merged.problem.largest_group)
        reward -= weights.penalty if over else 0.0
        return {"reward": reward, "objective": load, "compute": compute, "storage": storage, "routing": transfer,
                "fits": not over}  # fmt: skip

    @property
    def arranged_core(self) -> IntArray:
        """(N,) a copy of the state."""
        return self._state.copy()

    def plan(self, state: IntArray | None = None) -> PipelinePlan:
        """Return a state (N,), that of the episode if not given, as a plan of the problem."""
        layers, cores = groups_of(self._state if state is None else state, self.problem.largest_group)
        stage = np.empty(self.merged.problem.count, np.int64)
        stage[self.order] = np.repeat(np.arange(len(layers)), layers)
        return self.merged.lift(PipelinePlan(stage, cores))

    def encode(self, plan: PipelinePlan) -> IntArray:
        """Return (N,) the state of a plan whose stages are runs of this order; cores that no stage has join the last one.

        Raises
        ------
        InputError : the plan is not of that kind
        """
        lowered = self.merged.lower(plan)
        stage = lowered.stage[self.order]
        whole = np.array_equal(self.merged.lift(lowered).stage, plan.stage)
        used = len(plan.cores) > 0 and plan.cores.min() >= 1 and plan.cores.sum() <= self.problem.cores
        sizes = np.bincount(stage, minlength=len(plan.cores))
        if (
            not used
            or not whole
            or (np.diff(stage) < 0).any()
            or len(sizes) != len(plan.cores)
            or (sizes == 0).any()
        ):
            raise InputError(
                "its stages are not intervals of the layers' order", "plan", "a plan of this environment"
            )
        return arranged(sizes, plan.cores, self.problem.cores)


def require_groups(problem: PipelineProblem) -> None:
    """Raise InputError if the actions could lead to plans that break a rule, or could not leave such a one."""
    reason = takes("-stages -all")(problem)
    if reason is not None:
        raise InputError(
            f"method M5: {reason}",
            problem.name,
            "a free number of stages, and groups of any size if all cores must be used",
        )
