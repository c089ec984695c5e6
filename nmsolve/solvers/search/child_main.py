"""The child's side: run one engine in this process and stream what it finds to the parent.

Started by :mod:`nmsolve.solvers.search.child` as ``python -c BOOT``; not for import elsewhere.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Engine, ScratchPlace, SubtaskWorker
from nmsolve.model.host.lazy_parts import load_lazily
from nmsolve.model.host.memory import limit_data, rarely_collect
from nmsolve.model.host.processes import die_with
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.checker import Checker
from nmsolve.solvers.search.context import run_guarded
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.memory import held_now
from nmsolve.solvers.search.shared import Blackboard, Handle, SharedPickle

#: The pipe to the parent, where open files cannot be handed over by number.
STDOUT = 1


@dataclass(frozen=True)
class Order:
    """What a child is asked to do.

    It has ``span`` seconds from the moment it is ready (loading does not count), but never more than up to
    ``last`` (``clock.now()``, a clock both processes share: in the parent's process it has stood still for ``stood`` seconds).
    """

    engine: Engine
    seed: int
    workers: int
    span: float
    last: float
    stood: float
    memory_limit: int | None
    checker_fd: Handle
    board_fd: Handle
    size: int
    out_fd: int
    parent: int


class ChildContext:
    """Implements :class:`nmsolve.model.engine.Context` in a child: reads the board, writes messages to the parent.

    Its ``scratch`` is the system's folder for temporary files: what must continue after a kill does not run in a child.
    """

    #: No engine takes turns with it.
    pace: float = 1.0

    def __init__(self, order: Order, checker: Checker, board: Blackboard) -> None:
        self._order, self._checker, self._board = order, checker, board
        self.seed, self.workers, self.scratch = order.seed, order.workers, ScratchPlace()
        self._lock = threading.Lock()
        self._deadline = min(clock.now() + order.span, order.last)
        self._best = math.inf
        self._bound = -math.inf
        self._since = clock.now()

    @property
    def memory(self) -> int | None:
        """Bytes this process may still take, or None without a limit."""
        if self._order.memory_limit is None:
            return None
        return max(0, self._order.memory_limit - held_now())

    def subtasks(self, worker: SubtaskWorker) -> None:
        """Return None: only the run's own process asks other machines."""

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best solution (size,) of the whole run, or None, and its objective."""
        return self._board.read()

    def bound(self) -> float:
        """Return the best bound of the whole run."""
        return max(0.0, self._board.values[1], self._bound if self._bound < math.inf else 0.0)

    def time_left(self) -> float:
        """Wall seconds this engine may still use."""
        return max(0.0, self._deadline - clock.now())

    def worked(self) -> float:
        """Wall seconds since this engine began."""
        return clock.now() - self._since

    def should_stop(self) -> bool:
        """Return True once time is up, the parent asks for the end, or the parent is gone."""
        late = clock.now() >= self._deadline
        return late or self._board.stopped or os.getppid() != self._order.parent

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Judge a solution (size,) here and send it if it is new; the parent judges it again."""
        candidate = np.array(core)
        complaint, _, value = judge(self._checker, candidate)
        with self._lock:
            better = value < min(self._best, self._board.values[0])
            if better:
                self._best = value
        if better or complaint is not None:
            self.send(("offer", candidate, move))
        return better

    def raise_bound(self, bound: Bound) -> bool:
        """Send a bound; True if nothing better is known here."""
        self.send(("bound", bound))
        better = bound.scope == "full" and bound.value > self.bound()
        if bound.scope == "full":
            self._bound = max(self._bound, bound.value)
        return better

    def note(self, text: str) -> None:
        """Send an event in words."""
        self.send(("note", text))

    def remotes(self, kind: type) -> None:
        """Return None: a child works alone."""

    def say_ready(self) -> None:
        """Tell the parent until when this child will work."""
        self.send(("ready", self._deadline))

    def send(self, message: object) -> None:
        """Write one message, whole; engines may call from several threads."""
        body = pickle.dumps(message, protocol=5)
        data = memoryview(struct.pack("<q", len(body)) + body)
        with self._lock:
            while data:
                data = data[os.write(self._order.out_fd, data) :]


def main() -> None:
    """Read the order from stdin, run it, report the end, and leave without waiting for native threads."""
    rarely_collect()
    load_lazily()
    order: Order = pickle.load(sys.stdin.buffer)
    clock.skip(order.stood)
    die_with(order.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if order.out_fd == STDOUT:
        order = replace(order, out_fd=_free_stdout())
    if order.memory_limit is not None:
        limit_data(order.memory_limit)
    checker: Checker = SharedPickle.load(order.checker_fd)
    context = ChildContext(order, checker, Blackboard(order.size, order.board_fd))
    clock.watchers.append(lambda stands: context.send(("compiling", stands)))
    context.say_ready()
    ending = run_guarded(order.engine, checker.problem, context)
    with suppress(BrokenPipeError):
        context.send(("end", ending))
    os._exit(0)


def _free_stdout() -> int:
    """Return a descriptor of what is standard output now; what libraries print there goes to nowhere from here on."""
    pipe, nowhere = os.dup(STDOUT), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
    return pipe
