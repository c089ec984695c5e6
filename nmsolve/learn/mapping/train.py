"""Training of method M1's policy (M1.8): graphs one after another, an update once their rewards have added up to a threshold.

Published rewards are negative and would never reach one. Here a placement's reward is ``1 - loss / loss of random ones``: 0 is as
good as chance, 1 costs nothing. The mean reward of a graph's last round adds up (if above 0), and after ``most_graphs`` an update
follows anyway. A policy that gets better is updated more often.

Training begins with imitation: for the first updates the policy learns to make exchanges that are the best one for both nodes,
which reinforcement alone would have to find by chance.

Every few updates the policy places a few graphs that it is not trained on, greedily and as in use, and the best policy of
reinforcement by their reward is what training ends with: it looks one round ahead, and what is better there may be worse after
twelve.

A graph is placed in several rounds, as in use: every round begins with the most probable placement of the one before. What a node
is credited with is what it pays itself (the published reward is stated for one node), what the node pays with which it changes
places, what its neighbours pay, and a part of the reward of the whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.sparse import block_diag

from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.engine import greedy
from nmsolve.learn.mapping.policy import Seen, Size, first_arrays, gaussians
from nmsolve.learn.mapping.reward import Rewards
from nmsolve.learn.mapping.rounds import Rounds, held_by
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.learn.torch_state import arrays_of, new_optimiser, plain, require_torch, restored, tensor
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reward_terms import PUBLISHED, RewardTerms
from nmsolve.model.types import FloatArray, IntArray

#: Seeds of training graphs begin here; held-out graphs have smaller ones.
FIRST_SEED = 1000
#: Random placements that give the loss of chance.
CHANCE = 16
#: Updates until the steps of Adam begin to fall.
STEADY = 200
#: Graphs per family by which the best policy is known, of seeds just below those of training, and updates between two times.
VALID, OFTEN = 4, 10
#: Largest advantage that counts, in standard deviations.
MOST_ADVANTAGE = 4.0


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
    rounds, samples : rounds per graph, placements drawn in each
    threshold, most_graphs : an update follows once rewards add up to the threshold, or after this many graphs
    imitation, imitation_rate : updates that imitate exchanges, before reinforcement, and step of Adam in them
    taken, near, whole : weights in a node's credit of what those pay whose cores it takes, of what its neighbours pay, and of the
        reward of the whole
    clip, passes, rate, entropy : PPO's epsilon, passes over a batch, step of Adam, which falls with the square root of the number
        of updates from :data:`STEADY` on, weight of the entropy
    """

    families: tuple[str, ...] = ("mesh-geo", "mesh-comm", "mesh-layered")
    side: int = 8
    seed: int = 0
    algorithm: str = "ppo"
    terms: RewardTerms = field(default_factory=lambda: RewardTerms(hops=4.0))
    mean: bool = False
    distance: str = "manhattan"
    pool: int = 256
    rounds: int = 6
    samples: int = 32
    threshold: float = 2.0
    most_graphs: int = 8
    imitation: int = 50
    imitation_rate: float = 5e-3
    taken: float = 1.0
    near: float = 0.0
    whole: float = 0.1
    clip: float = 0.2
    passes: int = 3
    rate: float = 1e-4
    entropy: float = 1e-3

    def __post_init__(self) -> None:
        if self.algorithm not in ("ppo", "gradient"):
            raise InputError(f"algorithm {self.algorithm!r}", "--algorithm", "ppo or gradient")
        if not 2 <= self.side <= 16:
            raise InputError(f"a processor of {self.side} x {self.side} cores", "--side", "2 to 16")
        if not self.families:
            raise InputError("no family", "--family", "generators with commas (see `nmsolve generate`)")

    @property
    def machine(self) -> Machine:
        """The processor."""
        return Machine("training", (1, 1), (self.side, self.side))

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {
            **asdict(replace(self, terms=PUBLISHED)),
            "terms": self.terms.weights,
            **({"own": [term.key for term in self.terms.own]} if self.terms.own else {}),
        }


class MappingTrainingGraph(NamedTuple):
    """A training graph as the policy sees it, its rewards, its loss of chance."""

    board: Rounds
    rewards: Rewards
    chance: float


