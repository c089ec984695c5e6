"""Files that appear in a folder all at once: the answer of one run, which is old or new after a crash, never mixed.

The files are written into a hidden folder inside the target. One ``rename`` of it is the moment from which they count; then each
is moved to its place. A process that is killed while it moves them leaves the hidden folder, and whoever opens the target next
finishes the move (:func:`settle`). Everything else in the target stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json, mode_of, read_limited, reason, write_atomic
from nmsolve.model.host.disk import flush_folder
from nmsolve.model.host.locks import lock_folder, unlock

#: Folder of a set that is being written, and of one that is complete and has to be moved.
_STAGED, _READY = ".nmsolve-staged-", ".nmsolve-answer"
#: In a complete set: names of earlier files to remove.
_REMOVED = ".removed.json"
#: The run id as a comment, by kind of file.
_COMMENT = {
    ".html": "<!-- nmsolve run %s -->",
    ".svg": "<!-- nmsolve run %s -->",
}
#: Seconds to wait for another process that moves its files.
_PATIENCE = 10.0


def new_run() -> str:
    """Return a name for one run, in all files that it writes."""
    return secrets.token_hex(8)


@contextmanager
def file_set(
    folder: Path, owned: Sequence[str], run: str | None = None, others: Sequence[str] = ()
) -> Iterator[Path]:
    """A folder to write files into; at the end of the block they become ``folder``'s, or vanish if the block fails.

    Every file gets the run's id: JSON objects a key ``run``, JSON lines a first line, pages and pictures a comment.

    Parameters
    ----------
    folder : an existing folder
    owned : patterns of the names that such a set may have; files that match and are not in the new set are removed with the swap
    run : id of the run (:func:`new_run`); a new one if not given
    others : patterns of names of other sets that this one takes the place of: such files are removed if a run has signed them

    Raises
    ------
    InputError : the folder cannot be written, the disk is full, a folder has the name of a file
    """
    with _locked(folder):
        _settle(folder)
        _sweep(folder)
        try:
            staged = Path(tempfile.mkdtemp(prefix=_STAGED, dir=folder))
        except OSError as error:
            raise _unwritable(folder, error) from None
        held = _hold(staged)
    try:
        yield staged
        try:
            _complete(folder, staged, owned, run or new_run(), others)
        except OSError as error:
            raise _unwritable(folder, error) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # it is gone if all went well
        unlock(held)


def settle(folder: Path) -> None:
    """Finish the move of a set whose process was killed in the middle of it. Nothing to do costs one look.

    Raises
    ------
    InputError : there is such a set and the folder cannot be written
    """
    if (folder / _READY).is_dir():
        with _locked(folder):
            _settle(folder)


def require_one_run(folder: Path, names: Sequence[str]) -> None:
    """Refuse files of different runs; those that are not there, or say no run (written by hand, or before runs had ids), fit any.

    Raises
    ------
    InputError : naming two files and their runs, or a file that is no JSON object
    """
    settle(folder)
    first = ("", "")
    for name in names:
        path = folder / name
        run = decode_json(read_limited(path), _Run, path).run if path.is_file() else ""
        if run and first[0] and run != first[0]:
            raise InputError(
                f"{name} belongs to run {run[:16]!r}, {first[1]} to run {first[0][:16]!r}",
                str(folder),
                "files of one run",
            )
        if run and not first[0]:
            first = run, name


class _Run(msgspec.Struct):
    run: str = ""


def _complete(folder: Path, staged: Path, owned: Sequence[str], run: str, others: Sequence[str]) -> None:
    """Sign the files, make the set count, and move it."""
    for path in _files(staged):
        if (folder / path.name).is_dir():
            raise InputError("it is a folder", str(folder / path.name), "a file, or nothing, of this name")
        _sign(path, run)
    with _locked(folder):
        _settle(folder)  # another run may have died here meanwhile
        earlier = {
            str(p.relative_to(folder)) for pattern in owned for p in folder.glob(pattern) if p.is_file()
        }
        earlier |= {
            str(p.relative_to(folder))
            for pattern in others
            for p in folder.glob(pattern)
            if p.is_file() and signed(p)
        }
        write_atomic(staged / _REMOVED, json.dumps(sorted(earlier - {p.name for p in _files(staged)})))
        flush_folder(staged)
        staged.rename(folder / _READY)
        flush_folder(folder)
        _settle(folder)


def _settle(folder: Path) -> None:
    """Move a complete set, if there is one, to its places; may be repeated however far it came before."""
    ready, removed = folder / _READY, folder / _READY / _REMOVED
    if not ready.is_dir():
        return
    try:
        if ready.is_symlink():
            raise ValueError  # made by another program
        for source in _files(ready):
            source.chmod(mode_of(folder / source.name))
            source.replace(folder / source.name)
        if removed.exists():
            for path in [
                folder / name for name in msgspec.json.decode(read_limited(removed), type=list[str])
            ]:
                if (
                    folder.resolve() not in path.parent.resolve().parents
                    and folder.resolve() != path.parent.resolve()
                ):
                    raise ValueError  # outside
                path.unlink(missing_ok=True)
            flush_folder(folder)
            removed.unlink()
        ready.rmdir()
        flush_folder(folder)
    except (OSError, ValueError) as error:
        what = reason(error) if isinstance(error, OSError) else "nmsolve did not write it like that"
        raise InputError(
            f"it holds an answer that was only partly moved into place ({what})",
            str(folder),
            f"a folder that can be written, or no {_READY} in it",
        ) from None


def _files(folder: Path) -> list[Path]:
    """Return the plain files of a set, by name."""
    inside = sorted(folder.iterdir())
    return [p for p in inside if p.is_file() and not p.is_symlink() and p.name != _REMOVED]


def _sign(path: Path, run: str) -> None:
    """Put the id of the run into a file of a kind that can hold one."""
    if path.suffix in (".json", ".jsonl"):
        data = path.read_bytes()
        if path.suffix == ".jsonl":
            data = b'{"type": "run", "run": "%s"}\n' % run.encode() + data
        elif data.startswith(b"{"):
            rest = data[1:].lstrip()
            between = b"" if rest.startswith(b"}") else b", "
            data = b'{"run": "%s"%s' % (run.encode(), between) + rest
        write_atomic(path, data)
    elif path.suffix in _COMMENT:
        with path.open("ab") as file:  # it is not read yet
            file.write((_COMMENT[path.suffix] % run + "\n").encode())
            file.flush()
            os.fsync(file.fileno())


def signed(path: Path) -> bool:
    """Return True if a run has written its id into the file."""
    with path.open("rb") as file:
        if path.suffix in (".json", ".jsonl"):
            return re.match(rb'{("type": "run", )?"run": "', file.read(64)) is not None
        comment = _COMMENT.get(path.suffix, "")
        file.seek(max(0, path.stat().st_size - 200))
        end = file.read().decode("utf-8", "replace")
    return bool(comment) and re.search(re.escape(comment).replace("%s", r"\w+"), end) is not None


def _sweep(folder: Path) -> None:
    """Remove what killed processes were writing; the living hold a lock on theirs."""
    for left in folder.glob(_STAGED + "*"):
        with suppress(OSError):
            handle = lock_folder(left)
            shutil.rmtree(left, ignore_errors=True)
            unlock(handle)


def _hold(staged: Path) -> int:
    """Return a lock on a folder, for as long as the descriptor is open."""
    with suppress(OSError):  # no locks on this file system: then no process can sweep it either
        return lock_folder(staged)
    return -1


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """No other process moves files in ``folder`` meanwhile (where the file system knows locks)."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            handle = lock_folder(folder)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                raise InputError("another run is writing its answer", str(folder), "another folder") from None
            time.sleep(0.01)
        except OSError as error:
            if not os.access(folder, os.R_OK | os.W_OK):
                raise _unwritable(folder, error) from None
            handle = -1  # no locks here
            break
    try:
        yield
    finally:
        unlock(handle)


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(f"cannot write: {reason(error)}", str(folder), "a writable folder with enough space")
