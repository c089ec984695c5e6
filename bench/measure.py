"""Runs a command in a fresh process and measures all of its processes: wall and CPU seconds, peak resident memory.

Only the standard library: a process's peak begins with what its parent held when it was started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Seconds between two looks.
EVERY = 0.1


@dataclass(frozen=True)
class Use:
    """What a command took. ``ended`` is empty if it ended well, else why not, in words; ``said`` is what it printed."""

    wall: float
    cpu: float
    peak: int
    ended: str
    said: str

    def plus(self, other: Use) -> Use:
        """This command and then the other."""
        peak = max(self.peak, other.peak)
        return Use(self.wall + other.wall, self.cpu + other.cpu, peak, self.ended or other.ended, other.said)


def measure(command: Sequence[str | Path], folder: Path, seconds: float, memory: int) -> Use:
    """Run ``command``; it is ended beyond ``seconds`` (wall) or ``memory`` (bytes resident, all processes).

    Its output goes to files in ``folder``. The peak is that of the largest process as the system keeps it, or of all
    together as seen every tenth of a second, whichever is more.
    """
    start = time.monotonic()
    peak, why = 0, ""
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        run = subprocess.Popen(command, stdout=stdout, stderr=stderr)
        while not (done := os.wait4(run.pid, os.WNOHANG))[0]:
            pids = tree(run.pid)
            held = resident(pids)
            peak = max(peak, held)
            if held > memory:
                why = f"more than {memory / 2**30:.3g} GiB"
            elif time.monotonic() - start > seconds:
                why = f"more than {seconds:.4g} s"
            if why:
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                done = os.wait4(run.pid, 0)
                break
            time.sleep(EVERY)
    _, status, used = done
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode and not why:
        last = err.read_text(errors="replace").strip().splitlines()
        why = f"exit code {run.returncode}: {last[-1][:120] if last else '?'}"
    wall = time.monotonic() - start
    return Use(
        wall,
        used.ru_utime + used.ru_stime,
        max(peak, used.ru_maxrss * 1024),
        why,
        out.read_text(errors="replace"),
    )


def tree(root: int) -> list[int]:
    """A process and all that it or they have started, as far as they still run."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def resident(pids: Sequence[int]) -> int:
    """Resident bytes of processes together: the private part of each, and once what they may share."""
    private, shared = 0, 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
            private += kib.get("RssAnon", 0)
            shared = max(shared, kib.get("RssFile", 0) + kib.get("RssShmem", 0))
    return 1024 * (private + shared)