def task_of(family: str, seed: int, machine: Machine, size: Size, terms: RewardTerms) -> MappingTrainingGraph:
    """Return the graph of a generator with a seed, ready for training."""
    graph = generate(family, nodes=machine.size, seed=seed)
    problem = MappingProblem(graph, machine, node_limit=1)
    rewards, rng = Rewards(graph, machine, terms), np.random.default_rng(seed)
    random = np.stack([rng.permutation(machine.size) for _ in range(CHANCE)])
    board = Rounds(problem, size, np.zeros(graph.n, np.int64))
    return MappingTrainingGraph(board, rewards, max(1e-9, -float(rewards(random).mean())))


class Round(NamedTuple):
    """One round of one graph: what was seen, from where, what was drawn (S, n, 2), and :func:`credits` (S, n), (S,)."""

    board: Rounds
    seen: Seen
    core: IntArray
    action: IntArray
    credit: FloatArray
    whole: FloatArray


def credits(
    task: MappingTrainingGraph, core: IntArray, likely: IntArray, found: IntArray, how: Settings
) -> tuple[FloatArray, FloatArray, float]:
    """Return (S, n) what nodes are credited with, (S,) what the whole is credited with, and the mean reward.

    Both count above their mean over the placements, in parts of the loss of chance. An exchange concerns two: a node's credit has
    that of the node on its most probable core in every placement, not only where it went there, else one that pays more so that
    another pays less would learn to stay.

    Parameters
    ----------
    core, likely : (n,) where nodes were, and their most probable cores; found : (S, n) where they got
    """
    paid = task.rewards.by_node(found)
    reward = -paid.sum(axis=1)
    own = paid.mean(axis=0) - paid
    holder = np.full(task.board.problem.cores, -1)
    holder[core] = np.arange(len(core))
    partner, there = holder[likely], holder[found]  # -1: none
    with_partner = np.where((partner >= 0) & (likely != core), own[:, partner], 0.0)
    others = np.take_along_axis(own, np.maximum(there, 0), axis=1)
    with_others = np.where((there >= 0) & (found != core) & (found != likely), others, 0.0)
    credit = own + how.taken * (with_partner + with_others)
    credit = credit + how.near * (task.board.traffic.mean @ credit.T).T
    mean = float(reward.mean())
    return (
        (credit - credit.mean(axis=0)) / task.chance,
        (reward - mean) / task.chance,
        1.0 + mean / task.chance,
    )


def advantages(credit: FloatArray, whole: FloatArray, how: Settings) -> FloatArray:
    """Return (S, N) advantages from the credits of all nodes of a batch (S, N), and what the placements they were part of are
    credited with (S, N); both in units of their deviation over the batch."""
    parts = [a / max(float(a.std()), 1e-9) for a in (credit, whole)]
    return np.asarray(np.clip(parts[0] + how.whole * parts[1], -MOST_ADVANTAGE, MOST_ADVANTAGE))


