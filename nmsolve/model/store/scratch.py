"""The scratch folder of a run: data that does not fit in memory; removed when the run ends.

A run holds a lock (``flock``) on a file in its folder. The system releases it however the run ends, so a folder whose
lock is free was left by a killed run; the next run removes it, or continues from it (``--resume``). Arrays are held in memory
as far as there is room, and in a file of the folder beyond (:class:`Spill`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.host.disk import read_into, unnamed_file, write_at
from nmsolve.model.host.locks import ever_locked, lock_own, unlock
from nmsolve.model.types import AnyArray

PREFIX = "nmsolve-scratch-"

#: A killed run's folder is kept this long (seconds) for ``--resume``, unless a run of the same key removes it.
KEPT = 7 * 24 * 3600.0

#: A folder without a lock file this old (seconds) is not one that is just being made.
MAKING = 60.0


class Scratch:
    """A folder for one run, removed when the ``with`` block is left: at success, error, Ctrl-C and SIGTERM.

    Entered in the main thread, it turns SIGTERM into ``SystemExit`` so that the folder is removed then too. Only a
    killed run (SIGKILL, power) leaves its folder behind; the next run in the same ``parent`` removes it.

    Parameters
    ----------
    parent : folder in which to make it; the system's folder for temporary files if not given
    key : what the results in the folder depend on (hash of problem and options); a run with a key can be resumed
    resume : take over the folder that a killed run of the same key left, if there is one; otherwise it is removed

    Raises
    ------
    InputError : ``parent`` is not a writable folder
    """

    path: Path

    def __init__(self, parent: str | Path | None = None, *, key: str = "", resume: bool = False) -> None:
        self._parent = Path(parent or tempfile.gettempdir())
        self._prefix = PREFIX + (hashlib.sha256(key.encode()).hexdigest()[:16] if key else "once") + "-"
        self._resume = resume and bool(key)
        self._lock = -1
        self._finished: dict[str, dict[str, object]] = {}
        self._before: signal._HANDLER = None

    def __enter__(self) -> Scratch:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, _terminate)
        try:
            if not self._take_over():
                self._create()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._lock >= 0:
                shutil.rmtree(self.path, ignore_errors=True)
                unlock(self._lock)
                self._lock = -1
        finally:
            if self._before is not None:
                signal.signal(signal.SIGTERM, self._before)
                self._before = None

    def file(self, name: str) -> Path:
        """Return where the file ``name`` of this run lies."""
        return self.path / name

    def require(self, space: int, what: str) -> None:
        """Check that ``space`` bytes are free for ``what``.

        Raises
        ------
        InputError : they are not
        """
        free = shutil.disk_usage(self.path).free
        if free < space:
            raise InputError(
                f"{what} need {megabytes(space)} of scratch space, {megabytes(free)} are free",
                str(self._parent),
                "a folder with more space (--scratch)",
            )

    def finish(self, level: str, **facts: object) -> None:
        """Record that the files of ``level`` are complete, with ``facts`` (JSON values) about it.

        A run that resumes after a kill finds them by :meth:`finished`.
        """
        self._finished[level] = facts
        write_atomic(self.file("finished.json"), json.dumps(self._finished))

    def finished(self, level: str) -> dict[str, object] | None:
        """Return the facts recorded when ``level`` was finished, by this run or the one it resumes; None if it was not."""
        return self._finished.get(level)

    def _create(self) -> None:
        """Make a folder and lock it, before another run's sweep can take it for one left behind."""
        for _ in range(100):
            try:
                self.path = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._parent))
            except OSError as error:
                raise InputError(
                    f"no scratch folder can be made: {(error.strerror or str(error)).lower()}",
                    str(self._parent),
                    "a writable folder (--scratch)",
                ) from None
            self._lock = lock_own(self.path)
            if self._lock >= 0:
                return
        raise InputError("no scratch folder could be locked", str(self._parent), "a folder on a local disk")

    def _take_over(self) -> bool:
        """Remove what killed runs left; True if one of them had this key and is to be resumed."""
        try:
            left = sorted(self._parent.glob(PREFIX + "*"), key=_age)
        except OSError:
            left = []
        for folder in left:
            same = folder.name.startswith(self._prefix)
            once = folder.name.startswith(PREFIX + "once-")
            if not (same or once or _age(folder) > KEPT):
                continue
            if not ever_locked(folder) and _age(folder) < MAKING:
                continue
            lock = lock_own(folder)
            if lock < 0:
                continue
            if same and self._resume and self._lock < 0:
                self.path, self._lock = folder, lock
                self._finished = _read_finished(folder / "finished.json")
                continue
            shutil.rmtree(folder, ignore_errors=True)
            unlock(lock)
        return self._lock >= 0


