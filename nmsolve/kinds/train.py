"""What the commands of ``nmsolve train`` share: their options read, the training with its progress, the last line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from nmsolve.model.errors import InputError

#: Seconds between two lines of progress.
QUIET = 2.0


def families_of(text: str, parameter: str) -> tuple[str, ...]:
    """Return the generators that a text names, all with this ``parameter``; InputError for any other, or none."""
    from nmsolve.model.generators import GENERATORS

    families = tuple(filter(None, (f.strip() for f in text.split(","))))
    known = [kind for kind, made in GENERATORS.items() if any(p.name == parameter for p in made.parameters)]
    for family in families or ("",):
        if family not in known:
            raise InputError(f"unknown family {family!r}", "--family", "one of " + ", ".join(known))
    return families


def numbers(text: str, between: str, option: str) -> tuple[int, ...]:
    """Return the whole numbers that a text holds with ``between`` between them; InputError for any other ``option``."""
    try:
        return tuple(int(part) for part in text.split(between))
    except ValueError:
        raise InputError(
            f"{option} is {text!r}", option, f"whole numbers with {between!r} between them"
        ) from None


def trained(o: Any, how: Any, train: Callable[..., Any]) -> int:
    """Train with torch; as :func:`followed`."""
    from nmsolve.learn.torch_state import require_torch

    require_torch().set_num_threads(
        1
    )  # further threads gain nothing with networks of this size, and cost repeatability
    return followed(o, how, train)


def followed(
    o: Any,
    how: Any,
    train: Callable[..., Any],
) -> int:
    """Train, show progress, and say where the model is."""
    from nmsolve.kinds.answer import OK, prepare_file
    from nmsolve.learn.checkpoint import model_file
    from nmsolve.learn.progress import Training

    files = Training(model_file(o.out))
    prepare_file(files.path)
    trainer = train(how, files=files, seconds=o.seconds, updates=o.updates, resume=o.resume, say=_progress())
    last = trainer.rows[-1] if trainer.rows else {}
    done = {"type": "trained", "model": str(files.path), "hash": trainer.checkpoint().hash, **last}
    print(
        json.dumps(done)
        if o.json
        else f"{files.path}: {trainer.updates} updates, hash {done['hash']}; card {files.card}"
    )
    return OK


def _progress() -> Callable[[Mapping[str, float]], None]:
    """Return what prints a line now and then to standard error."""
    told = [float("-inf")]

    def say(row: Mapping[str, float]) -> None:
        if time.monotonic() - told[0] >= QUIET:
            told[0] = time.monotonic()
            print("  ".join(f"{name} {value:.6g}" for name, value in row.items()), file=sys.stderr)

    return say
