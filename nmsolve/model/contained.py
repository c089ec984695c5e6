"""Reading a file in a separate process, so that a damaged or hostile file can only harm that process.

The process has limits of memory and time, cannot write to the terminal, and is killed when the parent exits, for any reason.
What it finds comes back through a pipe as JSON and plain arrays; nothing of it is ever unpickled. Windows cannot split a process:
there the file is read in this one, without limits.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from nmsolve.model import clock
from nmsolve.model.errors import BackendError, InputError, InputWarning
from nmsolve.model.host.memory import confine
from nmsolve.model.host.processes import ASKING, CPU_TIME_UP, FORKS, die_with

if TYPE_CHECKING:
    from nmsolve.model.types import AnyArray

#: Bytes of memory for work on any file, and for every byte of it.
MEMORY, MEMORY_PER_BYTE = 2**30, 64
#: Seconds for work on any file, and for every byte of it (2 s per MB).
SECONDS, SECONDS_PER_BYTE = 20.0, 2e-6


class Reply(NamedTuple):
    """What comes back: a value that JSON can express, and arrays of numbers or truth values."""

    value: Any
    arrays: dict[str, AnyArray]


@dataclass(frozen=True)
class Allowance:
    """What a process may use: bytes beyond what this one holds already, seconds of waiting and of processor time; and what it is
    doing, for messages."""

    memory: int
    seconds: float
    doing: str = "reading it"

    @classmethod
    def of(cls, path: str | Path, seconds: float = SECONDS) -> Allowance:
        """For work on the file ``path``, by its size."""
        try:
            size = os.stat(path).st_size
        except (OSError, ValueError):
            size = 0
        return cls(MEMORY + MEMORY_PER_BYTE * size, seconds + SECONDS_PER_BYTE * size)


def one_reply(work: Callable[[], Reply], path: str | Path, allowance: Allowance | None = None) -> Reply:
    """:func:`contained` for work that gives one reply."""

    def single() -> Iterator[Reply]:
        yield work()

    with contained(single, path, allowance) as replies:
        for reply in replies:
            return reply
    doing = "reading it" if allowance is None else allowance.doing
    raise InputError(f"{doing} ended without an answer", str(path))


@contextmanager
def contained(
    work: Callable[[], Iterator[Reply]], path: str | Path, allowance: Allowance | None = None
) -> Iterator[Iterator[Reply]]:
    """The replies that ``work`` gives, made in a process of its own; it is gone at the end of the block.

    Parameters
    ----------
    work : runs in the other process; anything that it changes there is lost
    path : the file that it is about
    allowance : by the size of the file if not given

    An :class:`InputWarning` in ``work`` is one in this process, too.

    Raises
    ------
    InputError : raised in ``work``; or the process died or took more memory or time than allowed
    BackendError : any other error in ``work``
    """
    allowance = allowance or Allowance.of(path)
    if not FORKS:
        yield _here(work, str(path), allowance)
        return
    with tempfile.TemporaryFile() as errors:
        into, out = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run(work, out, errors, str(path), allowance, parent)
        os.close(out)
        replies = _received(pid, into, str(path), allowance, errors)
        try:
            yield replies
        finally:
            replies.close()
            os.close(into)


# ------------------------------------------------------------------------------------------------ here


def _here(work: Callable[[], Iterator[Reply]], path: str, allowance: Allowance) -> Iterator[Reply]:
    """Yield the replies of work in this process, where there can be no other; its errors are those of :func:`contained`."""
    try:
        yield from work()
    except MemoryError:
        raise _too_much(path, allowance) from None
    except RecursionError:
        raise _too_deep(path) from None
    except (InputError, InputWarning, OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise BackendError(
            f"{path}: {allowance.doing} failed: {type(error).__name__}: {error}"[:400]
        ) from error


def _received(
    pid: int, pipe: int, path: str, allowance: Allowance, errors: IO[bytes]
) -> Generator[Reply, None, None]:
    """Yield what arrives until the end; the process is waited for, or killed, whatever happens."""
    source = _Source(pipe, path, allowance)
    alive = True
    try:
        while True:
            head = source.header()
            if head is None:
                break
            if "error" in head:
                raise InputError(*map(str, head["error"]))
            if "warning" in head:
                warnings.warn(InputWarning(str(head["warning"])), stacklevel=4)
                continue
            yield source.reply(head)
        _, status = os.waitpid(pid, 0)
        alive = False
        code = os.waitstatus_to_exitcode(status)
        if code:
            raise _death(code, path, allowance, errors)
    finally:
        if alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@dataclass
class _Source:
    """The near end of the pipe. Only time spent waiting counts."""

    pipe: int
    path: str
    allowance: Allowance
    waited: float = 0.0

    def header(self) -> dict[str, Any] | None:
        """Return the next message's head, None at the end."""
        length = self._read(8)
        if not length:
            return None
        try:
            found: dict[str, Any] = json.loads(bytes(self._read(struct.unpack("<Q", length)[0])))
        except ValueError:
            raise self._garbled() from None
        return found

    def reply(self, head: dict[str, Any]) -> Reply:
        """Return the message with this head."""
        try:
            listed, value = (
                [(str(name), kind, list(shape)) for name, kind, shape in head["arrays"]],
                head["value"],
            )
        except (KeyError, TypeError, ValueError):
            raise self._garbled() from None
        return Reply(value, {name: self._array(kind, shape) for name, kind, shape in listed})

    def _garbled(self) -> BackendError:
        return BackendError(f"{self.path}: {self.allowance.doing} failed: its answer is garbled")

    def _array(self, kind: str, shape: list[int]) -> AnyArray:
        """Return the next array."""
        import numpy as np

        try:
            dtype, size = np.dtype(str(kind)), math.prod(map(int, shape))
        except (TypeError, ValueError):
            raise self._garbled() from None
        if dtype.kind not in "biuf" or min(shape, default=0) < 0:
            raise BackendError(f"{self.path}: the reader sent an array of {kind}, {shape}")
        data = self._read(dtype.itemsize * size)
        if len(data) < dtype.itemsize * size:
            raise self._garbled()
        return np.frombuffer(data, dtype).reshape(shape)

    def _read(self, size: int) -> bytearray:
        """This many bytes; none at all at the end."""
        if size > self.allowance.memory:
            raise _too_much(self.path, self.allowance)
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            start = clock.now()
            patience = self.allowance.seconds - self.waited
            if patience <= 0 or not select.select([self.pipe], [], [], patience)[0]:
                raise _too_long(self.path, self.allowance)
            self.waited += clock.now() - start
            count = os.readv(self.pipe, [view[at:]])
            if count == 0:
                return bytearray()
            at += count
        return data


