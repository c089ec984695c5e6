"""Folders of this user for what can be made again: compiled kernels, tables of fonts.

What is executed must not come from where another user can write. So such a folder belongs to this user or the system, and no
other user may write to it or put another one in its place.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

#: Folders of this name in the folder for temporary files are used where there is no home: ``nmsolve-1000-x7f3k2``.
TEMPORARY = "nmsolve-"


@cache
def cache_folder() -> Path | None:
    """Return this user's folder for what can be made again, or None if there is no place for it.

    ``$XDG_CACHE_HOME/nmsolve``, the system's folder of this kind in the home, or a private one among temporary files.
    """
    return next(filter(None, map(_made, _in_home())), None) or _temporary()


def is_safe(folder: Path) -> bool:
    """Return True if only this user and the system can write to a folder, or put another one in its place.

    Always on Windows, where each user has a home of his own.
    """
    if not hasattr(os, "geteuid"):
        return True
    whole = Path(os.path.realpath(folder))
    try:
        found = whole.stat()
        above = [parent.stat() for parent in whole.parents]
    except OSError:
        return False
    mine = (0, os.geteuid(), above[-1].st_uid)  # in a container the system may have another number
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid in mine
        and not found.st_mode & 0o022
        and all(p.st_uid in mine and (not p.st_mode & 0o022 or p.st_mode & stat.S_ISVTX) for p in above)
    )


def is_as_safe_as(folder: Path, source: Path) -> bool:
    """Return True if only those can write to ``folder`` who could change the code in ``source`` as well; both exist."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        inner, outer = folder.lstat(), source.stat()
    except OSError:
        return False
    owned = inner.st_uid in (0, os.geteuid(), outer.st_uid)
    wider = inner.st_mode & ~outer.st_mode & 0o022
    return (
        stat.S_ISDIR(inner.st_mode)
        and owned
        and not wider
        and (inner.st_gid == outer.st_gid or not inner.st_mode & 0o020)
    )


def can_write(folder: Path) -> bool:
    """Return True if a file can be made in a folder."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def place_fonts() -> None:
    """Have matplotlib keep its tables of fonts in the folder of this user, where it cannot write to its own in the home.

    It would make a new folder in every process, and complain. It asks the environment when it is imported.
    """
    home = Path(os.path.expanduser("~"))
    own = [
        Path(os.environ.get(name) or home / place) / "matplotlib"
        for name, place in (("XDG_CACHE_HOME", ".cache"), ("XDG_CONFIG_HOME", ".config"))
    ]
    if sys.platform != "linux" or os.environ.get("MPLCONFIGDIR") or all(map(_can_have, own)):
        return
    mine = cache_folder()
    if mine is not None:
        os.environ["MPLCONFIGDIR"] = str(mine / "matplotlib")


def _in_home() -> list[Path]:
    """Return where the system wants such a folder."""
    home = os.path.expanduser("~")  # stays as it is for an unknown user
    places = [os.environ.get("XDG_CACHE_HOME", "")]
    if sys.platform == "win32":
        places.append(os.environ.get("LOCALAPPDATA", ""))
    else:
        places.append(os.path.join(home, "Library/Caches" if sys.platform == "darwin" else ".cache"))
    return [Path(place) / "nmsolve" for place in places if os.path.isabs(place)]


def _made(folder: Path) -> Path | None:
    """Return the folder, made if need be, if it is safe and can be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    real = Path(os.path.realpath(folder))
    return real if is_safe(real) and can_write(real) else None


def _temporary() -> Path | None:
    """Return this user's private folder among the temporary files; the next process finds the same one."""
    try:
        place = Path(tempfile.gettempdir())
        user = f"{TEMPORARY}{os.geteuid() if hasattr(os, 'geteuid') else 'user'}-"
        for folder in sorted(place.glob(user + "*")):
            if not folder.is_symlink() and is_safe(folder) and can_write(folder):
                return folder
        made = Path(tempfile.mkdtemp(prefix=user, dir=place))
    except OSError:
        return None
    return made if is_safe(made) else None


def _can_have(folder: Path) -> bool:
    """Return True if a folder can be written, or made; that of an unknown home (``~``) cannot."""
    if not folder.is_absolute():
        return False
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)
