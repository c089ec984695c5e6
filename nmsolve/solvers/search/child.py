"""An engine in a freshly started process that streams its results out and can be killed."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import tempfile
from typing import Any

from nmsolve.model import clock
from nmsolve.model.engine import Engine
from nmsolve.model.host.pipes import Inbox
from nmsolve.model.host.processes import KILL, PASSES_FILES, end_group, how_it_ended, wait_for
from nmsolve.solvers.search.child_main import STDOUT, Order
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.shared import Blackboard, SharedPickle

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from nmsolve.solvers.search.child_main import main; main()"
#: Numerical libraries in a child use as many threads as the engine, unless the user set something else.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Seconds a child may overrun the end of the run before it is terminated, and then before it is killed.
GRACE, LAST_GRACE = 0.5, 0.3
#: Seconds a child may overrun its own share while others still work: it may be loading a library.
SHARE_GRACE = 3.0


class Child:
    """One engine in one process. The parent polls it and never waits for it.

    The process is the head of its own process group: Ctrl-C in the terminal does not reach it, and whatever it
    starts dies with it. It also dies with the parent, by the kernel's hand.

    Parameters
    ----------
    engine, seed, workers, span, last, memory_limit : see :class:`nmsolve.solvers.search.child_main.Order`
    shared : the pickled checker
    board : what children know of the run
    size : length of a solution
    """

    def __init__(
        self,
        engine: Engine,
        *,
        seed: int,
        workers: int,
        span: float,
        last: float,
        memory_limit: int | None,
        shared: SharedPickle,
        board: Blackboard,
        size: int,
    ) -> None:
        self.cpu = 0.0
        self._memory_limit = memory_limit
        self._stop_at = last
        self._asked = self._killed = False
        self._compiling = self._hurried = False
        #: True once it is gone and its pipe is closed.
        self.closed = False
        #: True if another program killed it, not for the memory that it took.
        self.shot = False
        self._ending: Ending | None = None
        self._buffer = bytearray()
        self._messages: list[Any] = []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the child
        near, out_fd = os.pipe()
        handed = [fd for fd in (shared.fd, board.fd, out_fd) if PASSES_FILES and isinstance(fd, int)]
        order = Order(
            engine, seed, workers, span, last, clock.stood(), memory_limit, shared.fd, board.fd, size,
            out_fd if PASSES_FILES else STDOUT, os.getpid(),
        )  # fmt: skip
        try:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(pickle.dumps(order))
                stdin.seek(0)
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, *sys.path],
                    stdin=stdin,
                    stdout=subprocess.DEVNULL if PASSES_FILES else out_fd,
                    stderr=self._errors,
                    env={**dict.fromkeys(THREADS, str(workers)), **os.environ},
                    pass_fds=handed,
                    process_group=0,
                )
        except BaseException:
            os.close(near)
            self._errors.close()
            raise
        finally:
            os.close(out_fd)
        #: What the child sends.
        self.inbox = Inbox(near)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def stop_by(self, moment: float) -> None:
        """End the run early: count the grace period from ``moment`` (``clock.now()``) at the latest."""
        self._stop_at = min(self._stop_at, moment)

    def stop_now(self, less_grace: float) -> None:
        """End the run now, even if the child compiles, and shorten its grace period by ``less_grace`` seconds."""
        self._hurried = True
        self._hold(False)
        self.stop_by(clock.now() - less_grace)

    def messages(self) -> list[Any]:
        """Whole messages that have arrived since the last call.

        Each is ``("offer", solution, move)``, ``("bound", bound)`` or ``("note", text)``.
        """
        self._receive()
        out, self._messages = self._messages, []
        return out

    def _receive(self) -> None:
        """Read what is there without waiting; an incomplete message stays in the buffer."""
        self._buffer += self.inbox.take()
        while len(self._buffer) >= 8:
            (length,) = struct.unpack_from("<q", self._buffer)
            if len(self._buffer) < 8 + length:
                break
            message = pickle.loads(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            if message[0] == "end":
                self._ending = message[1]
            elif message[0] == "ready":
                self.stop_by(message[1] + SHARE_GRACE - GRACE)
            elif message[0] == "compiling":
                self._hold(message[1])
            else:
                self._messages.append(message)

    def ended(self) -> Ending | None:
        """Return how the process ended, or None while it runs; terminates and then kills one that overruns.

        Call :meth:`messages` once more after the end: what the child sent before it died is still there.
        """
        if self._process.returncode is None:
            ended = wait_for(self._process)
            if ended is None:
                self._press()
                return None
            self._book(ended)
        return self._describe(self._process.returncode)

    def kill(self) -> None:
        """End the process and everything it started, at once, and free what it used. Harmless if it is gone."""
        if self._process.returncode is None:
            self._end(hard=True)
            self._book(wait_for(self._process, wait=True))
        if not self.closed:
            self.inbox.close()
            self._errors.close()
        self.closed = True

    def _hold(self, compiling: bool) -> None:
        """Let the clock stand still here, too, while the child compiles; not once it has ended, or has to at once."""
        compiling &= self._process.returncode is None and not self._hurried
        if compiling != self._compiling:
            self._compiling = compiling
            (clock.hold if compiling else clock.go_on)()

    def _book(self, ended: tuple[int, float] | None) -> None:
        """Keep CPU seconds of the process, which is gone, and end what it started."""
        self.cpu = 0.0 if ended is None else ended[1]
        self._hold(False)
        end_group(self._process)

    def _press(self) -> None:
        """Soft stop is the child's own business until the grace period is over."""
        late = clock.now() - self._stop_at
        if late > GRACE + LAST_GRACE and not self._killed:
            self._end(hard=True)
        elif late > GRACE and not self._asked:
            self._end(hard=False)

    def _end(self, hard: bool) -> None:
        self._asked, self._killed = True, self._killed or hard
        end_group(self._process, hard)

    def _describe(self, code: int) -> Ending:
        self._receive()
        if self._ending is not None:
            return self._ending
        if self._asked:
            return Ending("killed", "overran its time and was killed")
        last = self._last_error()
        how = how_it_ended(code)
        starved = any(sign in last for sign in ("MemoryError", "bad_alloc", "annot allocate memory"))
        if starved or (self._memory_limit is not None and code < 0):
            limit = "" if self._memory_limit is None else f" (limit {self._memory_limit / 2**20:.0f} MiB)"
            return Ending(
                "memory", f"{'out of memory' if starved else 'probably out of memory'}{limit}; {how}"
            )
        if code == -KILL:
            self.shot = True
            how += " (by a person, or by the system for lack of memory)"
        return Ending("failed", f"the process died: {how}" + (f"; {last}" if last else ""))

    def _last_error(self) -> str:
        """Last line of what the child wrote to its standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4096))
        lines = [
            line.strip() for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()
        ]
        return lines[-1][:200] if lines else ""
