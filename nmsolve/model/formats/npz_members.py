"""Members of NumPy archives: whole arrays, or piece by piece; none unpacks to more than it promises."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from nmsolve.model.errors import InputError, name_unread
from nmsolve.model.files import LARGEST_FILE
from nmsolve.model.types import AnyArray, IntArray, first_true

#: Above this many unpacked bytes an archive may not shrink by more than PACKING.
UNSUSPICIOUS = 2**26
PACKING = 100

#: What the standard library raises for damaged, encrypted or exotic archives.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    MemoryError,
)


def damaged(error: Exception, path: Path) -> InputError:
    """Return what the standard library found wrong with an archive, as one line."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or "truncated"
    return InputError(reason.lower(), str(path), "a complete .npz archive")


def read_members(path: Path, wanted: set[str]) -> tuple[dict[str, AnyArray], list[str]]:
    """Return all ``wanted`` members by name, of any shape, each checked before it is unpacked, and the names of the others.

    Raises
    ------
    InputError : a damaged archive, or a member of an unfit size or kind
    """
    out: dict[str, AnyArray] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_unpacked(members, path)
            names = {m.filename.removesuffix(".npy"): m for m in members}
            for name, member in names.items():
                if name in wanted:
                    out[name] = _member(archive, member, path)
    except DAMAGE as error:
        raise damaged(error, path) from None
    return out, [name for name in names if name not in wanted]


def warn_of_members(names: Sequence[str], path: Path, what: str) -> None:
    """Say which members are passed over, if there are any."""
    name_unread("member", names, str(path), f"only {what}")


def _check_unpacked(members: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse an archive whose members unpack to more than memory should be asked for."""
    unpacked = sum(m.file_size for m in members)
    packed = sum(m.compress_size for m in members)
    if unpacked > LARGEST_FILE or (unpacked > UNSUSPICIOUS and unpacked > PACKING * packed):
        raise InputError(
            f"{packed} bytes unpack to {unpacked}",
            str(path),
            f"at most {LARGEST_FILE}, and at most {PACKING} times the packed size",
        )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> AnyArray:
    """One array; its header must promise exactly the bytes that the member has."""
    where = f"{path}: {member.filename}"
    with archive.open(member) as file:
        shape, dtype = array_header(file, where)
        promised = dtype.itemsize * int(np.prod([int(s) for s in shape], dtype=object))
        left = member.file_size - file.tell()
        if promised != left:
            raise InputError(f"the header promises {promised} bytes, the member has {left}", where)
    with archive.open(member) as file:
        array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # at its end the checksum is compared
            raise InputError("there are more bytes after the array", where, "a complete member")
    return array


def array_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of the array in an open member, which is left at the first value. InputError for a wrong header."""
    try:
        version = np.lib.format.read_magic(file)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise InputError(f"not an array: {error}".splitlines()[0], where, "a .npy array") from None
    if dtype.hasobject:
        raise InputError("the array holds Python objects", where, "numbers or text")
    return shape, dtype


class MemberStream:
    """A one-dimensional array that is read in pieces, any number of times.

    Attributes
    ----------
    length : number of values
    where : file and member, for errors
    """

    def __init__(self, path: Path, key: str, kinds: str) -> None:
        self._path, self._name, self.where = path, f"{key}.npy", f"{path}: {key}"
        with _opened(path, self._name, self.where) as (size, file):
            shape, self._dtype = array_header(file, self.where)
            left = size - file.tell()
        if len(shape) != 1 or self._dtype.kind not in kinds:
            raise InputError(
                f"found {len(shape)}-dimensional {self._dtype}", self.where, "one-dimensional numbers"
            )
        self.length = int(shape[0])
        if self.length * self._dtype.itemsize != left:
            raise InputError(f"{left} bytes for {self.length} values of {self._dtype}", self.where)

    def pieces(self, lengths: Iterable[int]) -> Iterator[AnyArray]:
        """Yield (length,) pieces of these lengths, to the end of the array. InputError if it ends too early."""
        left = self.length
        with _opened(self._path, self._name, self.where) as (_, file):
            array_header(file, self.where)
            for length in lengths:
                data = file.read(min(length, left) * self._dtype.itemsize)
                piece: AnyArray = np.frombuffer(data, self._dtype)
                if len(piece) != min(length, left):
                    raise InputError("the member ends too early", self.where, f"{self.length} values")
                left -= len(piece)
                yield piece
                if not left and file.read(1) == b"":  # at its end the checksum is compared
                    return


@contextmanager
def _opened(path: Path, name: str, where: str) -> Iterator[tuple[int, IO[bytes]]]:
    """A member's unpacked size, and the member open for reading."""
    try:
        with zipfile.ZipFile(path) as archive:
            try:
                member = archive.getinfo(name)
            except KeyError:
                raise InputError("there is no such member", where, "nmsolve's own keys") from None
            with archive.open(member) as file:
                yield member.file_size, file
    except DAMAGE as error:
        raise damaged(error, path) from None


def numbers_of(arrays: dict[str, AnyArray], key: str, path: Path, dimensions: int = 1) -> AnyArray:
    """Return the array ``key`` of numbers, with ``dimensions`` axes.

    Raises
    ------
    InputError : it is missing, or of another kind
    """
    if key not in arrays:
        raise InputError(
            f"there is no member {key!r}", str(path), "indptr and indices, or what SciPy or nmsolve writes"
        )
    array = arrays[key]
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise InputError(
            f"found {array.ndim}-dimensional {array.dtype}",
            f"{path}: {key}",
            f"a {dimensions}-dimensional array of numbers",
        )
    return array


def indices_of(arrays: dict[str, AnyArray], key: str, path: Path, end: int) -> IntArray:
    """Return a (length,) array of whole numbers in 0..end-1. InputError for any other."""
    array = numbers_of(arrays, key, path)
    if array.dtype.kind not in "iu":
        raise InputError(f"found {array.dtype}", f"{path}: {key}", "whole numbers")
    if (k := first_true((array < 0) | (array >= end))) is not None:
        raise InputError(f"found {array[k]}", f"{path}: {key}[{k}]", f"0..{end - 1}")
    return array.astype(np.int64)


def row_starts(arrays: dict[str, AnyArray], path: Path, entries: int) -> IntArray:
    """Return (rows + 1,) ``indptr``. InputError if it does not split ``entries`` values into rows."""
    indptr = indices_of(arrays, "indptr", path, entries + 1)
    if len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != entries or (np.diff(indptr) < 0).any():
        raise InputError(
            "indptr does not split the edges into rows",
            f"{path}: indptr",
            f"rising numbers from 0 to {entries}",
        )
    return indptr


def check_length(array: AnyArray, length: int, key: str, path: Path) -> None:
    """Check that ``array`` has ``length`` entries along its first axis.

    Raises
    ------
    InputError : it has not
    """
    if len(array) != length:
        raise InputError(f"{len(array)} values", f"{path}: {key}", str(length))
