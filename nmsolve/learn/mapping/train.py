"""Training of method M1's policy (M1.8): graphs one after another, an update once their rewards have added up to a threshold.

Published rewards are negative and would never reach one. Here a placement's reward is ``1 - loss / loss of random ones``: 0 is as
good as chance, 1 costs nothing. Rewards of graphs add up (those above 0), and after ``most_graphs`` an update follows anyway. A
policy that gets better is updated more often.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import numpy as np

from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.allocate import allocate, by_priority
from nmsolve.learn.mapping.engine import TURNS
from nmsolve.learn.mapping.features import node_features, traffic_of
from nmsolve.learn.mapping.numbering import axes_of
from nmsolve.learn.mapping.policy import Size, draw, first_arrays, gaussians, places, step
from nmsolve.learn.mapping.processor import Processor, processor, view
from nmsolve.learn.mapping.reward import Rewards, Terms
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.learn.torch_state import arrays_of, new_optimiser, plain, require_torch, restored, tensor
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray

#: Seeds of training graphs begin here; held-out graphs have smaller ones.
FIRST_SEED = 1000
#: Random placements that give the loss of chance.
CHANCE = 16


@dataclass(frozen=True)
class Settings:
    """How a policy is trained.

    Attributes
    ----------
    families : generators of graphs (``nmsolve generate``), taken in turn
    side : rows and columns of the processor; graphs have as many nodes as it has cores
    algorithm : ``ppo`` (clipped ratio, several passes) or ``gradient`` (plain policy gradient, one pass)
    terms : weights of the reward's terms
    mean, distance : as in :class:`~nmsolve.learn.mapping.policy.Size`
    pool : different graphs per family
    samples : placements drawn per graph
    threshold, most_graphs : an update follows once rewards add up to the threshold, or after this many graphs
    clip, passes, rate, entropy : PPO's epsilon, passes over a batch, step of Adam, weight of the entropy
    """

    families: tuple[str, ...] = ("mesh-geo", "mesh-comm", "mesh-layered")
    side: int = 8
    seed: int = 0
    algorithm: str = "ppo"
    terms: Terms = field(default_factory=Terms)
    mean: bool = False
    distance: str = "manhattan"
    pool: int = 256
    samples: int = 32
    threshold: float = 4.0
    most_graphs: int = 16
    clip: float = 0.2
    passes: int = 3
    rate: float = 3e-4
    entropy: float = 3e-3

    def __post_init__(self) -> None:
        if self.algorithm not in ("ppo", "gradient"):
            raise InputError(f"algorithm {self.algorithm!r}", "--algorithm", "ppo or gradient")
        if not 2 <= self.side <= 16:
            raise InputError(f"a processor of {self.side} x {self.side} cores", "--side", "2 to 16")
        if not self.families:
            raise InputError("no family", "--family", "generators with commas (see `nmsolve generate`)")


class MappingTrainingGraph(NamedTuple):
    """A training graph: its view in every turn, node order by priority, rewards, loss of chance."""

    rows: list[IntArray]
    laplacians: FloatArray
    features: FloatArray
    order: IntArray
    rewards: Rewards
    chance: float


def task_of(
    family: str, seed: int, place: Processor, machine: Machine, size: Size, terms: Terms
) -> MappingTrainingGraph:
    """Return the graph of a generator with a seed, ready for training."""
    graph = generate(family, nodes=machine.size, seed=seed)
    features, traffic = node_features(graph, size.mean), traffic_of(graph, np.arange(graph.n))
    axes = axes_of(traffic)
    views = [view(place, size.nodes, axes, traffic, features, float(t)) for t in TURNS]
    rewards, rng = Rewards(graph, machine, terms), np.random.default_rng(seed)
    random = np.stack([rng.permutation(machine.size) for _ in range(CHANCE)])
    return MappingTrainingGraph(
        [v.row for v in views], np.stack([v.laplacian for v in views]), np.stack([v.features for v in views]),
        by_priority(features[:, -1]), rewards, max(1e-9, -float(rewards(random).mean())),
    )  # fmt: skip


class Batch(NamedTuple):
    """What an update learns from: (G, N, N), (G, N, 7), actions (G, S, N), their log-probabilities, advantages (G, S)."""

    laplacians: Any
    features: Any
    action: Any
    before: Any
    advantage: Any


class Trainer:
    """A policy in training. The same settings give the same arrays after the same number of updates.

    Parameters
    ----------
    state : what an earlier training ended with, to go on from
    """

    def __init__(self, settings: Settings, size: Size | None = None, state: Checkpoint | None = None) -> None:
        torch = require_torch()
        self.settings = settings
        self.machine = Machine("training", (1, 1), (settings.side, settings.side))
        self.size = size or Size(self.machine.size, mean=settings.mean, distance=settings.distance)
        self.place = processor(self.machine, 0, self.size.nodes, self.size.distance)
        start = first_arrays(self.size, settings.seed)
        self.weights, self.optimiser = new_optimiser(start, settings.rate)
        self.rows: list[dict[str, float]] = []
        self.graphs = 0
        if state is not None:
            restored(state, self.weights, self.optimiser)
            self.rows, self.graphs = rows_of(state), int(state.facts["graphs"])
        self._line = tensor(places(len(self.place.cores), self.size.bound), torch.float32)
        self._step = step(len(self.place.cores), self.size.bound)
        self._task = lru_cache(maxsize=None)(self._make)

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.rows)

    def _make(self, number: int) -> MappingTrainingGraph:
        families = self.settings.families
        seed = FIRST_SEED + number // len(families) % self.settings.pool
        return task_of(
            families[number % len(families)], seed, self.place, self.machine, self.size, self.settings.terms
        )

    def _log_probabilities(self, laplacians: Any, features: Any) -> Any:
        """(G, N, c) logarithms of P(node, core), by rows of the padded graph."""
        torch = require_torch()
        mean, log_deviation = gaussians(self.weights, laplacians, features, self.size.bound, torch)
        away = (self._line - mean[..., None]) / (self._step * torch.exp(log_deviation))[..., None]
        return torch.log_softmax(-0.5 * away**2, dim=-1)

    def update(self) -> dict[str, float]:
        """Take graphs until the threshold is reached, learn from them, and return the new line of the curve."""
        started = time.process_time()
        batch, reward, sure = self._collect()
        clipped = self._learn(batch)
        before = self.rows[-1]["cpu_seconds"] if self.rows else 0.0
        row = {
            "update": float(self.updates + 1), "cpu_seconds": before + time.process_time() - started,
            "graphs": float(self.graphs), "reward": reward, "probability": sure, "clipped": clipped,
        }  # fmt: skip
        self.rows.append(row)
        return row

    def _collect(self) -> tuple[Batch, float, float]:
        """Return a batch, its mean reward, and the mean probability of what was drawn."""
        torch, how = require_torch(), self.settings
        rng = np.random.default_rng([how.seed, self.updates])
        parts: list[tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]] = []
        total, seen = 0.0, []
        while total < how.threshold and len(parts) < how.most_graphs:
            count = len(how.families) * how.pool
            task, turn = self._task(self.graphs % count), int(rng.integers(len(TURNS)))
            self.graphs += 1
            laplacian, features, row = task.laplacians[turn], task.features[turn], task.rows[turn]
            with torch.no_grad():
                score = self._log_probabilities(tensor(laplacian[None]), tensor(features[None]))
            log = plain(score[0]).astype(np.float64)
            action = draw(np.exp(log), how.samples, rng)
            at = allocate(np.ascontiguousarray(action[:, row]), task.order, self.place.near)
            reward = 1.0 + task.rewards(self.place.cores[at]) / task.chance
            spread = max(float(reward.std()), 1e-6)
            advantage = (reward - reward.mean()) / spread
            chosen = np.take_along_axis(log[None], action[..., None], axis=2)[..., 0]
            parts.append((laplacian, features, action, chosen, advantage))
            seen.append(float(reward.mean()))
            total += max(0.0, seen[-1])
        kinds = (torch.float32, torch.float32, torch.int64, torch.float32, torch.float32)
        stacked = (tensor(np.stack(p), t) for p, t in zip(zip(*parts, strict=True), kinds, strict=True))
        batch = Batch(*stacked)
        return batch, float(np.mean(seen)), float(torch.exp(batch.before).mean())

    def _learn(self, batch: Batch) -> float:
        """Update the network, and return the share of ratios that PPO clipped in the last pass (0 for the plain gradient)."""
        torch, how = require_torch(), self.settings
        clipped = 0.0
        for _ in range(how.passes if how.algorithm == "ppo" else 1):
            score = self._log_probabilities(batch.laplacians, batch.features)
            wide = score[:, None].expand(-1, batch.action.shape[1], -1, -1)
            chosen = torch.gather(wide, 3, batch.action[..., None])[..., 0]
            gain = batch.advantage[..., None]
            if how.algorithm == "ppo":
                # Every node's choice is an action of its own: a ratio over all nodes at once would always be clipped.
                ratio = torch.exp(chosen - batch.before)
                held = torch.clamp(ratio, 1 - how.clip, 1 + how.clip)
                aim = torch.minimum(ratio * gain, held * gain).mean()
                clipped = float((ratio != held).float().mean())
            else:
                aim = (chosen * gain).mean()
            entropy = -(torch.exp(score) * score).sum(dim=-1).mean()
            self.optimiser.zero_grad()
            (-(aim + how.entropy * entropy)).backward()
            torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
            self.optimiser.step()
        return clipped

    def checkpoint(self) -> Checkpoint:
        """Return the policy as it is now."""
        arrays = {name: plain(w) for name, w in self.weights.items()}
        return Checkpoint("m1", arrays, {"size": asdict(self.size), "how": self.how, "updates": self.updates})

    def state(self) -> Checkpoint:
        """Return what training goes on from."""
        facts = {"how": self.how, "graphs": self.graphs, "rows": self.rows}
        return Checkpoint("m1", arrays_of(self.weights, self.optimiser), facts)

    @property
    def how(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return asdict(self.settings)


def train(settings: Settings, files: Training, *, resume: bool = False, **limits: Unpack[Limits]) -> Trainer:
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(settings, state=files.begin("m1", asdict(settings), resume))
    run_training(trainer, files, "Policy of method M1: nodes to cores of a processor", trainer.how, **limits)
    return trainer
