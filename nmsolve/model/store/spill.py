"""Arrays held in memory as far as there is room, and in a scratch file beyond."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np

from nmsolve.model.host.disk import read_into, unnamed_file, write_at
from nmsolve.model.store.scratch import Scratch, scratch_error
from nmsolve.model.types import AnyArray


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
