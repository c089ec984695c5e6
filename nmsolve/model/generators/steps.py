"""The length of a step that rates of generated networks count spikes in."""

from __future__ import annotations

#: Milliseconds of a step if nothing else is said: rates are then in Hz.
SECOND = 1000.0


def step_name(step: float) -> str:
    """Return what a step of this many milliseconds adds to a network's name; nothing for a second."""
    return "" if step == SECOND else f"-{step:g}ms"
