"""Message log of a cluster: an actor that all offers and bounds pass through, with a log on disk to restart from.

Agents append the messages of their engines. The run collects and checks them, and publishes the new state. A message is on disk
before it is acknowledged, and an agent keeps it until then. So no acknowledged message is lost when an agent or this actor dies,
and a message that comes twice counts once.
"""

from __future__ import annotations

import os
import pickle
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmsolve.model.types import IntArray

#: Length and checksum before every record.
_HEAD = struct.Struct("<qL")


@dataclass(frozen=True)
class State:
    """The state that the run publishes to all agents.

    Attributes
    ----------
    version : grows with every change
    run : number of the run in this process
    stopped : all engines shall end
    less_grace : seconds by which grace periods are shortened
    solution, objective, bound : incumbent and best bound, in the engines' terms
    """

    version: int = 0
    run: int = 0
    stopped: bool = False
    less_grace: float = 0.0
    solution: IntArray | None = None
    objective: float = float("inf")
    bound: float = 0.0


#: ``(agent, number among its messages, child, message)``
Record = tuple[str, int, int, Any]


class MessageLog:
    """Messages in order of arrival. Each is kept in memory until it is collected, on disk until the end.

    Parameters
    ----------
    path : the log on disk; its records are read at the start
    """

    def __init__(self, path: str) -> None:
        records = read_log(Path(path))
        self._first = 0
        self._records = records
        self._taken: dict[str, int] = {}
        for agent, number, _, _ in records:
            self._taken[agent] = number + 1
        self._state = State()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.truncate(self._fd, _whole_bytes(Path(path)))  # a torn record at the end was never acknowledged
        os.lseek(self._fd, 0, os.SEEK_END)

    def process(self) -> int:
        """Return its process id."""
        return os.getpid()

    def exchange(
        self, agent: str, first: int, messages: list[tuple[int, Any]], version: int
    ) -> tuple[int, State | None]:
        """Append an agent's messages, numbered from ``first``. Return how many of its messages are logged, and the state if its
        version is not ``version``.
        """
        taken = self._taken.get(agent, 0)
        new = [
            (agent, first + i, child, message)
            for i, (child, message) in enumerate(messages)
            if first + i >= taken
        ]
        if new:
            write_log(self._fd, new)
            self._records += new
            self._taken[agent] = new[-1][1] + 1
        state = self._state
        return self._taken.get(agent, 0), state if state.version != version else None

    def collect(self, seen: int, state: State | None) -> tuple[list[Record], int]:
        """Return the messages after the first ``seen``, which are forgotten, and the version of the state (a new ``state``)."""
        if state is not None:
            self._state = state
        drop = max(0, min(seen - self._first, len(self._records)))
        del self._records[:drop]
        self._first += drop
        return list(self._records), self._state.version


def write_log(fd: int, records: list[Record]) -> None:
    """Append records to the log; they survive this process."""
    data = b""
    for record in records:
        body = pickle.dumps(record, protocol=5)
        data += _HEAD.pack(len(body), zlib.crc32(body)) + body
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_log(path: Path) -> list[Record]:
    """Return all whole records; nothing where there is no log."""
    return [pickle.loads(body) for body in _bodies(path)]


def _whole_bytes(path: Path) -> int:
    return sum(_HEAD.size + len(body) for body in _bodies(path))


def _bodies(path: Path) -> list[bytes]:
    """Return the records as bytes, up to the first that is torn or changed."""
    data = path.read_bytes() if path.exists() else b""
    at, out = 0, []
    while at + _HEAD.size <= len(data):
        length, check = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        if length < 0 or len(body) < length or zlib.crc32(body) != check:
            break
        out.append(body)
        at += _HEAD.size + length
    return out
