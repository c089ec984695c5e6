"""Training of method M5's policy (M5.6): REINFORCE over episodes of its environment.

Rewards are divided by the load of a perfect balance, so that pipelines of any size count alike. An episode ends when its reward
reaches the preset target, here a little below that of the fastest chain, or after a number of steps. After the set number of
episodes the network is saved.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.hw.pipeline.stages import objective
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.pipeline.engine import steps_of
from nmsolve.learn.pipeline.policy import Size, core_features, draw, first_arrays, scores
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.learn.torch_state import arrays_of, new_optimiser, plain, require_torch, restored, tensor
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.pipeline.reward import USUAL, Reward
from nmsolve.model.types import FloatArray


@dataclass(frozen=True)
class Settings:
    """How a policy is trained.

    Attributes
    ----------
    cores : numbers of cores, one drawn per pipeline
    layers : least and most layers of a pipeline
    episodes : side by side on one pipeline; the mean of their returns is the baseline
    tolerance : an episode ends when its reward is within this part of that of the fastest plan
    discount : of rewards per step
    rate, entropy : step of Adam, weight of the entropy
    weights : of the reward
    """

    cores: tuple[int, ...] = (8, 16, 32)
    layers: tuple[int, int] = (20, 120)
    seed: int = 0
    episodes: int = 16
    tolerance: float = 0.02
    discount: float = 0.97
    rate: float = 2e-3
    entropy: float = 3e-3
    weights: Reward = USUAL

    def __post_init__(self) -> None:
        if not self.cores or min(self.cores) < 2 or max(self.cores) > 1024:
            raise InputError(f"cores {self.cores}", "--cores", "numbers from 2 to 1024")
        if not 1 <= self.layers[0] <= self.layers[1] <= 2000:
            raise InputError(f"layers {self.layers}", "--layers", "LEAST-MOST, from 1 to 2000")


def random_chain(seed: int, cores: int, layers: int) -> PipelineProblem:
    """Return a chain of layers: times over some orders of magnitude, each divisible into equal pieces of work, some
    into a few and most into many. Up to four in five have no MACs and take a fiftieth of the time, as in models of products and
    elementwise layers; of the others time is in proportion to MACs.

    A layer of p pieces takes ``ceil(p / c) / p`` of its time on c cores. Every layer sends a tensor to the next.
    """
    rng = np.random.default_rng(seed)
    alone = rng.lognormal(0.0, 1.5, layers)
    product = rng.random(layers) >= rng.uniform(0.0, 0.8)
    product[int(rng.integers(layers))] = True
    alone *= np.where(product, 1.0, 0.02)
    pieces = np.exp2(rng.integers(int(rng.integers(0, 8)), 13, layers))
    count = np.arange(1, cores + 1)
    times = alone[:, None] * np.ceil(pieces[:, None] / count) / pieces[:, None]
    here = np.arange(layers - 1)
    sent = rng.lognormal(0.0, 1.0, layers - 1) * alone.mean() * 0.02
    tensors = Tensors(here, np.arange(layers), here + 1, sent, np.ones(layers - 1))
    labels = tuple(f"layer {k}" for k in range(layers))
    storage = rng.lognormal(0.0, 1.0, layers)
    return PipelineProblem(
        f"chain-{seed}",
        labels,
        times,
        storage,
        tensors,
        cores,
        stages=cores,
        split="chain",
        macs=alone * product,
    )


class Episode(NamedTuple):
    """Steps of all episodes of one pipeline: features (T, B, N, 6), actions (T, B), rewards (T, B), running (T, B) bool."""

    features: FloatArray
    action: Any
    reward: FloatArray
    running: Any


class Trainer:
    """A policy in training. The same settings give the same arrays after the same number of updates.

    Parameters
    ----------
    state : what an earlier training ended with, to go on from
    """

    def __init__(self, settings: Settings, size: Size | None = None, state: Checkpoint | None = None) -> None:
        self.settings, self.size = settings, size or Size()
        self.weights, self.optimiser = new_optimiser(first_arrays(self.size, settings.seed), settings.rate)
        self.rows: list[dict[str, float]] = []
        if state is not None:
            restored(state, self.weights, self.optimiser)
            self.rows = rows_of(state)

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.rows)

    def update(self) -> dict[str, float]:
        """Play episodes on a new pipeline, learn from them, and return the new line of the curve."""
        started, how = time.process_time(), self.settings
        rng = np.random.default_rng([how.seed, self.updates])
        cores = int(how.cores[rng.integers(len(how.cores))])
        least, most = how.layers
        problem = random_chain(int(rng.integers(2**31)), cores, int(rng.integers(least, most + 1)))
        plan = ChainPartition(problem).in_order(np.arange(problem.count))[0]
        assert plan is not None  # it has no memory limit
        optimum = objective(problem, plan)
        episode, best = self._play(problem, plan, rng)
        self._learn(episode)
        last = episode.reward[episode.running.sum(axis=0) - 1, np.arange(how.episodes)]
        row = {
            "update": float(self.updates + 1),
            "cpu_seconds": (self.rows[-1]["cpu_seconds"] if self.rows else 0.0) + time.process_time() - started,
            "episodes": float((self.updates + 1) * how.episodes), "steps": float(episode.running.sum() / how.episodes),
            "reward": float(last.mean()), "gap": best / optimum - 1,
        }  # fmt: skip
        self.rows.append(row)
        return row

    def _play(
        self, problem: PipelineProblem, optimum: PipelinePlan, rng: np.random.Generator
    ) -> tuple[Episode, float]:
        """Return the steps of all episodes, and the best load on the way."""
        how, torch = self.settings, require_torch()
        first = GroupsEnv(problem, reward=how.weights)
        even = float(first.reset()[1]["objective"])  # rewards are parts of it
        target = first.reset(options={"plan": optimum})[1]["reward"] * (1 + how.tolerance)
        envs = [
            GroupsEnv(problem, reward=how.weights, target=target, steps=steps_of(problem))
            for _ in range(how.episodes)
        ]
        seen = np.stack([env.reset()[0] for env in envs])
        running, best = np.ones(how.episodes, bool), float("inf")
        features, actions, rewards, alive = [], [], [], []
        arrays = {name: plain(w) for name, w in self.weights.items()}
        scale = problem.time[:, 0].sum() / problem.cores / even
        while running.any():
            features.append(core_features(seen))
            with torch.no_grad():
                actions.append(draw(scores(arrays, features[-1]), rng))
            alive.append(running.copy())
            gained = np.zeros(how.episodes)
            for k in np.flatnonzero(running).tolist():
                seen[k], reward, done, over, info = envs[k].step(int(actions[-1][k]))
                gained[k], running[k] = reward / scale, not (done or over)
                best = min(best, info["objective"])
            rewards.append(gained)
        return Episode(np.stack(features), np.stack(actions), np.stack(rewards), np.stack(alive)), best

    def _learn(self, episode: Episode) -> None:
        """One step of REINFORCE: the log-probability of every action times its return, less the mean return of that step."""
        torch, how = require_torch(), self.settings
        returns, total = np.zeros_like(episode.reward), np.zeros(episode.reward.shape[1])
        for t in range(len(returns) - 1, -1, -1):
            total = np.where(episode.running[t], episode.reward[t] + how.discount * total, 0.0)
            returns[t] = total
        count = np.maximum(episode.running.sum(axis=1, keepdims=True), 1)
        # An episode that has ended costs nothing more, which the mean over all of them knows.
        gain = returns - returns.sum(axis=1, keepdims=True) / episode.running.shape[1]
        gain = gain / (np.sqrt((gain**2 * episode.running).sum() / count.sum()) + 1e-9)
        flat = episode.running.ravel()
        features = tensor(episode.features.reshape(-1, *episode.features.shape[2:])[flat])
        action = tensor(episode.action.ravel()[flat], torch.int64)
        log = torch.log_softmax(scores(self.weights, features, torch), dim=1)
        chosen = log.gather(1, action[:, None])[:, 0]
        entropy = -(torch.exp(log) * log).sum(dim=1).mean()
        aim = (chosen * tensor(gain.ravel()[flat], torch.float32)).mean()
        self.optimiser.zero_grad()
        (-(aim + how.entropy * entropy)).backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self.optimiser.step()

    @property
    def how(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return asdict(self.settings)

    def checkpoint(self) -> Checkpoint:
        """Return the policy as it is now."""
        arrays = {name: plain(w) for name, w in self.weights.items()}
        return Checkpoint("m5", arrays, {"size": asdict(self.size), "how": self.how, "updates": self.updates})

    def state(self) -> Checkpoint:
        """Return what training goes on from."""
        return Checkpoint("m5", arrays_of(self.weights, self.optimiser), {"how": self.how, "rows": self.rows})


def train(settings: Settings, files: Training, *, resume: bool = False, **limits: Unpack[Limits]) -> Trainer:
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(settings, state=files.begin("m5", asdict(settings), resume))
    run_training(trainer, files, "Policy of method M5: a pipeline cut by actions", trainer.how, **limits)
    return trainer
