"""Files read and written at a place by several threads, files without a name, and folders that are safely on the disk."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

#: Where the system cannot read at a place, it goes there and reads: one thread at a time.
_moving = threading.Lock()
_PREADS = hasattr(os, "pread")
#: Most bytes at once: some systems refuse more than 2^31.
_PIECE = 2**28


def read_at(file: int, size: int, at: int) -> bytes:
    """Return up to ``size`` bytes of an open file from position ``at``; fewer at its end."""
    if _PREADS:
        return os.pread(file, size, at)
    with _moving:
        os.lseek(file, at, os.SEEK_SET)
        return os.read(file, size)


def read_into(file: int, data: memoryview, at: int) -> None:
    """Fill ``data`` with the bytes of an open file from position ``at``.

    Raises
    ------
    OSError : the file ends early
    """
    done = 0
    while done < len(data):
        if _PREADS:
            count = os.preadv(file, [data[done:]], at + done)
        else:
            part = read_at(file, min(len(data) - done, _PIECE), at + done)
            count = len(part)
            data[done : done + count] = part
        if count == 0:
            raise OSError(f"the scratch file ends {len(data) - done} bytes early")
        done += count


def write_at(file: int, data: memoryview, at: int) -> None:
    """Write all of ``data`` to an open file from position ``at`` on."""
    done = 0
    while done < len(data):
        if _PREADS:
            done += os.pwrite(file, data[done : done + _PIECE], at + done)
        else:
            with _moving:
                os.lseek(file, at + done, os.SEEK_SET)
                done += os.write(file, data[done : done + _PIECE])


def unnamed_file(folder: str | Path | None = None) -> int:
    """Return a descriptor of a new file that goes with its last user."""
    flag = getattr(os, "O_TEMPORARY", 0)
    handle, name = tempfile.mkstemp(dir=folder, prefix="spill-")
    if flag:  # Windows removes no file that is open
        os.close(handle)
        return os.open(name, os.O_RDWR | flag | getattr(os, "O_BINARY", 0))
    os.unlink(name)
    return handle


def flush_folder(folder: Path) -> None:
    """Have the entries of a folder on the disk (Windows does that by itself, and opens no folder)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
