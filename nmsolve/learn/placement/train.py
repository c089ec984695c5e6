"""Training of the placement policy: the expected cost of what the rounds end with, differentiated through all of them.

A graph's cost counts in units of its own reference: what the untrained policy finds after a short local search (a per-graph
baseline). With ``imitation`` the policy also learns the placement that its own answer becomes by such a search.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.local_search import new_local_search
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.placement.board import Board, board_of
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.draft import PLACES, Draft
from nmsolve.learn.placement.features import Traffic, traffic_of
from nmsolve.learn.placement.network import Scores, Seen, Size, first_arrays, refine
from nmsolve.learn.placement.starts import LAYOUTS, start_scores
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.learn.torch_state import arrays_of, new_optimiser, plain, require_torch, restored, tensor
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Seeds of training graphs begin here; held-out graphs have smaller ones.
FIRST_SEED = 1000
#: Price of a node too many on a core, in mean costs of a node: prices have not quite settled where the rounds end.
OVERFULL = 3.0


@dataclass(frozen=True)
class Settings:
    """How the policy is trained.

    Attributes
    ----------
    families : generators of graphs (``nmsolve generate``)
    sides : rows and columns of boards, in turn; graphs have as many nodes as these have cores
    rounds : of the network
    pool : different graphs per family and side
    batch : graphs per update, all of one side
    imitation : weight of the placements that local search makes of the policy's own
    rate : step of Adam; it falls with the square root of the number of updates, from 100 on
    """

    families: tuple[str, ...] = ("mesh-geo", "mesh-comm", "mesh-layered")
    sides: tuple[int, ...] = (8, 6, 8, 10)
    rounds: int = 24
    seed: int = 0
    pool: int = 64
    batch: int = 12
    imitation: float = 1.0
    rate: float = 1e-2

    def __post_init__(self) -> None:
        if not self.sides or not all(3 <= side <= 16 for side in self.sides):
            raise InputError(f"boards with sides {self.sides}", "--sides", "numbers from 3 to 16 with commas")
        if not 4 <= self.rounds <= 200:
            raise InputError(f"{self.rounds} rounds", "--rounds", "4 to 200")
        if not self.families:
            raise InputError("no family", "--family", "generators with commas (see `nmsolve generate`)")


class PlacementTrainingGraph(NamedTuple):
    """A training graph on its board; ``reference`` is the cost that its costs are divided by."""

    problem: MappingProblem
    data: PlacementData
    traffic: Traffic
    board: Board
    reference: float


def task_of(family: str, seed: int, side: int, size: Size) -> PlacementTrainingGraph:
    """Return the graph of a generator with a seed, ready for training."""
    graph = generate(family, nodes=side * side, seed=seed)
    problem = MappingProblem(graph, Machine("training", (1, 1), (side, side)), node_limit=1)
    data = placement_data(problem)
    found = descended(data, Draft(problem, first_arrays(size, 0)).placement(0))
    return PlacementTrainingGraph(
        problem, data, traffic_of(graph), board_of(problem), max(placement_cost(data, found), 1e-9)
    )


def descended(data: PlacementData, core: IntArray) -> IntArray:
    """Return what a short local search makes of a placement (n,)."""
    search = new_local_search(data, 0)
    search.place(core)
    search.descend(lambda: False)
    return search.core()


class Trainer:
    """A policy in training. The same settings give the same arrays after the same number of updates.

    Parameters
    ----------
    state : what an earlier training ended with, to go on from
    """

    def __init__(self, settings: Settings, state: Checkpoint | None = None) -> None:
        self.settings, self.size = settings, Size(settings.rounds)
        self.weights, self.optimiser = new_optimiser(first_arrays(self.size, settings.seed), settings.rate)
        self.rows: list[dict[str, float]] = []
        if state is not None:
            restored(state, self.weights, self.optimiser)
            self.rows = rows_of(state)
        self._task = lru_cache(maxsize=None)(lambda f, s, side: task_of(f, s, side, self.size))

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return len(self.rows)

    def update(self) -> dict[str, float]:
        """Learn from one batch, and return the new line of the curve."""
        torch, how, started = require_torch(), self.settings, time.process_time()
        rng = np.random.default_rng([how.seed, self.updates])
        side = how.sides[self.updates % len(how.sides)]
        tasks = [
            self._task(how.families[k % len(how.families)], FIRST_SEED + int(rng.integers(how.pool)), side)
            for k in range(how.batch)
        ]
        found, matrix, seen = self._refined(tasks, rng)
        reference = tensor(np.array([t.reference for t in tasks]))
        share = _expected(found, matrix, seen, tasks) / reference
        cores = [
            decoded(t.problem, x, y, t.board.capacity)
            for t, x, y in zip(tasks, plain(found.x), plain(found.y), strict=True)
        ]
        over = (found.full - seen.capacity).clamp(min=0.0).sum(axis=(1, 2)) / (side * side)
        loss = (share + OVERFULL * over).mean()
        if how.imitation > 0:
            loss = loss + how.imitation * _missed(
                found, [descended(t.data, c) for t, c in zip(tasks, cores, strict=True)], side
            )
        for group in self.optimiser.param_groups:
            group["lr"] = how.rate / max(1.0, self.updates / 100) ** 0.5
        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 0.3)
        if bool(torch.isfinite(norm)):
            self.optimiser.step()
        costs = [placement_cost(t.data, c) / t.reference for t, c in zip(tasks, cores, strict=True)]
        before = self.rows[-1]["cpu_seconds"] if self.rows else 0.0
        row = {
            "update": float(self.updates + 1),
            "cpu_seconds": before + time.process_time() - started,
            "expected": float(share.detach().mean()),
            "overfull": float(over.detach().mean()),
            "decoded": float(np.mean(costs)),
            "gradient": float(norm),
        }
        self.rows.append(row)
        return row

    def _refined(
        self, tasks: list[PlacementTrainingGraph], rng: np.random.Generator
    ) -> tuple[Scores, Any, Seen]:
        """Return the answers for graphs of one size, their traffic (G, n, n), and what the network saw."""
        torch, board, starts = require_torch(), tasks[0].board, []
        for t in tasks:
            layout = LAYOUTS[int(rng.integers(len(LAYOUTS)))]
            noise = rng.normal(0.0, PLACES, (2, t.problem.n)) if rng.random() < 0.5 else None
            starts.append(start_scores(t.traffic.axes, board, layout, noise))
        matrix = tensor(np.stack([t.traffic.matrix.toarray() for t in tasks]), torch.float64)
        parts = (
            np.stack([t.traffic.features for t in tasks]), np.stack([t.traffic.load[:, None] for t in tasks]),
            np.stack([t.board.size[:, None] for t in tasks]), board.capacity, board.across, board.down,
        )  # fmt: skip
        seen = Seen(lambda a: matrix @ a, *(tensor(p, torch.float64) for p in parts))
        x, y = (tensor(np.stack([s[k] for s in starts]), torch.float64) for k in range(2))
        weights = {name: w.double() for name, w in self.weights.items()}
        return refine(weights, seen, x, y, torch), matrix, seen

    def checkpoint(self) -> Checkpoint:
        """Return the policy as it is now."""
        arrays = {name: plain(w) for name, w in self.weights.items()}
        return Checkpoint(
            "policy", arrays, {"size": asdict(self.size), "how": self.how, "updates": self.updates}
        )

    def state(self) -> Checkpoint:
        """Return what training goes on from."""
        return Checkpoint(
            "policy", arrays_of(self.weights, self.optimiser), {"how": self.how, "rows": self.rows}
        )

    @property
    def how(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return asdict(self.settings)


def _expected(found: Scores, matrix: Any, seen: Seen, tasks: list[PlacementTrainingGraph]) -> Any:
    """(G,) cost if every node drew its column and its row by itself, in the graphs' own units."""
    both = (found.share_x * (matrix @ found.share_x @ seen.across)).sum(axis=(1, 2))
    both = both + (found.share_y * (matrix @ found.share_y @ seen.down)).sum(axis=(1, 2))
    unit = [float(t.data.weights.sum()) / t.data.n for t in tasks]
    return 0.5 * both * tensor(np.array(unit))


def _missed(found: Scores, targets: list[IntArray], side: int) -> Any:
    """Mean negative logarithm of the probability of every node's column and row in ``targets``."""
    torch = require_torch()
    row, col = np.divmod(np.stack(targets), side)
    out = 0.0
    for share, line in ((found.share_x, col), (found.share_y, row)):
        chosen = torch.gather(share, 2, tensor(line)[..., None])
        out = out - torch.log(chosen + 1e-6).mean()
    return out


def train(settings: Settings, files: Training, *, resume: bool = False, **limits: Unpack[Limits]) -> Trainer:
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(settings, state=files.begin("policy", asdict(settings), resume))
    run_training(
        trainer,
        files,
        "Policy that places nodes by rounds of messages and an assignment",
        trainer.how,
        **limits,
    )
    return trainer