def scratch_error(error: OSError, path: Path) -> InputError:
    """Return a failed write in the scratch folder, in words that say what to do."""
    return InputError(
        f"cannot write scratch data: {(error.strerror or str(error)).lower()}",
        str(path.parent),
        "a folder with more space (--scratch)",
    )


def megabytes(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(1, size >> 20)} MiB"


def _age(folder: Path) -> float:
    """Return seconds since something was made or removed in the folder."""
    try:
        return time.time() - folder.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _read_finished(path: Path) -> dict[str, dict[str, object]]:
    """Finished levels of a killed run."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # it begins again
    return found if isinstance(found, dict) else {}


def _terminate(number: int, frame: FrameType | None) -> None:
    """Raise SIGTERM as an exception, so that ``with`` blocks are left in order."""
    raise SystemExit(128 + number)


class Spill:
    """A pile of one-dimensional arrays, of which slices can be read back. Safe to use from several threads.

    The file has no name (it is unlinked at once), so that not even a killed run leaves it behind.

    Parameters
    ----------
    scratch : where the file is made, once it is needed
    room : bytes that may stay in memory
    """

    def __init__(self, scratch: Scratch, room: int) -> None:
        self._folder: Path = scratch.path
        self._room = room
        self._arrays: list[AnyArray | tuple[int, np.dtype[np.void], int]] = []
        self._file = -1
        self._end = 0
        self._guard = threading.Lock()

    @property
    def on_disk(self) -> int:
        """Bytes written to the scratch file so far."""
        return self._end

    def reserve(self) -> int:
        """Return a number for the array that :meth:`put` gets next; the order of numbers is the caller's."""
        with self._guard:
            self._arrays.append((0, np.dtype([]), 0))
            return len(self._arrays) - 1

    def put(self, number: int, array: AnyArray) -> None:
        """Keep the 1-D ``array`` under ``number``.

        Raises
        ------
        InputError : the scratch disk is full
        """
        with self._guard:
            if array.nbytes <= self._room:
                self._room -= array.nbytes
                self._arrays[number] = array
                return
            file, at = self._open(), self._end
            self._end += array.nbytes
        try:
            write_at(file, array.view(np.uint8).data, at)
        except OSError as error:
            raise scratch_error(error, self._folder) from None
        self._arrays[number] = (at, array.dtype, len(array))

    def get(self, number: int, first: int, last: int) -> AnyArray:
        """Return (last - first,) the elements ``first`` to ``last - 1`` of an array."""
        kept = self._arrays[number]
        if isinstance(kept, np.ndarray):
            return kept[first:last]
        at, kind, _ = kept
        out = np.empty(last - first, kind)
        read_into(self._file, out.view(np.uint8).data, at + first * kind.itemsize)
        return out

    def close(self) -> None:
        """Give memory and disk space back."""
        self._arrays.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> int:
        if self._file < 0:
            try:
                self._file = unnamed_file(self._folder)
            except OSError as error:
                raise scratch_error(error, self._folder) from None
        return self._file


def packed(columns: dict[str, AnyArray]) -> AnyArray:
    """Return columns (k,) of numbers >= 0 as an array (k,) of records, each column in the smallest type that holds it exactly."""
    narrow = {name: _narrow(column) for name, column in columns.items()}
    rows = len(next(iter(columns.values())))
    out = np.empty(rows, np.dtype([(name, column.dtype) for name, column in narrow.items()]))
    for name, column in narrow.items():
        out[name] = column
    return out


def _narrow(column: AnyArray) -> AnyArray:
    """Return ``column`` (numbers >= 0) in the smallest type that holds it exactly."""
    largest = column.max(initial=0)
    for kind in (np.uint8, np.uint16):
        if largest <= np.iinfo(kind).max:
            small = column.astype(kind)
            if column.dtype.kind == "i" or np.array_equal(small, column):
                return small
    if column.dtype.kind == "i":
        return column
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, hence unequal
        single = column.astype(np.float32)
    return single if np.array_equal(single, column) else column
