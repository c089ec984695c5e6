"""Connections on their way into a ``.nmz`` file: cut into shards, encoded, packed by threads, written in order."""

from __future__ import annotations

import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.store.archive import ZipWriter, deflate
from nmsolve.model.store.codec import COUNT_BYTES, RECORD_BYTES, encode_records, imbalance
from nmsolve.model.store.manifest import MOST_MEMBER, Shard, shard_name
from nmsolve.model.store.varint import OK, WORDS
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: A shard ends with the vertex that brings it to this many connections, or vertices.
SHARD_CONNECTIONS, SHARD_VERTICES = 2**18, 2**18


def pack(raw: bytes, level: int) -> tuple[bytes, int]:
    """Deflated data and the checksum of the raw data."""
    return deflate(raw, level), zlib.crc32(raw)


class ShardWriter:
    """Takes connections vertex by vertex and adds shards to an archive.

    The cuts depend on the vertices only, and shards are added in order, whichever thread packs them first.

    Attributes
    ----------
    shards : those added so far
    vertices : how many have been taken
    """

    def __init__(self, archive: ZipWriter, n: int, both: bool, level: int, workers: int, where: str) -> None:
        self._zip, self._n, self._both = archive, n, both
        self._level, self._where, self._workers = level, where, workers
        self._parts: list[bytes] = []  # of the shard that is growing
        self._shard = Shard(0, 0, 0, 0, 0)
        self._waiting: deque[tuple[Shard, Future[tuple[bytes, int]]]] = deque()
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self.shards: list[Shard] = []

    @property
    def vertices(self) -> int:
        return self._shard.first + self._shard.vertices

    def room(self) -> tuple[int, int]:
        """Connections and vertices that the growing shard still takes."""
        return SHARD_CONNECTIONS - self._shard.connections, SHARD_VERTICES - self._shard.vertices

    def extend(
        self, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, size: Int32Array, code: AnyArray
    ) -> None:
        """Encode the next vertices, all for the growing shard.

        ``indptr`` (vertices + 1,) splits ``tag``, ``neighbour``, ``size`` and ``code`` (connections,), the weights' codes.

        Raises
        ------
        InputError : more vertices than promised, or connections that cannot be; the message names the vertex
        """
        old, k, e = self._shard, len(indptr) - 1, len(neighbour)
        here = self.vertices
        if here + k > self._n:
            raise InputError(f"more than the {self._n} vertices that were promised", self._where)
        out = np.empty(COUNT_BYTES * k + RECORD_BYTES * e, np.uint8)
        status, at = encode_records(here, self._n, indptr, tag, neighbour, size, code, out)
        if status != OK:
            raise InputError(f"vertex {at} has {WORDS[status]}", self._where)
        self._parts.append(out[:at].tobytes())
        excess = imbalance(here, indptr, tag, neighbour, size, code) if self._both else 0
        self._shard = Shard(
            old.first,
            old.vertices + k,
            old.connections + e,
            old.bytes + at,
            0,
            (old.imbalance + int(excess)) % 2**64,
        )
        if min(self.room()) <= 0:
            self._finish()

    def _finish(self) -> None:
        """Hand the growing shard to be packed and start the next one."""
        shard, raw = self._shard, b"".join(self._parts)
        if shard.bytes > MOST_MEMBER:
            raise InputError(f"the shard from vertex {shard.first} has {shard.bytes} bytes", self._where)
        self._parts.clear()
        self._shard = Shard(self.vertices, 0, 0, 0, 0)
        if self._pool is None:
            self._add(shard, *pack(raw, self._level))
            return
        self._waiting.append((shard, self._pool.submit(pack, raw, self._level)))
        if len(self._waiting) > 2 * self._workers:
            self._add_oldest()

    def _add_oldest(self) -> None:
        shard, packed = self._waiting.popleft()
        self._add(shard, *packed.result())

    def _add(self, shard: Shard, packed: bytes, crc: int) -> None:
        self._zip.add(shard_name(len(self.shards)), packed, shard.bytes, crc)
        self.shards.append(msgspec.structs.replace(shard, crc32=crc))

    def drain(self) -> None:
        """Add what has been taken and is not yet there."""
        if self._shard.vertices:
            self._finish()
        while self._waiting:
            self._add_oldest()

    def stop(self) -> None:
        """End the threads; what waits is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
