"""When the command began, and how much of its time is left: ``--time-limit`` counts from here, imports included."""

from __future__ import annotations

import time

#: Wall clock (``time.monotonic()``) at start-up. Read it only through this module: tests set it for each call.
STARTED = time.monotonic()


def spent() -> float:
    """Return seconds since the command began."""
    return time.monotonic() - STARTED


def end(limit: float) -> float:
    """``time.monotonic()`` at which a limit of ``limit`` seconds expires."""
    return STARTED + limit


def left(limit: float, least: float = 0.1) -> float:
    """Return seconds that are left of a limit; ``least`` of them however late it is."""
    return max(least, limit - spent())
