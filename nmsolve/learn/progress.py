"""What training writes beside a model: its curve as CSV, the state to go on from, and a card for people."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypedDict

from nmsolve.learn.checkpoint import Checkpoint, load, save
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic

#: CPU seconds between two writings of all files.
KEEP = 60.0


class Learner(Protocol):
    """A model in training: what :func:`run_training` asks of it."""

    rows: list[dict[str, float]]

    @property
    def updates(self) -> int:
        """Return the number of updates so far."""

    def update(self) -> Mapping[str, float]:
        """Make one update, and return its line of the curve."""

    def checkpoint(self) -> Checkpoint:
        """Return the model as it is."""

    def state(self) -> Checkpoint:
        """Return what training goes on from."""


class Limits(TypedDict, total=False):
    """When training ends, and who is told of every update."""

    seconds: float
    updates: int | None
    say: Callable[[Mapping[str, float]], None]


@dataclass(frozen=True)
class Training:
    """Files of one training run, all beside the model ``path``."""

    path: Path

    @property
    def state(self) -> Path:
        """The model with the optimiser's memory, to go on from."""
        return self.path.with_name(f"{self.path.stem}.train.safetensors")

    @property
    def curve(self) -> Path:
        """One line per update."""
        return self.path.with_name(f"{self.path.stem}.csv")

    @property
    def card(self) -> Path:
        """The model card."""
        return self.path.with_name(f"{self.path.stem}.md")

    def begin(self, method: str, how: Mapping[str, Any], resume: bool) -> Checkpoint | None:
        """Return the state to go on from with ``resume``, else None.

        Raises
        ------
        InputError : nothing to go on from, or it was trained in another way than ``how``
        """
        if not resume:
            return None
        state = load(self.state, method)
        if state.facts.get("how") != json.loads(json.dumps(how)):
            raise InputError(
                "it was trained with other options", str(self.state), "the same ones, or no --resume"
            )
        return state

    def keep(
        self, state: Checkpoint, model: Checkpoint, rows: Sequence[Mapping[str, float]], card: str
    ) -> None:
        """Write all files."""
        save(self.state, state)
        save(self.path, model)
        if rows:
            lines = [",".join(rows[0]), *(",".join(f"{v:.6g}" for v in row.values()) for row in rows)]
            write_atomic(self.curve, "\n".join(lines) + "\n")
        write_atomic(self.card, card)


def run_training(
    learner: Learner,
    files: Training,
    title: str,
    how: Mapping[str, Any],
    *,
    seconds: float = 600.0,
    updates: int | None = None,
    say: Callable[[Mapping[str, float]], None] = lambda row: None,
) -> None:
    """Train for this many CPU seconds or updates more, whatever ends first; write all files now and then and at the end.

    An interrupt ends the training and keeps what was learned. ``title`` is that of the card, ``how`` its settings.
    """

    def keep() -> None:
        model, last = learner.checkpoint(), learner.rows[-1] if learner.rows else {}
        files.keep(learner.state(), model, learner.rows, card_of(title, model, how, last))

    first, begun = learner.updates, time.process_time()
    kept = now = begun
    try:
        while now - begun < seconds and (updates is None or learner.updates - first < updates):
            say(learner.update())
            now = time.process_time()
            if now - kept > KEEP:
                kept = now
                keep()
    except KeyboardInterrupt:
        pass  # what was learned so far is kept below
    keep()


def rows_of(state: Checkpoint) -> list[dict[str, float]]:
    """Return the lines of the curve that a state was saved with."""
    return [dict(row) for row in state.facts["rows"]]


def card_of(title: str, model: Checkpoint, how: Mapping[str, Any], last: Mapping[str, float]) -> str:
    """Return the model card: what it is, how it was made, and the last line of its curve."""
    size = sum(a.size for a in model.arrays.values())
    lines = [
        f"# {title}",
        "",
        f"Hash `{model.hash}`, {size} numbers of 32 bits.",
        "",
        "| trained with | |",
        "|---|---|",
    ]
    lines += [f"| {name} | {value} |" for name, value in how.items()]
    lines += [
        "",
        "| after the last update | |",
        "|---|---|",
        *(f"| {k} | {v:.6g} |" for k, v in last.items()),
        "",
    ]
    return "\n".join(lines)
