"""The events of an earlier run, read again from its folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nmsolve.model.bound import Event
from nmsolve.model.files import decode_json, read_limited

EVENTS = "events.jsonl"


class _Line(msgspec.Struct):
    """A line of events.jsonl, as far as a timeline needs it."""

    type: str = ""
    seconds: float = 0.0
    engine: str = ""
    objective: float | None = None
    bound: float | None = None
    move: str = ""
    text: str = ""


def read_events(folder: Path) -> list[Event]:
    """Return the events in a run's ``folder``; none where it has no events.jsonl.

    Raises
    ------
    InputError : a line that is no event
    """
    path = folder / EVENTS
    if not path.exists():
        return []
    lines = [decode_json(line, _Line, path) for line in read_limited(path).splitlines() if line.strip()]
    return [Event(e.seconds, e.type, e.engine, e.objective, e.bound, e.move, e.text) for e in lines]


def ending(report: dict[str, object] | None) -> tuple[float, float | None]:
    """Return the seconds that a run took, and its bound, as its report says them; 0 and None where it does not."""
    said = report or {}
    seconds, bound = (said.get(key) for key in ("wall_seconds", "bound"))
    return (
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        float(bound) if isinstance(bound, int | float) else None,
    )
