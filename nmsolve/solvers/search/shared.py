"""Memory that parent and children share: the problem, written once, and the board with the best answer."""

from __future__ import annotations

import math
import mmap
import os
import pickle
import struct
import tempfile
import time
from contextlib import suppress
from typing import Any

import numpy as np

from nmsolve.model.host.processes import PASSES_FILES
from nmsolve.model.types import IntArray

_ALIGN = 64
#: What a child opens shared memory by: a descriptor that it inherits, or the path of a file.
Handle = int | str


def anonymous_file(size: int) -> Handle:
    """Return a file descriptor of ``size`` bytes of memory without a name: it cannot outlive its users.

    Where children cannot be handed descriptors, the path of a file, which :func:`forget` removes.
    """
    if not PASSES_FILES:
        fd, path = tempfile.mkstemp(prefix="nmsolve-shared-")
        os.ftruncate(fd, size)
        os.close(fd)
        return path
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("nmsolve")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def mapped(handle: Handle, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
    """Return all of such memory."""
    if isinstance(handle, int):
        return mmap.mmap(handle, 0, access=access)
    with open(handle, "r+b") as file:
        return mmap.mmap(file.fileno(), 0, access=access)


def forget(handle: Handle) -> None:
    """Give such memory back; it goes with its last user."""
    if isinstance(handle, int):
        os.close(handle)
        return
    with suppress(OSError):  # Windows removes nothing that is open
        os.unlink(handle)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


class SharedPickle:
    """An object pickled once into shared memory; children map its arrays instead of copying them.

    Layout: length of the head (8 bytes), head (pickle without arrays, and where each array is), arrays. Arrays that
    were read-only stay so; the others become private copies on the first write.
    """

    def __init__(self, value: object) -> None:
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        raws = [b.raw() for b in buffers]
        places, offset = [], 0
        for raw in raws:
            places.append((offset, raw.nbytes, raw.readonly))
            offset = _aligned(offset + raw.nbytes)
        head = pickle.dumps((body, places), protocol=5)
        base = _aligned(8 + len(head))
        self.fd = anonymous_file(base + offset)
        with mapped(self.fd) as memory:
            memory[: 8 + len(head)] = struct.pack("<q", len(head)) + head
            for raw, (at, size, _) in zip(raws, places, strict=True):
                memory[base + at : base + at + size] = raw

    @classmethod
    def of_bytes(cls, raw: memoryview | bytes) -> SharedPickle:
        """Return the one that has these bytes, which came from another machine."""
        made = cls.__new__(cls)
        made.fd = anonymous_file(len(raw))
        with mapped(made.fd) as memory:
            memory[:] = raw
        return made

    def whole(self) -> bytes:
        """Return all bytes."""
        with mapped(self.fd) as memory:
            return memory[:]

    @staticmethod
    def load(fd: Handle) -> Any:
        """Return the object in the file; its arrays keep the memory mapped."""
        memory = mapped(fd, mmap.ACCESS_COPY)
        view = memoryview(memory)
        (length,) = struct.unpack("<q", view[:8])
        body, places = pickle.loads(view[8 : 8 + length])
        base = _aligned(8 + length)
        parts = [view[base + at : base + at + size] for at, size, _ in places]
        buffers = [p.toreadonly() if fixed else p for p, (_, _, fixed) in zip(parts, places, strict=True)]
        return pickle.loads(body, buffers=buffers)

    def close(self) -> None:
        """Give the memory back once no child uses it."""
        forget(self.fd)


class Blackboard:
    """Best solution, best bound and the stop flag, written by the parent and read by every child.

    No process ever waits: a counter that is odd while the parent writes tells a reader to look again.

    Parameters
    ----------
    size : length of a solution
    fd : of a board made elsewhere; a new one if not given
    """

    def __init__(self, size: int, fd: Handle | None = None) -> None:
        length = 8 * (4 + size)
        self.fd = anonymous_file(length) if fd is None else fd
        memory = mapped(self.fd)
        self._count = np.frombuffer(memory, np.int64, 2, 0)  # counter, stop flag
        self._values = np.frombuffer(memory, np.float64, 2, 16)  # objective, bound
        self._solution = np.frombuffer(memory, np.int64, size, 32)
        if fd is None:
            self._values[0] = math.inf

    def publish(self, solution: IntArray | None, objective: float, bound: float) -> None:
        """Show the incumbent ``solution`` (size,), its objective and the bound to all children (parent only)."""
        self._count[0] += 1
        if solution is not None:
            self._solution[:] = solution
        self._values[:] = objective, bound
        self._count[0] += 1

    def stop(self) -> None:
        """Parent only: ask every child to end."""
        self._count[1] = 1

    @property
    def stopped(self) -> bool:
        """True once the parent asked for the end."""
        return bool(self._count[1])

    @property
    def values(self) -> tuple[float, float]:
        """Objective and bound (each written in one piece)."""
        return float(self._values[0]), float(self._values[1])

    def read(self) -> tuple[IntArray | None, float]:
        """Return the best solution (a copy) and its objective; ``(None, inf)`` if there is none."""
        for _ in range(1000):
            before = int(self._count[0])
            if before % 2 == 0:
                solution, objective = self._solution.copy(), float(self._values[0])
                if int(self._count[0]) == before:
                    return (solution, objective) if objective < math.inf else (None, math.inf)
            time.sleep(1e-4)
        return None, math.inf

    def close(self) -> None:
        """Close the descriptor; the memory goes with the last user."""
        forget(self.fd)
