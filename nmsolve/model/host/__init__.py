"""What the system that this process runs on has, and what is done where it lacks something.

Linux has all of it. macOS has no ``/proc`` and keeps no limit of address space. Windows has no ``fork``, no groups of processes,
no ``fcntl``, no ``resource``, and its folders cannot be opened. Nothing else asks for the name of the system.

* :mod:`.locks` locks of folders, for as long as their holder lives
* :mod:`.disk` files read and written at a place, unnamed files, folders flushed
* :mod:`.memory` memory of the machine and of processes, limits
* :mod:`.processes` processes that are waited for, ended, and end with their parent; signals
* :mod:`.pipes` what arrives from several processes
* :mod:`.lazy_parts` parts of libraries that are loaded when they are first touched
"""

from __future__ import annotations

import os

from nmsolve.model.host import locks, memory, processes


def cores() -> int:
    """Return cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lacking() -> list[str]:
    """Return what nmsolve does without on this system, one sentence each; nothing on Linux."""
    said = {
        "files are read in this process, without limits of memory and time": processes.FORKS,
        "no --memory, and children without limits": memory.LIMITS,
        "no bench: folders cannot be locked": locks.LOCKS,
        "checks and pictures are not cut off when time is up": processes.FORKS,
    }
    return [sentence for sentence, there in said.items() if not there]
