"""Processes: started in a group of their own, waited for, ended, and gone with their parent; and the signals there are.

Windows has no groups, so that only the process itself can be ended, and does not tell what it used. It has no ``fork`` either.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from nmsolve.model.host.memory import LIMITS, c_library

#: Whether a process may be split in two.
FORKS = hasattr(os, "fork")
#: Whether a new process can be given open files by number: where it can be forked.
PASSES_FILES = FORKS
#: Signals that ask for the end: Ctrl-C, the signal of batch systems, and a terminal that was closed.
ASKING: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
#: The closed terminal, which ``nohup`` has ignored.
HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
#: What no process is ended by and nothing here uses: whether a thread hears it says whether it runs Python.
HARMLESS: signal.Signals | None = getattr(signal, "SIGURG", None)
#: The system ends a process with it that used too much processor time.
CPU_TIME_UP: int | None = getattr(signal, "SIGXCPU", None)
#: Sent by a person or by the system for lack of memory; nothing can be done about it.
KILL: int = getattr(signal, "SIGKILL", 9)


def wait_for(process: subprocess.Popen[bytes], wait: bool = False) -> tuple[int, float] | None:
    """Return exit code and CPU seconds of a process that has ended (0.0 if the system does not tell); None while it runs.

    Parameters
    ----------
    wait : until it has ended
    """
    if LIMITS and hasattr(os, "wait4"):  # needs the module ``resource``
        pid, status, usage = os.wait4(process.pid, 0 if wait else os.WNOHANG)
        if pid == 0:
            return None
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime
    code = process.wait() if wait else process.poll()
    return None if code is None else (code, 0.0)


def end_group(process: subprocess.Popen[bytes], hard: bool = True) -> None:
    """End a process and all that it started (alone on Windows), at once or politely; harmless if it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
        elif process.returncode is None:
            process.kill()


def how_it_ended(code: int) -> str:
    """Return an exit code in words."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent is gone, however the parent went (Linux)."""
    library = c_library()
    if library is not None and hasattr(library, "prctl"):
        library.prctl(1, KILL, 0, 0, 0)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
