"""When a command or a call began, and how much of its time is left: ``--time-limit`` counts from there, imports included."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from nmsolve.model.clock import now

#: More seconds than a process takes to come here.
LONGEST = 60.0


def _age() -> float:
    """Return seconds since this process began, where the system tells (Linux): a busy machine loads Python for a while."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rsplit(b")", 1)[1].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return 0.0
    return age if 0 < age < LONGEST else 0.0


#: When the command began (``now()``). Read it only through this module: tests set it for each call.
STARTED = now() - _age()


@dataclass(frozen=True)
class Clock:
    """The time of one run that began at ``started`` (``now()``)."""

    started: float

    def spent(self) -> float:
        """Return seconds since the run began."""
        return now() - self.started

    def end(self, limit: float) -> float:
        """``now()`` at which a limit of ``limit`` seconds expires."""
        return self.started + limit

    def left(self, limit: float, least: float = 0.1) -> float:
        """Return seconds that are left of a limit; ``least`` of them however late it is."""
        return max(least, limit - self.spent())


def of_command() -> Clock:
    """Return the clock of the command."""
    return Clock(STARTED)


def spent() -> float:
    """Return seconds since the command began."""
    return of_command().spent()


def end(limit: float) -> float:
    """``now()`` at which a limit of ``limit`` seconds expires."""
    return of_command().end(limit)


def left(limit: float, least: float = 0.1) -> float:
    """Return seconds that are left of a limit; ``least`` of them however late it is."""
    return of_command().left(limit, least)
