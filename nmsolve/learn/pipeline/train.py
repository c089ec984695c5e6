"""Training of method M5's policy (M5.6) on random chains: imitation of the best action per step, then REINFORCE.

Episodes go for a preset target, here up to a tenth above the load of the fastest chain. Both parts of training learn from
episodes that the policy itself plays. Short chains and few cores come first.

Every action is credited for its own pair of cores: with what the stages from there on cost in the end, not with what was done
before. Their cost is the number of cores that they need to keep the target. What no policy could save there is subtracted: the
fewest cores that suffice, by dynamic programming (:mod:`.teacher`), a baseline that depends on the state alone. The reward of the
whole (M5.5), with its weights, counts beside it, above the mean of the episodes side by side.

Every few updates the policy cuts some chains that it is not trained on, and the best policy by them is what training ends with.
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
from nmsolve.learn.pipeline.chains import random_chain
from nmsolve.learn.pipeline.engine import episodes
from nmsolve.learn.pipeline.policy import Size, first_arrays, network, scores
from nmsolve.learn.pipeline.teacher import costs_of, lessons, needs_of
from nmsolve.learn.pipeline.walk import Episode, rules_of, start, walk
from nmsolve.learn.pipeline.window import reach_of
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.learn.torch_state import arrays_of, new_optimiser, plain, require_torch, restored, tensor
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.reward import USUAL, Reward
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Training chains have seeds from here on; chains to measure with have smaller ones.
FIRST_SEED = 2**30
#: Chains set aside by which the best policy is known, and updates between two times.
VALID, OFTEN = 24, 20
#: The gap of no policy: none has been compared yet.
UNKNOWN = 1e9
#: Largest advantage that counts, in standard deviations.
MOST_ADVANTAGE = 4.0
#: Steps of one episode that are learned from, at most.
STEPS = 400


@dataclass(frozen=True)
class Settings:
    """How a policy is trained.

    Attributes
    ----------
    cores : numbers of cores, one drawn per chain; the smaller ones come first
    layers : least and most layers of a chain
    chains, episodes : chains per update, episodes side by side on each
    above : largest target, as a part above the load of the fastest chain
    curriculum : updates until all numbers of cores and layers are drawn
    imitation, imitation_rate : updates that imitate the best action per step, before REINFORCE, and step of Adam in them, which
        falls evenly to that of REINFORCE
    rate, whole, entropy : of REINFORCE: step of Adam, weight of the whole's reward, weight of the entropy
    weights : of the reward
    """

    cores: tuple[int, ...] = (8, 12, 16, 24, 32, 48, 64)
    layers: tuple[int, int] = (20, 200)
    seed: int = 0
    chains: int = 4
    episodes: int = 4
    above: float = 0.1
    curriculum: int = 100
    imitation: int = 1200
    imitation_rate: float = 3e-3
    rate: float = 3e-4
    whole: float = 0.1
    entropy: float = 1e-3
    weights: Reward = USUAL

    def __post_init__(self) -> None:
        if not self.cores or min(self.cores) < 2 or max(self.cores) > 1024:
            raise InputError(f"cores {self.cores}", "--cores", "numbers from 2 to 1024")
        if not 1 <= self.layers[0] <= self.layers[1] <= 2000:
            raise InputError(f"layers {self.layers}", "--layers", "LEAST-MOST, from 1 to 2000")

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {**asdict(self), "weights": self.weights.weights}


class Steps(NamedTuple):
    """Steps of episodes: features (T, F), open choices (T, C), the choice (T,), what the teacher allows (T, C), credits (T,)."""

    features: FloatArray
    open: BoolArray
    choice: IntArray
    right: BoolArray
    credit: FloatArray


class Chain:
    """A chain to play on.

    Attributes
    ----------
    fastest : load of the fastest plan in ticks
    """

    def __init__(self, seed: int, cores: int, layers: int, weights: Reward = USUAL) -> None:
        problem = random_chain(seed, cores, layers)
        self.env = GroupsEnv(problem, reward=weights)
        plan = ChainPartition(problem).in_order(np.arange(layers))[0]
        assert plan is not None  # it has no memory limit
        self.fastest = objective(problem, plan) / self.env.runs.unit

    def gap(self, arrays: Mapping[str, FloatArray]) -> float:
        """Return how far the best of the greedy episodes is above the optimum."""
        loads = [e.load for e in episodes(self.env, arrays, 0, lambda: False, draws=False)]
        return min([float(self.env.unit[0]), *loads]) / (self.fastest * self.env.runs.unit) - 1.0


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
        self._best, self._kept = UNKNOWN, self._arrays()
        if state is not None:
            restored(state, self.weights, self.optimiser)
            self.rows, self._best = rows_of(state), float(state.facts["best"])
            self._kept = {name: state.arrays[f"best/{name}"] for name in self.weights}
        self._valid: list[Chain] = []

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.rows)

    @property
    def imitates(self) -> bool:
        """The next update imitates."""
        return self.updates < self.settings.imitation

    def _arrays(self) -> dict[str, FloatArray]:
        return {name: plain(w) for name, w in self.weights.items()}

    def update(self) -> dict[str, float]:
        """Play episodes on new chains, learn from them, and return the new line of the curve."""
        started, how = time.process_time(), self.settings
        rng = np.random.default_rng([how.seed, self.updates])
        played = [self._play(self._chain(rng), rng) for _ in range(how.chains)]
        steps = Steps(*(np.concatenate(parts) for parts in zip(*(p for p, _ in played), strict=True)))
        right = (
            float(steps.right[np.arange(len(steps.choice)), steps.choice].mean())
            if len(steps.choice)
            else 1.0
        )
        if len(steps.choice):
            self._learn(steps)
        valid = self.rows[-1]["valid"] if self.rows else 0.0
        if (self.updates + 1) % OFTEN == 0:
            valid = self._validated()
        before = self.rows[-1]["cpu_seconds"] if self.rows else 0.0
        row = {
            "update": float(self.updates + 1), "cpu_seconds": before + time.process_time() - started,
            "episodes": float((self.updates + 1) * how.chains * how.episodes),
            "reward": float(np.mean([reward for _, reward in played])), "right": right, "valid": valid,
        }  # fmt: skip
        self.rows.append(row)
        return row

    def _chain(self, rng: np.random.Generator) -> Chain:
        """Return a new chain, short and for few cores at first."""
        how = self.settings
        part = min(1.0, (self.updates + 1) / max(1, how.curriculum))
        cores = sorted(how.cores)[: max(1, round(part * len(how.cores)))]
        least, most = how.layers
        layers = int(rng.integers(least, least + round(part * (most - least)) + 1))
        return Chain(int(rng.integers(FIRST_SEED, 2**31)), int(rng.choice(cores)), layers, how.weights)

    def _validated(self) -> float:
        """Return the mean gap of chains set aside; keep the policy if it is the best so far."""
        how, arrays = self.settings, self._arrays()
        for k in range(len(self._valid), VALID):
            rng = np.random.default_rng([FIRST_SEED, k])
            cores, layers = int(rng.choice(how.cores)), int(rng.integers(how.layers[0], how.layers[1] + 1))
            self._valid.append(Chain(FIRST_SEED - 1 - k, cores, layers))
        gap = float(np.mean([chain.gap(arrays) for chain in self._valid]))
        if gap < self._best:
            self._best, self._kept = gap, arrays
        return gap

    def _play(self, chain: Chain, rng: np.random.Generator) -> tuple[Steps, float]:
        """Return those steps of some episodes on a chain that are worth learning from, and the mean reward of the episodes."""
        how, env = self.settings, chain.env
        runs, rules, net = env.runs, rules_of(env), network(self._arrays())
        target = chain.fastest * (1.0 + rng.uniform(0.0, how.above))
        reach = reach_of(runs, env.problem.cores, target)
        need = needs_of(reach)
        played: list[Episode] = []
        for _ in range(how.episodes):
            begin = start(len(runs.order), env.problem.cores)
            played.append(walk(runs, reach, rules, net, begin, 1.0, True, rng))
        rewards = np.array([episode.reward for episode in played])
        found = []
        for episode, reward in zip(played, rewards.tolist(), strict=True):
            right, least = lessons(reach, need, episode.view)
            right &= episode.open
            spent = costs_of(runs, reach, episode.last, episode.view)
            credit = np.minimum(least - spent, 0.0) / env.problem.cores + how.whole * (
                reward - rewards.mean()
            )
            chosen = np.flatnonzero(right.any(axis=1) & (right != episode.open).any(axis=1))
            if len(chosen) > STEPS:
                chosen = rng.choice(chosen, STEPS, replace=False)
            found.append(
                Steps(
                    episode.features[chosen],
                    episode.open[chosen],
                    episode.choice[chosen],
                    right[chosen],
                    credit[chosen],
                )
            )
        return Steps(*(np.concatenate(parts) for parts in zip(*found, strict=True))), float(rewards.mean())

    def _learn(self, steps: Steps) -> None:
        """One step of Adam: towards the teacher's choices, or along the log-probability of every choice times its credit."""
        torch, how = require_torch(), self.settings
        found = scores(self.weights, tensor(steps.features, torch.float32), torch)
        log = torch.log_softmax(found.masked_fill(~tensor(steps.open), -1e9), dim=1)
        if self.imitates:
            aim = torch.logsumexp(log.masked_fill(~tensor(steps.right), -1e9), dim=1).mean()
            rate = how.rate + (how.imitation_rate - how.rate) * (1.0 - self.updates / how.imitation)
        else:
            gain = steps.credit - steps.credit.mean()
            gain = np.clip(gain / max(float(gain.std()), 1e-9), -MOST_ADVANTAGE, MOST_ADVANTAGE)
            chosen = log.gather(1, tensor(steps.choice, torch.int64)[:, None])[:, 0]
            entropy = -(torch.exp(log) * log).sum(dim=1).mean()
            aim = (chosen * tensor(gain, torch.float32)).mean() + how.entropy * entropy
            rate = how.rate
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        (-aim).backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self.optimiser.step()

    @property
    def how(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return self.settings.plain

    def checkpoint(self) -> Checkpoint:
        """Return the best policy so far by the chains set aside; before these were asked, the policy as it is."""
        arrays = self._kept if self._best < UNKNOWN else self._arrays()
        return Checkpoint("m5", arrays, {"size": asdict(self.size), "how": self.how, "updates": self.updates})

    def state(self) -> Checkpoint:
        """Return what training goes on from."""
        arrays = arrays_of(self.weights, self.optimiser) | {
            f"best/{name}": a for name, a in self._kept.items()
        }
        return Checkpoint("m5", arrays, {"how": self.how, "rows": self.rows, "best": self._best})


def command_of(settings: Settings, updates: int | None) -> str:
    """Return the command that trains in this way once more."""
    cores, layers = ",".join(map(str, settings.cores)), "-".join(map(str, settings.layers))
    text = f"nmsolve train m5 --cores {cores} --layers {layers} --seed {settings.seed} --updates {updates}"
    weights = ",".join(f"{name}={value:g}" for name, value in settings.weights.weights.items())
    return text if settings.weights == USUAL else f"{text} --reward {weights}"


def train(settings: Settings, files: Training, *, resume: bool = False, **limits: Unpack[Limits]) -> Trainer:
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(settings, state=files.begin("m5", settings.plain, resume))
    shown = dict(trainer.how)
    if not resume and limits.get("updates") is not None:
        shown = {"command": command_of(settings, limits["updates"])} | shown
    run_training(trainer, files, "Policy of method M5: a pipeline cut by actions", shown, **limits)
    return trainer
