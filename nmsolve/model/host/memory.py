"""Memory: what the machine has, what processes hold, and limits of a process.

Linux says all of it. macOS keeps no limit of address space; Windows has no limits, and says nothing of other processes.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: Whether what a process takes can be limited and measured.
LIMITS = resource is not None


def rarely_collect() -> None:
    """Look for garbage in rings every 50,000 new objects, not every 700, in a process of our own.

    Reading modules and compiling make many objects that are kept: a tenth of that time went into looking through them.
    """
    gc.set_threshold(50_000, 20, 100)


def machine_memory() -> int:
    """Return bytes of memory that this machine has; ``sys.maxsize`` if the system does not say."""
    if hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if sys.platform == "win32":
        status = (ctypes.c_ulonglong * 8)()  # MEMORYSTATUSEX: two words of 32 bits, then seven of 64
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):
            return int(status[1])
    return sys.maxsize


def own_peak() -> int:
    """Most bytes that this process ever held; not what its parent held before it, which the system's own count includes.

    0 where the system does not say (Windows).
    """
    own = sizes_of("self")
    if own:
        return own["VmHWM"]
    if resource is None:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most) * (1 if sys.platform == "darwin" else 1024)


def sizes_of(pid: str) -> dict[str, int]:
    """Return the sizes (bytes) in ``/proc/PID/status``; empty for a process that is gone, and where there is no /proc."""
    out: dict[str, int] = {}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if value.endswith(" kB"):
                out[name] = 1024 * int(value.split()[0])
    return out


def started_by(pid: str) -> Iterator[int]:
    """Ids of all processes that ``pid`` or one of them started and that still run."""
    tasks: list[str] = []
    with suppress(OSError):
        tasks = os.listdir(f"/proc/{pid}/task")
    for task in tasks:
        with suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield int(child)
                yield from started_by(str(child))


def address_space() -> int | None:
    """Return bytes that this process may address, None without a limit."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def limit_data(most: int) -> None:
    """Let this process own at most ``most`` bytes of private memory (what native solvers allocate counts), where that works."""
    if resource is not None:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def confine(memory: int, seconds: int) -> None:
    """Let this process take ``memory`` bytes more than it has, ``seconds`` of processor time in all, and leave no core file."""
    if resource is None:
        return
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, seconds)
    held = sizes_of("self")
    if held:
        _limit(resource.RLIMIT_AS, held["VmSize"] + memory)
        _limit(resource.RLIMIT_DATA, held["VmData"] + memory)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (soft, hard))


def c_library() -> ctypes.CDLL | None:
    """Return the C library of this process, None where there is none with names that can be looked up (Windows)."""
    return None if os.name == "nt" else ctypes.CDLL(None)
