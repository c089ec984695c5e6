"""What training writes beside a model: its curve as CSV, the state to go on from, and a card for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmsolve.learn.checkpoint import Checkpoint, load, save
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic


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


def weights_of(text: str, known: Sequence[str]) -> dict[str, float]:
    """Return the weights of a reward's terms that a text like ``deadlock=0,hops=0.5`` names.

    Raises
    ------
    InputError : a term that is not ``known``, or no number
    """
    out: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = (p.strip() for p in part.partition("="))
        if name not in known:
            raise InputError(f"the reward has no term {name!r}", "--reward", "one of " + ", ".join(known))
        try:
            out[name] = float(value)
        except ValueError:
            raise InputError(f"the weight {part!r}", "--reward", "NAME=NUMBER, with commas") from None
    return out