def _death(code: int, path: str, allowance: Allowance, errors: IO[bytes]) -> Exception:
    """Return the error that the exit code of a reading process means."""
    if -code == CPU_TIME_UP:
        return _too_long(path, allowance)
    if code < 0:
        return InputError(
            f"{allowance.doing} crashed ({signal.Signals(-code).name})", path, "an undamaged file"
        )
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
    return BackendError(f"{path}: {allowance.doing} failed: {lines[-1][:300]}")


def _too_long(path: str, allowance: Allowance) -> InputError:
    faster = "a file that can be read faster"
    return InputError(f"{allowance.doing} takes more than {allowance.seconds:.0f} s", path, faster)


def _too_much(path: str, allowance: Allowance) -> InputError:
    return InputError(
        f"{allowance.doing} takes more than {allowance.memory / 2**20:.0f} MiB of memory",
        path,
        "a file that does not unpack to far more than its size",
    )


def _too_deep(path: str) -> InputError:
    return InputError("its content is nested too deeply", path, "fewer levels")


# ------------------------------------------------------------------------------------------------ there


def _run(
    work: Callable[[], Iterator[Reply]], out: int, errors: IO[bytes], path: str, allowance: Allowance, parent: int
) -> None:  # fmt: skip
    """Do the work in the new process and end it; nothing of the old one is flushed or closed here."""
    code = 1
    try:
        _confine(errors, allowance, parent)
        code = _told(work, out, path, allowance)
    except BrokenPipeError:
        code = 0  # no more is wanted
    finally:
        kind, error, trace = sys.exc_info()
        if error is not None:
            place = traceback.extract_tb(trace)[-1]
            last = "".join(traceback.format_exception_only(kind, error)).strip().replace("\n", " ")
            line = f"{last} ({os.path.basename(place.filename)}:{place.lineno})\n"
            os.write(2, line.encode(errors="replace"))
        os._exit(code)


def _told(work: Callable[[], Iterator[Reply]], out: int, path: str, allowance: Allowance) -> int:
    """Send every reply and every :class:`InputWarning`, or the error that the file has."""

    def show(message: Warning | str, category: type[Warning], *_where: Any, **_more: Any) -> None:
        if issubclass(category, InputWarning):
            _send(out, {"warning": str(message)}, {})

    warnings.simplefilter("always", InputWarning)  # the parent's filters decide
    warnings.showwarning = show
    try:
        for reply in work():
            _send(out, {"value": reply.value}, reply.arrays)
    except InputError as error:
        wrong = error
    except MemoryError:
        wrong = _too_much(path, allowance)
    except RecursionError:
        wrong = _too_deep(path)
    else:
        return 0
    _send(out, {"error": [wrong.what, wrong.where, wrong.expected]}, {})
    return 0


def _send(out: int, head: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
    import numpy as np

    flat = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in flat.items()]
    text = json.dumps(head | {"arrays": listed}).encode()
    parts: list[Any] = [struct.pack("<Q", len(text)), text]
    for part in (*parts, *(a.reshape(-1).view(np.uint8) for a in flat.values())):
        data = memoryview(part)
        while data:
            data = data[os.write(out, data) :]


def _confine(errors: IO[bytes], allowance: Allowance, parent: int) -> None:
    """Take the terminal away, limit memory and time, and end with the parent."""
    faulthandler.disable()
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    for number in ASKING[1:]:
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(errors.fileno(), 2)
    confine(allowance.memory, math.ceil(time.process_time() + allowance.seconds) + 1)
