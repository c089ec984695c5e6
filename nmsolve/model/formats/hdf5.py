"""What the readers of HDF5 files share: the optional package, damage as one line, and sizes that are believed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.files import LARGEST_FILE, input_file

#: A compressed data set may be so many times as large as what is stored of it (deflate reaches 1032).
PACKING = 1100

#: What h5py and those who build on it raise for damaged or unexpected content.
DAMAGE = (
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    AssertionError,
    ArithmeticError,
    RecursionError,
    UnicodeDecodeError,
    MemoryError,
)


def package(name: str, extra: str, path: Path) -> Any:
    """Import an optional package.

    Raises
    ------
    InputError : it is not installed (says how to), or there is no such file
    """
    with input_file(path):  # a missing file is said to be missing before anything is to be installed
        pass
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"this format needs the package {name}",
            str(path),
            f"it installed: pip install 'nmsolve[{extra}]'",
        ) from None


@contextmanager
def opened(path: Path, extra: str) -> Iterator[Any]:
    """The HDF5 file, open for reading, every data set in it no larger than what is stored of it allows.

    Raises
    ------
    InputError : no HDF5 file, damaged, or a data set that promises more than is there
    """
    h5py = package("h5py", extra, path)
    with damage(path), h5py.File(path, "r") as file:
        file.visititems(
            lambda name, item: _check(path, name, item) if isinstance(item, h5py.Dataset) else None
        )
        yield file


def _check(path: Path, name: str, dataset: Any) -> None:
    stored, promised = dataset.id.get_storage_size(), dataset.size * dataset.dtype.itemsize
    if promised > min(LARGEST_FILE, PACKING * stored):
        raise InputError(
            f"{promised} bytes are promised, {stored} are stored", f"{path}: {name}", "a complete data set"
        )


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Whatever goes wrong in the block is the file's fault."""
    try:
        yield
    except InputError:
        raise
    except DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"cannot be read ({reason[:200]})", str(path), "a complete HDF5 file") from None
