"""What the readers of HDF5 files share: the optional package, damage as one line, limits on sizes, no other files.

The library is native code that trusts what it reads: use all of this in a contained process only
(:mod:`nmsolve.model.contained`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.files import LARGEST_FILE, input_file

#: Largest ratio of a data set to its compressed size (deflate reaches 1032).
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
)

#: How the library's own reasons begin; any other text is Python's, which says nothing about the file.
REASON = re.compile(r"(Unable|Can't|Cannot|Couldn't|Not a|Bad) ", re.ASCII)

#: Filters that the library has built in; any other would be loaded from a folder that the environment names.
FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}


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
            f"the package installed: pip install 'nmsolve[{extra}]'",
        ) from None


@contextmanager
def opened(path: Path, extra: str) -> Iterator[Any]:
    """The HDF5 file, open for reading, every data set in it in the file itself and no larger than what is stored allows.

    Raises
    ------
    InputError : no HDF5 file, damaged, a data set that promises more than is there, or anything that leads to other files
    """
    h5py = package("h5py", extra, path)
    with damage(path), h5py.File(path, "r") as file:
        if (name := file.id.links.visit(partial(_elsewhere, h5py), info=True)) is not None:
            where = f"{path}: {name.decode(errors='replace')}"
            raise InputError("it is a link to another file", where, "everything in one file")
        file.visititems(
            lambda name, item: _check(path, name, item, h5py) if isinstance(item, h5py.Dataset) else None
        )
        yield file


def _elsewhere(h5py: Any, name: bytes, info: Any) -> bytes | None:
    """Return the name of a link that is neither of the file nor within it; any other is passed by."""
    return None if info.type in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT) else name


def _check(path: Path, name: str, dataset: Any, h5py: Any) -> None:
    where, made = f"{path}: {name}", dataset.id.get_create_plist()
    if dataset.shape is None:  # a null dataspace: nothing is stored
        return
    if made.get_external_count() or made.get_layout() == h5py.h5d.VIRTUAL:
        raise InputError("its data are stored in other files", where, "everything in one file")
    filters = [made.get_filter(k)[0] for k in range(made.get_nfilters())]
    if unknown := [number for number in filters if number not in FILTERS]:
        raise InputError(f"it is compressed by filter {unknown[0]}", where, ", ".join(FILTERS.values()))
    stored, promised = dataset.id.get_storage_size(), dataset.size * dataset.dtype.itemsize
    if promised > min(LARGEST_FILE, PACKING * stored):
        raise InputError(f"it promises {promised} bytes and stores {stored}", where, "a complete data set")


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Whatever goes wrong in the block is the file's fault.

    Raises
    ------
    InputError : instead of any other error inside
    """
    try:
        yield
    except (InputError, RecursionError):
        raise
    except DAMAGE as error:
        text = " ".join(str(error).split()).strip("'\"")
        if REASON.match(text):
            raise InputError(f"cannot be read ({text[:200]})", str(path), "a complete HDF5 file") from None
        what = "cannot be read: groups, data sets or attributes are not those of its kind"
        raise InputError(what, str(path), "a file as docs/files.md describes it") from None


def members(group: Any, where: str) -> dict[str, Any]:
    """Return what is in a group, by name.

    Raises
    ------
    InputError : a data set is there instead
    """
    if not hasattr(group, "items"):
        raise InputError("it is a data set", where, "a group")
    return dict(sorted(group.items()))


def column(group: Any, name: str, kinds: str = "iu") -> Any:
    """Return the data set ``name`` of a group if it is a list of these kinds of numbers (NumPy's letters); else None.

    A data set in which nothing is stored (a null dataspace) is no list.
    """
    found: Any = group.get(name) if hasattr(group, "items") else None
    return found if getattr(found, "ndim", None) == 1 and found.dtype.kind in kinds else None


def text(value: Any) -> str | None:
    """Return the text that an attribute or an element of a data set is, without padding; None if it is none.

    Tools write text as such, as bytes, as an array of one of them or padded.

    Raises
    ------
    UnicodeError : it is not UTF-8
    """
    import numpy as np

    flat = (
        np.asarray(value, object).reshape(-1)
        if hasattr(value, "shape") and value.shape is not None
        else [value]
    )
    one = flat[0] if len(flat) else None
    if not isinstance(one, str | bytes):
        return None
    said = (one.decode() if isinstance(one, bytes) else one).strip(" \0")
    said.encode()  # names that are no UTF-8 are damage
    return said
