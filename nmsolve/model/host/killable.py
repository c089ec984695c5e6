"""Work in a copy of this process, which is killed once its time is up; its results come back one by one."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn, TypeVar

from nmsolve.model import clock
from nmsolve.model.errors import BackendError
from nmsolve.model.host.processes import ASKING, FORKS, KILL, die_with

T = TypeVar("T")
#: Most seconds between two questions how long to wait.
_POLL = 0.05


class OutOfTime(KeyboardInterrupt):
    """Time for what can be left out is up; as if the end had been asked for."""


def killable(work: Callable[[], Iterator[T]], left: Callable[[], float]) -> Iterator[T]:
    """Yield what ``work`` yields, which it does in a copy of this process; what it changes there is lost.

    Here and not in a copy where the system has none (Windows), and in other threads than the main one.

    Parameters
    ----------
    left : seconds to wait, asked again and again; time in which the copy compiles kernels does not count

    Raises
    ------
    OutOfTime : no seconds are left, or the copy died
    BackendError : an error in ``work`` that cannot be sent; others are raised here
    """
    if left() <= 0:
        raise OutOfTime
    if not FORKS or threading.current_thread() is not threading.main_thread():
        yield from work()
        return
    near, far = Pipe(duplex=False)
    _flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _send_all(work, far, parent)
    far.close()
    compiling = False
    try:
        while True:
            seconds = left()
            if seconds <= 0:  # what it has sent before still counts
                os.kill(pid, KILL)
            if not near.poll(min(_POLL, seconds) if seconds > 0 else _POLL):
                continue
            kind, value = near.recv()
            if kind == "item":
                yield value
            elif kind == "compiling":
                compiling = value
                (clock.hold if compiling else clock.go_on)()
            elif kind == "error":
                raise value
            else:
                return
    except EOFError:
        raise OutOfTime from None
    finally:
        near.close()
        with suppress(ProcessLookupError):
            os.kill(pid, KILL)
        os.waitpid(pid, 0)
        if compiling:
            clock.go_on()


def _send_all(work: Callable[[], Iterator[T]], far: Connection, parent: int) -> NoReturn:
    """Work in the copy, and end it."""
    try:
        die_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
        for number in ASKING[1:]:
            signal.signal(number, signal.SIG_DFL)
        clock.watchers[:] = [lambda stands: far.send(("compiling", stands))]
        for item in work():
            far.send(("item", item))
        _flush()
        far.send(("end", None))
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is raised in the parent
        with suppress(BaseException):
            far.send(("error", _sendable(error)))
    finally:
        os._exit(0)


def _flush() -> None:
    """Write what is printed, so that it is not written twice; what cannot be written is the command's business."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()


def _sendable(error: BaseException) -> BaseException:
    """Return an error that arrives: itself, or its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 -- of any class, with any way to be pickled
        return BackendError(f"{type(error).__name__}: {error}")
    return error