class Trainer:
    """A policy in training. The same settings give the same arrays after the same number of updates.

    Parameters
    ----------
    state : what an earlier training ended with, to go on from
    """

    def __init__(self, settings: Settings, size: Size | None = None, state: Checkpoint | None = None) -> None:
        require_torch()
        self.settings = settings
        self.machine = settings.machine
        self.size = size or Size(mean=settings.mean, distance=settings.distance)
        self.weights, self.optimiser = new_optimiser(first_arrays(self.size, settings.seed), settings.rate)
        self.rows: list[dict[str, float]] = []
        self.graphs = 0
        self._best, self._kept = -np.inf, {name: plain(w) for name, w in self.weights.items()}
        if state is not None:
            restored(state, self.weights, self.optimiser)
            self.rows, self.graphs = rows_of(state), int(state.facts["graphs"])
            self._best = float(state.facts["best"])
            self._kept = {name: state.arrays[f"best/{name}"] for name in self.weights}
        self._task = lru_cache(maxsize=None)(self._make)

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.rows)

    @property
    def imitates(self) -> bool:
        """The next update imitates exchanges."""
        return self.updates < self.settings.imitation

    def _make(self, number: int) -> MappingTrainingGraph:
        families = self.settings.families
        seed = FIRST_SEED + number // len(families)  # below 0: a graph set aside
        return task_of(families[number % len(families)], seed, self.machine, self.size, self.settings.terms)

    def update(self) -> dict[str, float]:
        """Take graphs until the threshold is reached, learn from them, and return the new line of the curve."""
        started = time.process_time()
        rounds, reward = self._collect()
        clipped, deviation = self._learn(rounds)
        valid = self.rows[-1]["valid"] if self.rows else 0.0
        if (self.updates + 1) % OFTEN == 0:
            valid = self._validated()
        before = self.rows[-1]["cpu_seconds"] if self.rows else 0.0
        row = {
            "update": float(self.updates + 1), "cpu_seconds": before + time.process_time() - started,
            "graphs": float(self.graphs), "reward": reward, "deviation": deviation, "clipped": clipped,
            "valid": valid,
        }  # fmt: skip
        self.rows.append(row)
        return row

    def _validated(self) -> float:
        """Return the mean reward of the best greedy placements of graphs set aside; keep the best policy of reinforcement."""
        arrays = {name: plain(w) for name, w in self.weights.items()}
        model, found = Checkpoint("m1", arrays, {}), []
        for number in range(VALID * len(self.settings.families)):
            task = self._task(-1 - number)
            cores = np.stack([core for _, core in greedy(task.board, model)])
            found.append(1.0 + float(task.rewards(cores).max()) / task.chance)
        reward = float(np.mean(found))
        if reward > self._best and not self.imitates:
            self._best, self._kept = reward, arrays
        return reward

    def _collect(self) -> tuple[list[Round], float]:
        """Return the rounds of a batch, and the mean reward of the graphs' last rounds."""
        how = self.settings
        arrays = {name: plain(w) for name, w in self.weights.items()}
        rng = np.random.default_rng([how.seed, self.updates])
        rounds: list[Round] = []
        seen: list[float] = []
        while sum(max(0.0, r) for r in seen) < how.threshold and len(seen) < how.most_graphs:
            task = self._task(self.graphs % (len(how.families) * how.pool))
            core = task.board.start(float(rng.uniform(0.0, 360.0)))
            reward = 0.0
            for _ in range(how.rounds):
                wish = task.board.asked(arrays, core)
                action, found = task.board.drawn(wish, 1 if self.imitates else how.samples, rng)
                likely = task.board.wished(wish)
                credit, whole, reward = credits(task, core, likely, found, how)
                if self.imitates:
                    action = task.board.agreed(core)[None]
                rounds.append(Round(task.board, wish.seen, core, action, credit, whole))
                core = task.board.greedy(wish)
            self.graphs += 1
            seen.append(reward)
        return rounds, float(np.mean(seen))

    def _learn(self, rounds: list[Round]) -> tuple[float, float]:
        """Update the network; return the share of ratios that PPO clipped in the last pass (0 for the plain gradient), and the
        mean standard deviation."""
        torch, how = require_torch(), self.settings
        seen = together(rounds)
        action = tensor(np.concatenate([r.action for r in rounds], axis=1), torch.int64)
        credit = np.concatenate([r.credit for r in rounds], axis=1)
        whole = np.concatenate([np.repeat(r.whole[:, None], len(r.core), axis=1) for r in rounds], axis=1)
        gain = tensor(
            np.ones_like(credit) if self.imitates else advantages(credit, whole, how), torch.float32
        )
        line = tensor(np.arange(how.side), torch.float32)
        if self.updates == how.imitation:
            self.optimiser.state.clear()  # what Adam knows of imitation says nothing about reinforcement
        late = self.updates - how.imitation + 1
        rate = how.imitation_rate if self.imitates else how.rate * min(1.0, STEADY / late) ** 0.5
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        before: Any = None
        clipped = deviation = 0.0
        for _ in range(how.passes if how.algorithm == "ppo" else 1):
            mean, log_deviation = gaussians(self.weights, seen, torch)
            score = log_probabilities(mean, log_deviation, line)
            chosen = log_chosen(score, action)
            before = chosen.detach() if before is None else before
            if how.algorithm == "ppo" and not self.imitates:
                aim = clipped_aim(chosen, before, gain, how.clip)
                clipped = float((abs(torch.exp(chosen.detach() - before) - 1.0) > how.clip).float().mean())
            else:
                aim = (chosen * gain).mean()
            deviation = float(torch.exp(log_deviation.detach()).mean())
            entropy = -(torch.exp(score) * score).sum(dim=-1).mean()
            self.optimiser.zero_grad()
            (-(aim + how.entropy * entropy)).backward()
            torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
            self.optimiser.step()
        return clipped, deviation

    def checkpoint(self) -> Checkpoint:
        """Return the best policy so far; the present one before the first comparison."""
        arrays = self._kept if self._best > -np.inf else {name: plain(w) for name, w in self.weights.items()}
        return Checkpoint(
            "m1", dict(arrays), {"size": asdict(self.size), "how": self.how, "updates": self.updates}
        )

    def state(self) -> Checkpoint:
        """Return what training goes on from."""
        facts = {"how": self.how, "graphs": self.graphs, "rows": self.rows, "best": self._best}
        kept = {f"best/{name}": array for name, array in self._kept.items()}
        return Checkpoint("m1", arrays_of(self.weights, self.optimiser) | kept, facts)

    @property
    def how(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return self.settings.plain


def log_probabilities(mean: Any, log_deviation: Any, line: Any) -> Any:
    """Return (N, 2, lines) logarithms of the Gaussians (N, 2) cut at ``line`` (lines,)."""
    away = (line - mean[..., None]) / require_torch().exp(log_deviation)[..., None]
    return require_torch().log_softmax(-0.5 * away**2, dim=-1)


def log_chosen(score: Any, action: Any) -> Any:
    """Return (S, N) logarithms of the probability of cores (S, N, 2): row and column are drawn on their own."""
    torch = require_torch()
    wide = score[None].expand(len(action), -1, -1, -1)
    return torch.gather(wide, 3, action[..., None])[..., 0].sum(dim=-1)


def clipped_aim(chosen: Any, before: Any, gain: Any, clip: float) -> Any:
    """Return PPO's aim, to be raised; every node's core is an action of its own: a ratio over all nodes at once would always be
    clipped.

    Parameters
    ----------
    chosen, before : (S, N) logarithms of probabilities, now and when the cores were drawn; gain : (S, N) advantages
    """
    torch = require_torch()
    ratio = torch.exp(chosen - before)
    return torch.minimum(ratio * gain, torch.clamp(ratio, 1 - clip, 1 + clip) * gain).mean()


def together(rounds: list[Round]) -> Seen:
    """Return what the network sees of several rounds as tensors, one after another."""
    torch = require_torch()
    cores = [r.board.problem.cores for r in rounds]
    first = np.concatenate([[0], np.cumsum(cores)])
    mean = _sparse(block_diag([r.board.traffic.mean for r in rounds]))
    # Every round has a row for no core, which is left out: one at the end serves all.
    held = block_diag([held_by(r.core, c)[:-1] for r, c in zip(rounds, cores, strict=True)])
    held.resize((first[-1] + 1, held.shape[1]))
    seat = _sparse(held)
    target = np.concatenate([
        np.where(r.seen.target < c, r.seen.target + f, first[-1])
        for r, c, f in zip(rounds, cores, first, strict=False)
    ])  # fmt: skip
    room = tensor(np.concatenate([*(r.board.room[:-1] for r in rounds), [1.0]]), torch.float32)
    places = tensor(target, torch.int64)

    def joined(name: str) -> Any:
        return tensor(np.concatenate([getattr(r.seen, name) for r in rounds]), torch.float32)

    def wanted(share: Any) -> Any:
        return torch.zeros_like(room).index_add(0, places.reshape(-1), share.reshape(-1)) / room

    columns = ("features", "nearby"), ("place", "pull", "spread", "away", "middle", "bound")
    features, nearby = (joined(name) for name in columns[0])
    return Seen(
        lambda a: a - torch.sparse.mm(mean, a), lambda a: torch.sparse.mm(seat, a), wanted, features, nearby, places,
        joined("barred"), tensor(rounds[0].seen.moves, torch.float32), *(joined(name) for name in columns[1]),
    )  # fmt: skip


def _sparse(matrix: Any) -> Any:
    torch, at = require_torch(), matrix.tocoo()
    index = tensor(np.stack([at.row, at.col]), torch.int64)
    return torch.sparse_coo_tensor(
        index, tensor(at.data, torch.float32), at.shape, check_invariants=True
    ).coalesce()


def train(settings: Settings, files: Training, *, resume: bool = False, **limits: Unpack[Limits]) -> Trainer:
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(settings, state=files.begin("m1", settings.plain, resume))
    run_training(trainer, files, "Policy of method M1: nodes to cores of a processor", trainer.how, **limits)
    return trainer
