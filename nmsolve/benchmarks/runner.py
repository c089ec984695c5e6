"""Carries out the runs of a plan, several at a time, each in its own process, which is measured and can be killed."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

import msgspec

from nmsolve.benchmarks.store import Events, Key, Outcome
from nmsolve.benchmarks.suites import Instance
from nmsolve.benchmarks.worker import Order
from nmsolve.model.host.processes import PASSES_FILES, end_group, how_it_ended, wait_for

#: A run may overrun its limit by this fraction plus this many seconds before it is killed and counts as failed.
SLACK, GRACE = 0.25, 30.0
_POLL = 0.02
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class BenchTask:
    """A run that is still to be done."""

    key: Key
    instance: Instance

    @property
    def engines(self) -> list[str] | None:
        """Engines of the method; None is automatic mode."""
        return engines_of(self.key.method)


class Answer(msgspec.Struct):
    """What a worker writes."""

    status: str
    text: str = ""
    objective: float | None = None
    bound: float | None = None
    events: Events = ()
    engines: tuple[tuple[str, str], ...] = ()


def engines_of(method: str) -> list[str] | None:
    """Return the engines of a method's name; None for ``auto``."""
    return None if method == "auto" else method.split("+")


class Process:
    """One run in its process group. It dies with this process, however that goes."""

    def __init__(self, task: BenchTask) -> None:
        self.task = task
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._stood: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        handed = [self._stood.fileno()] if PASSES_FILES else []
        one, key = task.instance, task.key
        order = Order(
            one.kind, dict(one.options), key.problem, task.engines, key.seed, key.limit, os.getpid(), *handed
        )
        path = os.pathsep.join(p for p in sys.path if p)
        with tempfile.TemporaryFile() as stdin:
            stdin.write(msgspec.json.encode(order))
            stdin.seek(0)
            self._started = time.monotonic()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "nmsolve.benchmarks.worker"],
                stdin=stdin,
                stdout=self._out,
                stderr=self._err,
                env={**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": path},
                pass_fds=handed,
                process_group=0,
            )
        self._late = False

    @property
    def pid(self) -> int:
        """Process id, which is also its group's."""
        return self._process.pid

    def outcome(self) -> Outcome | None:
        """Return what the run gave, or None while it goes on; kills one that overruns."""
        ended = wait_for(self._process)
        wall = time.monotonic() - self._started
        limit = self.task.key.limit
        if ended is None:
            said = os.pread(self._stood.fileno(), 8, 0) if PASSES_FILES else b""
            compiling = struct.unpack("<d", said or bytes(8))[0]
            if wall - compiling > limit * (1 + SLACK) + GRACE and not self._late:
                self._late = True
                self._signal()
            return None
        code, cpu = ended
        self._signal()  # whatever the run has started and left behind
        answer = self._answer(code, wall)
        data: dict[str, Any] = msgspec.structs.asdict(answer)
        return Outcome(**data, wall=wall, cpu=cpu)

    def kill(self) -> None:
        """End the run at once and forget it."""
        self._signal()
        if self._process.returncode is None:
            self._process.wait()

    def _signal(self) -> None:
        end_group(self._process)

    def _answer(self, code: int, wall: float) -> Answer:
        if self._late:
            return Answer("failed", f"killed after {wall:.0f} s: it overran its limit")
        self._out.seek(0)
        if code == 0:
            try:
                return msgspec.json.decode(self._out.read(), type=Answer)
            except msgspec.MsgspecError as error:
                return Answer("failed", f"its answer cannot be read: {error}")
        self._err.seek(0)
        lines = [
            line.strip() for line in self._err.read().decode(errors="replace").splitlines() if line.strip()
        ]
        how = how_it_ended(code)
        return Answer("failed", f"{how}: {lines[-1][:200]}" if lines else how)


def carry_out(
    tasks: Sequence[BenchTask], workers: int, start: Callable[[BenchTask], Any] = Process
) -> Iterator[tuple[BenchTask, Outcome]]:
    """Carry out ``tasks`` in this order, ``workers`` at a time, and give every outcome as soon as it is there.

    Runs that are still going on when the caller stops asking (or is interrupted) are killed and leave nothing.
    """
    waiting, running = list(reversed(tasks)), list[Any]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(start(waiting.pop()))
            time.sleep(_POLL)
            for process in list(running):
                outcome = process.outcome()
                if outcome is not None:
                    running.remove(process)
                    yield process.task, outcome
    finally:
        for process in running:
            process.kill()


def as_json(task: BenchTask, outcome: Outcome) -> dict[str, Any]:
    """Return a run as one flat JSON object, without its events."""
    data = asdict(outcome)
    del data["events"], data["engines"]
    return {"type": "run", **asdict(task.key), **data}
