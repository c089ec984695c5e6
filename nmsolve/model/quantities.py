"""Quantities as people write them."""

from __future__ import annotations

import re

from nmsolve.model.errors import InputError, shortened

_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
#: Seconds that the clocks and timers of the system can still wait for (30 years).
LONGEST = 1e9


def seconds(given: str | float, where: str = "--time-limit") -> float:
    """Return a time limit in seconds: a number, or ``90``, ``90s``, ``5m``, ``200ms``.

    Raises
    ------
    InputError : not a positive, finite duration
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*([a-z]*)\s*", str(given), re.ASCII)
    found = float(match[1]) * _SECONDS.get(match[2], 0.0) if match else 0.0
    if isinstance(given, bool) or not 0 < found <= LONGEST:
        raise InputError(
            f"time limit {shortened(str(given))!r}", where, "a positive number of seconds, 90s or 5m"
        )
    return found


def workers(given: str | int, where: str = "--workers") -> int:
    """Return a number of workers: a whole number above 0, or ``all``: every core that this process may use.

    Raises
    ------
    InputError : neither
    """
    from nmsolve.model.host import cores

    if given == "all":
        return cores()
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit() and 1 <= int(text) < 10**6):
        raise InputError(f"workers {shortened(text)!r}", where, "a whole number above 0, or all")
    return int(text)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 node``, ``2 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
