"""Locks of folders. The system releases them however their holder ends.

With ``fcntl`` the folder itself is locked. Windows cannot open folders: there a file beside it is the lock, which exists only as
long as its holder has it open. A lock is a file descriptor; :func:`unlock` gives it back.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Of the file beside a folder that is its lock on Windows. The name must not look like a folder that is swept.
BESIDE = ".nmsolve-lock-"
#: A file with this flag is removed when it is closed, also because its process has died (Windows).
_TEMPORARY = getattr(os, "O_TEMPORARY", 0)
#: Whether there are locks at all.
LOCKS = fcntl is not None or _TEMPORARY != 0


def lock_folder(folder: Path) -> int:
    """Lock a folder and return the lock, without waiting.

    Raises
    ------
    BlockingIOError : another process holds it
    OSError : the folder cannot be opened; or it lies where there are no locks (``ENOLCK``)
    """
    if fcntl is not None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            lock_file(handle)
        except BaseException:
            os.close(handle)
            raise
        return handle
    if not folder.is_dir():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    return _file_as_lock(folder.parent / (BESIDE + folder.name))


def lock_file(handle: int) -> None:
    """Lock an open file or folder, without waiting.

    Raises
    ------
    BlockingIOError : another process holds it
    OSError : there are no locks here
    """
    if fcntl is None:
        raise _none()
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(handle: int) -> None:
    """Give a lock back; -1 is none."""
    if handle >= 0:
        os.close(handle)


def lock_own(folder: Path) -> int:
    """Lock a folder of this user's in a place that is everybody's; -1 if its holder lives, or it is not ours, or gone.

    A folder that another user made, or may write to, and links that lead elsewhere are left alone.
    """
    if fcntl is None:  # everybody has a place for temporary files of his own
        with suppress(OSError):
            return lock_folder(folder)
        return -1
    inside = -1
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        found = os.fstat(inside)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return -1
        handle = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=inside)
    except OSError:
        return -1
    finally:
        if inside >= 0:
            os.close(inside)
    try:
        lock_file(handle)
        # A sweep may have removed the file between the two calls; then the lock means nothing.
        if os.stat(folder / "lock", follow_symlinks=False).st_ino == os.fstat(handle).st_ino:
            return handle
    except OSError:
        pass
    os.close(handle)
    return -1


def ever_locked(folder: Path) -> bool:
    """Return False for a folder that :func:`lock_own` has not reached yet: it is just being made."""
    return fcntl is None or os.path.lexists(folder / "lock")


def _file_as_lock(path: Path) -> int:
    """Make a file that is there as long as it is open."""
    if not _TEMPORARY:
        raise _none()
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _TEMPORARY, 0o600)
    except (FileExistsError, PermissionError) as error:  # the latter while it goes
        if not os.path.lexists(path):
            raise
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(path)) from error


def _none() -> OSError:
    return OSError(errno.ENOLCK, "this system has no locks")
