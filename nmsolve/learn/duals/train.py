"""Training of predicted multipliers: not towards multipliers that an ascent once found, but towards better bounds.

Multipliers of equal worth are many, so those of one ascent are a poor teacher. A bound is concave in its multipliers and its
supergradient is at hand; through the derivatives of the network it becomes one by the weights. The mean bound over the training
graphs is climbed with Adam (Kingma and Ba 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Unpack

import numpy as np

from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.duals.model import LEARNED, Arrays, first_arrays, predict, slopes
from nmsolve.learn.progress import Limits, Training, rows_of, run_training
from nmsolve.model.types import FloatArray

#: Adam: memory of slopes and of their squares, and what keeps its quotient finite.
MEMORY, SQUARES, TINY = 0.9, 0.99, 1e-8
#: Longest slope of one batch.
STEEP = 1.0


@dataclass(frozen=True)
class TrainingGraph:
    """A training graph.

    Attributes
    ----------
    features : (n, WIDTH)
    unit : mean load, the unit of multipliers; ``worth``: what the bound is divided by
    evaluate : (shift (n,), whole) -> value and its supergradient by both, in the graph's own units
    """

    features: FloatArray
    unit: float
    worth: float
    evaluate: Callable[[FloatArray, float], tuple[float, FloatArray, float]]


@dataclass(frozen=True)
class Settings:
    """How predictions are trained; equal settings and numbers of updates give equal arrays."""

    method: str
    families: tuple[str, ...]
    nodes: tuple[int, ...]
    seed: int = 0
    pool: int = 192
    batch: int = 6
    rate: float = 3e-3


class Trainer:
    """Adam over the mean bound of batches of training_graphs, drawn without replacement."""

    def __init__(
        self, how: Settings, training_graphs: Sequence[TrainingGraph], state: Checkpoint | None = None
    ) -> None:
        self.how, self.training_graphs = how, list(training_graphs)
        self.arrays: Arrays = first_arrays(np.concatenate([x.features for x in training_graphs]), how.seed)
        self.first = {name: np.zeros_like(self.arrays[name]) for name in LEARNED}
        self.second = {name: np.zeros_like(self.arrays[name]) for name in LEARNED}
        self.updates, self.spent, self.rows = 0, 0.0, list[dict[str, float]]()
        if state is not None:
            self._restore(state)

    def update(self) -> dict[str, float]:
        """Make one step, and return its line of the curve."""
        began = process_time()
        total = {name: np.zeros_like(self.arrays[name]) for name in LEARNED}
        values = []
        picks = self._batch()
        for training_graph in picks:
            passed = predict(self.arrays, training_graph.features)
            value, by_shift, by_whole = training_graph.evaluate(
                training_graph.unit * passed.shift, training_graph.unit * passed.whole
            )
            factor = training_graph.unit / (training_graph.worth * len(picks))
            for name, slope in slopes(self.arrays, passed, factor * by_shift, factor * by_whole).items():
                total[name] += slope
            values.append(value / training_graph.worth)
        self._step(total)
        self.updates += 1
        self.spent += process_time() - began
        row = {"update": float(self.updates), "cpu_seconds": self.spent, "bound": float(np.mean(values))}
        self.rows.append(row)
        return row

    def checkpoint(self) -> Checkpoint:
        """Return the model as it is."""
        facts = {"how": asdict(self.how), "updates": self.updates}
        return Checkpoint(f"duals-{self.how.method}", dict(self.arrays), facts)

    def state(self) -> Checkpoint:
        """Return the model with the optimiser's memory and the curve."""
        arrays = dict(self.arrays)
        for name in LEARNED:
            arrays[f"first.{name}"], arrays[f"second.{name}"] = self.first[name], self.second[name]
        facts = {"how": asdict(self.how), "updates": self.updates, "spent": self.spent, "rows": self.rows}
        return Checkpoint(f"duals-{self.how.method}", arrays, facts)

    def _restore(self, state: Checkpoint) -> None:
        self.arrays = {name: np.asarray(state.arrays[name], np.float64) for name in self.arrays}
        self.first = {name: np.asarray(state.arrays[f"first.{name}"], np.float64) for name in LEARNED}
        self.second = {name: np.asarray(state.arrays[f"second.{name}"], np.float64) for name in LEARNED}
        self.updates, self.spent = int(state.facts["updates"]), float(state.facts["spent"])
        self.rows = rows_of(state)

    def _batch(self) -> list[TrainingGraph]:
        """Return the training_graphs of this update: a new order of all of them in every pass."""
        size = min(self.how.batch, len(self.training_graphs))
        per_pass = len(self.training_graphs) // size
        turn, part = divmod(self.updates, per_pass)
        order = np.random.default_rng([self.how.seed, turn]).permutation(len(self.training_graphs))
        return [self.training_graphs[i] for i in order[part * size : (part + 1) * size].tolist()]

    def _step(self, slope: Mapping[str, FloatArray]) -> None:
        steep = float(np.sqrt(sum(float((s**2).sum()) for s in slope.values())))
        factor = min(1.0, STEEP / max(steep, 1e-300))
        time = self.updates + 1
        rate = self.how.rate / np.sqrt(1 + time / 200)
        for name in LEARNED:
            now = factor * slope[name]
            self.first[name] = MEMORY * self.first[name] + (1 - MEMORY) * now
            self.second[name] = SQUARES * self.second[name] + (1 - SQUARES) * now**2
            mean = self.first[name] / (1 - MEMORY**time)
            square = self.second[name] / (1 - SQUARES**time)
            self.arrays[name] = self.arrays[name] + rate * mean / (np.sqrt(square) + TINY)
            # as they are written: a training that is resumed goes on from the same numbers
            for kept in (self.arrays, self.first, self.second):
                kept[name] = kept[name].astype(np.float32).astype(np.float64)


def train(
    how: Settings, training_graphs: Callable[[Settings], Sequence[TrainingGraph]], files: Training, *, resume: bool = False,
    **limits: Unpack[Limits],
) -> Trainer:  # fmt: skip
    """Train within ``limits`` as :func:`.progress.run_training`, and return the trainer."""
    trainer = Trainer(how, training_graphs(how), files.begin(f"duals-{how.method}", asdict(how), resume))
    run_training(trainer, files, f"Predicted multipliers of the bound {how.method}", asdict(how), **limits)
    return trainer
