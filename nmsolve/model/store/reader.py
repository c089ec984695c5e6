"""Reading ``.nmz`` files: shard by shard in any order, or several in parallel, nothing trusted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.host.memory import machine_memory
from nmsolve.model.store.archive import ZipReader
from nmsolve.model.store.block import NONE, Block
from nmsolve.model.store.codec import decode_records, imbalance
from nmsolve.model.store.coding import to_codes
from nmsolve.model.store.columns import read_columns
from nmsolve.model.store.manifest import MOST_MANIFEST, Column, Manifest, Shard, parse_manifest, shard_name
from nmsolve.model.store.varint import FULL, OK, WORDS
from nmsolve.model.types import Int32Array


class Store:
    """An open ``.nmz`` file: its vertices in memory, its connections read when asked for.

    Attributes
    ----------
    path, manifest : the file, and what it says about itself
    n, connections : number of vertices, and of connections in all shards
    shards : where the connections are
    sizes : (n, resources) int64
    rate : (messages,) float64
    multicast : (messages,) bool
    ids : n names, or None for 0 .. n - 1
    messages : (n,) int64 number of messages of each vertex, or None if each has one
    row : (messages,) int64 number of each message in the graph that was saved, or None for 0, 1, ...
    kinds : what kind each vertex is, or None
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._archive = ZipReader(self.path)
        try:
            self.manifest = self._read_manifest()
            self.n, self.connections = self.manifest.vertices, self.manifest.connections
            self.shards: tuple[Shard, ...] = tuple(self.manifest.shards)
            self._check_members()
            columns = read_columns(self.manifest, self._member, str(self.path))
            self.sizes, self.rate, self.multicast = columns.sizes, columns.rate, columns.multicast
            self.ids, self.messages, self.row = columns.ids, columns.messages, columns.row
            self.kinds = columns.kinds
        except BaseException:
            self._archive.close()
            raise

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a file; its manifest, directory and columns are checked, no connection is read.

        Raises
        ------
        InputError : no ``.nmz`` file, another version, anything that contradicts itself, or vertices that do not fit in
            this machine's memory
        """
        return cls(path)

    def _read_manifest(self) -> Manifest:
        where = f"{self.path}: manifest.json"
        member = self._archive.members.get("manifest.json")
        if member is None:
            raise InputError("there is no manifest.json", str(self.path), "a .nmz file")
        if member.size > MOST_MANIFEST:
            raise InputError(f"unpacks to {member.size} bytes", where, f"at most {MOST_MANIFEST}")
        manifest = parse_manifest(self._archive.read("manifest.json", member.size), where)
        need = 8 * (manifest.vertices * (len(manifest.resources) + 2) + 4 * manifest.messages)
        have = machine_memory()
        if need > have:
            raise InputError(
                f"{manifest.vertices} vertices need {need} bytes of memory",
                where,
                f"at most {have}, all that this machine has",
            )
        return manifest

    def _member(self, name: str, column: Column) -> bytes:
        return self._archive.read(name, column.bytes, column.crc32)

    def _check_members(self) -> None:
        """Raise InputError unless every part of the manifest exists and has the stated size."""
        parts: dict[str, Shard | Column] = {shard_name(i): s for i, s in enumerate(self.shards)}
        parts |= {f"columns/{name}": column for name, column in self.manifest.columns.items()}
        for name, part in parts.items():
            where = f"{self.path}: {name}"
            member = self._archive.members.get(name)
            if member is None:
                raise InputError("the archive lacks this member", where)
            if (member.size, member.crc32) != (part.bytes, part.crc32):
                raise InputError(
                    f"{member.size} bytes with checksum {member.crc32:08x}",
                    where,
                    f"{part.bytes} with {part.crc32:08x} as the manifest says",
                )

    def read(self, shard: int) -> Block:
        """Unpack, check and decode one shard. Threads may call this at once.

        Raises
        ------
        InputError : a shard that is damaged or says what cannot be; the message names it
        """
        s, name = self.shards[shard], shard_name(shard)
        raw = np.frombuffer(self._archive.read(name, s.bytes, s.crc32), np.uint8)
        coding = self.manifest.weight
        per = coding.per if coding.code == "integer" else 0
        indptr = np.empty(s.vertices + 1, np.int64)
        neighbour, weight = np.empty(s.connections, np.int32), np.empty(s.connections)
        word = weight.view(np.uint64)
        tag, size = NONE, NONE
        status, at = decode_records(raw, s.first, self.n, per, indptr, tag, neighbour, size, weight, word)
        if status == FULL:
            tag, size = np.empty(s.connections, np.int32), np.empty(s.connections, np.int32)
            status, at = decode_records(raw, s.first, self.n, per, indptr, tag, neighbour, size, weight, word)
        if status != OK:
            raise InputError(f"{WORDS[status]} (at vertex {at})", f"{self.path}: {name}")
        block = Block(s.first, indptr, tag if tag.any() else NONE, neighbour, _all_ones(size), weight)
        self._check_tags(shard, block)
        return block

    def _check_tags(self, shard: int, block: Block) -> None:
        """Every outgoing connection belongs to a message of its vertex; incoming ones are where they may be.

        With both directions, what the shard adds to their balance must be what the manifest says: then, as the
        manifest's numbers cancel out, so do the connections of the file.
        """
        where = f"{self.path}: {shard_name(shard)}"
        incoming = (block.tag & 1) == 1
        if self.manifest.directions == "out" and incoming.any():
            raise InputError("an incoming connection", where, "outgoing ones only")
        k = len(block.indptr) - 1
        if self.messages is not None:
            vertex = np.repeat(np.arange(block.first, block.first + k), np.diff(block.indptr))
            beyond = (block.tag >> 1 if len(block.tag) else 0) >= self.messages[vertex]
        else:
            beyond = block.tag > 1
        if (beyond & ~incoming).any() if len(block.tag) else beyond.any():
            raise InputError("a connection of a message that its vertex lacks", where)
        if self.manifest.directions == "both":
            codes = to_codes(block.weight, self.manifest.weight, where)
            found = imbalance(block.first, block.indptr, block.tag, block.neighbour, block.size, codes)
            if int(found) != self.shards[shard].imbalance:
                raise InputError(
                    "the two directions disagree: the shard is not what the manifest says", where
                )

    def blocks(self, order: Sequence[int] | None = None, workers: int = 1) -> Iterator[Block]:
        """Shards one after the other, in their own or the given ``order``.

        With more than one of ``workers``, as many threads decode ahead of the caller.
        """
        numbers = range(len(self.shards)) if order is None else order
        yield from map(self.read, numbers) if workers <= 1 else ahead(self.read, numbers, workers)

    def close(self) -> None:
        """Close the file; columns stay."""
        self._archive.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _all_ones(size: Int32Array) -> Int32Array:
    return size if (size != 1).any() else NONE


J = TypeVar("J")
T = TypeVar("T")


def ahead(work: Callable[[J], T], jobs: Iterable[J], workers: int) -> Iterator[T]:
    """``map(work, jobs)`` in order, with ``workers`` threads and as many results waiting."""
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
