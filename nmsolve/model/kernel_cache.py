"""Where compiled kernels lie, so that the next process only loads them.

In the folder ``NUMBA_CACHE_DIR`` if it is set; else beside the sources; where these cannot be written, in this user's folder
(:func:`nmsolve.model.host.folders.cache_folder`). There kernels beside the sources are still read: an administrator compiles them
once for all. A kernel is code, so none is read from a folder that another user can write to.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime.nrt import rtsys

from nmsolve.model.host.folders import cache_folder, can_write, is_as_safe_as, is_safe
from nmsolve.model.version import VERSION

#: What the files hold, to be raised when that changes: kernels kept in another way are compiled again.
FORMAT = 3
#: What damaged files raise, those of a process that died, and those of an older version that names what is gone.
DAMAGE = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError)


class Place(NamedTuple):
    """Folders of the kernels of one folder of sources: to write to, if there is one, and to read from."""

    write: Path | None
    read: tuple[Path, ...]


def place_of(sources: Path) -> Place:
    """Return where kernels of the files in the folder ``sources`` lie."""
    return _place(str(sources), config.CACHE_DIR)


def cached_files(source: Path, pattern: str) -> list[Path]:
    """Return files of compiled kernels of one source whose names match ``pattern``, from wherever they are read."""
    return [path for folder in place_of(source.parent).read for path in sorted(folder.glob(pattern))]


def root_of_kernels(package: Path) -> tuple[Path | None, str]:
    """Return the folder that holds all compiled kernels (None: nowhere), and what is to be said about it.

    Parameters
    ----------
    package : folder of the sources
    """
    asked = config.CACHE_DIR
    write = place_of(package).write
    if write is None:
        return (
            None,
            "no folder can be written: kernels compile in every process; set NUMBA_CACHE_DIR to a folder that can",
        )
    if asked and write.parent == Path(asked):
        return Path(asked), "NUMBA_CACHE_DIR"
    left = f"; {asked} (NUMBA_CACHE_DIR) cannot be written or others can write to it" if asked else ""
    if write == package / "__pycache__":
        return package, "beside the sources" + left
    return write.parent, "the sources' folder cannot be written" + left


@cache
def _place(folder: str, asked: str) -> Place:
    sources = Path(folder)
    name = f"{sources.name}_{hashlib.sha1(os.path.abspath(folder).encode()).hexdigest()}"
    if asked:
        write = _made(Path(asked), name)
        if write is not None:
            return Place(write, (write,))
    beside = sources / "__pycache__"
    if not os.path.exists(beside):
        _mkdir(beside)
    trusted = is_as_safe_as(beside, sources)
    if trusted and can_write(beside):
        return Place(beside, (beside,))
    mine = cache_folder()
    write = None if mine is None else _made(mine / "kernels", name)
    return Place(write, tuple(place for place in (write, beside if trusted else None) if place is not None))


def _made(root: Path, name: str) -> Path | None:
    """Return a folder in ``root``, made if need be, if both are safe and it can be written."""
    _mkdir(root)
    if not is_safe(root):
        return None
    _mkdir(root / name)
    return root / name if is_safe(root / name) and can_write(root / name) else None


def _mkdir(folder: Path) -> None:
    """Make a folder for this user alone, with those above it; whoever needs it looks whether it is there."""
    try:
        folder.mkdir(mode=0o755 if folder.name == "__pycache__" else 0o700, parents=True, exist_ok=True)
    except OSError:
        return


class _Locator:
    """What numba asks of one kernel: where, how fresh, which of its name."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # numba names it in warnings
        self._line = function.__code__.co_firstlineno
        self.place = place_of(Path(file).parent)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator:
        """Return the locator of a kernel in a file."""
        return cls(function, file)

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder was there when it was chosen."""

    def get_cache_path(self) -> str:
        """Return the folder; one that is not written to if there is none."""
        return str(self.place.write or Path(self._py_file).parent / "__pycache__")

    def get_source_stamp(self) -> bytes:
        """Return a digest of the source."""
        return _digest(self._py_file)

    def get_disambiguator(self) -> str:
        """Return the line of the kernel."""
        return str(self._line)


@cache
def _digest(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's way to write kernels, in our places."""

    _locator_classes = (_Locator,)


def _rebuilt(module: str, constants: list[Any], name: str) -> Environment:
    """Return the Python objects that a compiled function needs: its constants.

    Numba also gives it what its module holds, and imports that for it. No kernel looks there, and most such functions are numba's
    own, from modules that only compiling needs: a tenth of what a run needs to start.
    """
    if module in sys.modules:
        return _rebuild_env(module, constants, name)
    known = lookup_environment(name)
    if known is not None:
        return known
    made = Environment({"__name__": module})  # by its name numba knows that it can be kept
    made.consts[:] = constants
    made.env_name = name
    Environment._memo[name] = made
    return made


class _Unpickler(pickle.Unpickler):
    """Reads what a file of compiled code holds."""

    def find_class(self, module: str, name: str) -> Any:
        """Return an object by its name."""
        return _rebuilt if name == _rebuild_env.__name__ else super().find_class(module, name)


class _File(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's file of compiled code, read by us."""

    def _load_data(self, name: str) -> Any:
        return _Unpickler(io.BytesIO(Path(self._data_path(name)).read_bytes())).load()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The compiled versions of one kernel. What cannot be read or written is compiled, without a word."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        locator, own = self._impl.locator, Path(self.cache_path)
        self._place = getattr(
            locator, "place", Place(own, (own,))
        )  # the user may have asked for one of numba's
        self._reads = [
            _File(str(folder), self._impl.filename_base, locator.get_source_stamp())
            for folder in self._place.read
        ]

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return what tells a version from others, and from those of other ways to keep them.

        Of other releases none is read: a kernel holds the code of those that it calls, whose files may have changed.
        """
        return FORMAT, VERSION, super()._index_key(sig, codegen)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled version, None if there is none.

        Numba first reads all that it needs to compile, a quarter of a second: what is compiled takes the runtime library alone.
        """
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)

    def _load_overload(self, signature: Any, context: Any) -> Any:
        if not self._enabled:
            return None
        key = self._index_key(signature, context.codegen())
        for file in self._reads:
            try:
                data = file.load(key)
            except DAMAGE:
                continue
            if data is not None:
                return self._impl.rebuild(context, data)
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Write a compiled version; a full disk, or a folder that has gone, costs only the next process time.

        An index that cannot be read, as where it names a class of another release, is begun anew: else nothing would be kept.
        """
        if self._place.write is None:
            return
        try:
            super().save_overload(signature, data)
        except DAMAGE:
            with suppress(*DAMAGE):
                self._cache_file.flush()
                super().save_overload(signature, data)
