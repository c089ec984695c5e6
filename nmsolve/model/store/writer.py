"""Writing ``.nmz`` files vertex by vertex, without ever holding more than a few shards."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import atomic_file
from nmsolve.model.graph import row_max
from nmsolve.model.store.archive import ZipWriter, deflate
from nmsolve.model.store.coding import coding_of, exact_coding, from_codes, in_pieces, pack_numbers, to_codes
from nmsolve.model.store.identity import Identity
from nmsolve.model.store.manifest import MOST_MEMBER, VERSION, Coding, Column, Manifest, Shard
from nmsolve.model.store.varint import COUNT_BYTES, OK, RECORD_BYTES, WORDS, encode_records, imbalance
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: A shard ends with the vertex that brings it to this many connections, or vertices.
SHARD_CONNECTIONS, SHARD_VERTICES = 2**18, 2**18

#: Deflate level. Microcircuit: 1 packs 85 MB/s to 1.41 bytes per synapse, 4 59 MB/s to 1.27, 6 16 MB/s to 1.15.
LEVEL = 1

_NONE: Int32Array = np.empty(0, np.int32)


class StoreWriter:
    """Writes a ``.nmz`` file; a context manager.

    The file appears under its name when :meth:`close` (or the ``with`` block) ends well, and not at all otherwise. Its
    bytes depend on the vertices and connections only, not on how :meth:`append` cut them or on ``workers``.

    Parameters
    ----------
    vertices : how many there will be
    directed : False for a graph whose connections have no direction; each is then given once, at one end
    directions : "out": :meth:`append` gets connections at their sources; "both": also at their targets, with odd tags
    weight_unit : weights are multiples of it, 1/k for a whole k; None writes floats
    resources : names of what a core must hold
    meta : what the source said about a machine, JSON values
    level : deflate level, 1 to 9
    workers : threads that pack shards beside the caller; 1: the caller packs

    Raises
    ------
    InputError : a folder that cannot be written, a unit that cannot be
    """

    def __init__(
        self,
        path: str | Path,
        *,
        vertices: int,
        name: str = "graph",
        directed: bool = True,
        directions: Literal["out", "both"] = "out",
        weight_unit: float | None = 1.0,
        resources: Sequence[str] = ("neurons",),
        meta: Mapping[str, object] | None = None,
        level: int = LEVEL,
        workers: int = 1,
    ) -> None:
        self.path = Path(path)
        if not 1 <= vertices < 2**31:
            raise InputError(f"{vertices} vertices", str(path), f"from 1 to {2**31 - 1}")
        self._coding = coding_of(weight_unit, str(path))
        self._n, self._level, self._workers = vertices, level, workers
        self._name, self._directed, self._directions = name, directed, directions
        self._resources, self._meta = list(resources), dict(meta or {})
        self._both = directions == "both"
        self._parts: list[bytes] = []  # of the shard that is growing
        self._shard = Shard(0, 0, 0, 0, 0)
        self._shards: list[Shard] = []
        self._columns: dict[str, Column] = {}
        self._largest: list[FloatArray] = []  # weight of every vertex, for rates that nobody gives
        self._tagged = False
        self._identity = Identity()
        self._waiting: deque[tuple[Shard, Future[tuple[bytes, int]]]] = deque()
        self._open: ExitStack | None = ExitStack()
        self._zip = ZipWriter(self._open.enter_context(atomic_file(path)))
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def append(
        self,
        indptr: IntArray,
        neighbour: Int32Array,
        weight: FloatArray,
        size: Int32Array | None = None,
        tag: Int32Array | None = None,
    ) -> None:
        """Add the next ``len(indptr) - 1`` vertices with their connections.

        Parameters
        ----------
        indptr : (k + 1,) cuts the other arrays into vertices; starts at 0
        neighbour : (e,) the other vertex; rising within a vertex and tag, never the vertex itself
        weight : (e,) traffic, finite and >= 0
        size : (e,) synapses that each connection stands for, 1 if not given
        tag : (e,) bit 0: incoming; higher bits: number of the vertex's message. 0 if not given; not falling in a vertex

        Raises
        ------
        InputError : more vertices than promised, or connections that are not as above
        """
        indptr = np.asarray(indptr, np.int64)
        e = int(indptr[-1])
        if not len(neighbour) == len(weight) == e or any(a is not None and len(a) != e for a in (size, tag)):
            raise InputError(f"arrays of other lengths than {e}", str(self.path), "one value per connection")
        neighbour = np.ascontiguousarray(neighbour, np.int32)
        sizes = _NONE if size is None else np.ascontiguousarray(size, np.int32)
        tags = _NONE if tag is None else np.ascontiguousarray(tag, np.int32)
        weight = np.ascontiguousarray(weight, np.float64)
        begin, k = 0, len(indptr) - 1
        while begin < k:
            room = SHARD_CONNECTIONS - self._shard.connections
            end = begin + max(1, int(np.searchsorted(indptr[begin:], indptr[begin] + room)))
            end = min(end, k, begin + SHARD_VERTICES - self._shard.vertices)
            a, b = int(indptr[begin]), int(indptr[end])
            self._extend(indptr[begin : end + 1] - a, tags[a:b], neighbour[a:b], sizes[a:b], weight[a:b])
            if self._shard.connections >= SHARD_CONNECTIONS or self._shard.vertices >= SHARD_VERTICES:
                self._finish_shard()
            begin = end

    def _extend(
        self, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, size: Int32Array, weight: FloatArray
    ) -> None:
        """Encode vertices that belong to the growing shard."""
        old, k, e = self._shard, len(indptr) - 1, len(neighbour)
        here = old.first + old.vertices
        if here + k > self._n:
            raise InputError(f"more than the {self._n} vertices that were promised", str(self.path))
        code = to_codes(weight, self._coding, str(self.path))
        out = np.empty(COUNT_BYTES * k + RECORD_BYTES * e, np.uint8)
        status, at = encode_records(here, self._n, indptr, tag, neighbour, size, code, out)
        if status != OK:
            raise InputError(f"vertex {at} has {WORDS[status]}", str(self.path))
        self._parts.append(out[:at].tobytes())
        self._note_weights(indptr, weight, tag)
        self._identity.add(here, indptr, tag, neighbour, from_codes(code, self._coding, str(self.path)))
        excess = imbalance(here, indptr, tag, neighbour, size, code) if self._both else 0
        self._shard = Shard(
            old.first,
            old.vertices + k,
            old.connections + e,
            old.bytes + at,
            0,
            (old.imbalance + int(excess)) % 2**64,
        )

    def _note_weights(self, indptr: IntArray, weight: FloatArray, tag: Int32Array) -> None:
        """Keep the largest outgoing weight of every vertex."""
        if len(tag):
            self._tagged = self._tagged or bool((tag > 1).any())
            weight = np.where(tag & 1, 0.0, weight)
        self._largest.append(row_max(indptr, weight))

    def _finish_shard(self) -> None:
        """Hand the growing shard to be packed and start the next one."""
        shard, raw = self._shard, b"".join(self._parts)
        if shard.bytes > MOST_MEMBER:
            raise InputError(
                f"shard {len(self._shards) + len(self._waiting)} has {shard.bytes} bytes", str(self.path)
            )
        self._parts.clear()
        self._shard = Shard(shard.first + shard.vertices, 0, 0, 0, 0)
        if self._pool is None:
            self._write_shard(shard, *_pack(raw, self._level))
            return
        self._waiting.append((shard, self._pool.submit(_pack, raw, self._level)))
        if len(self._waiting) > 2 * self._workers:
            self._write_oldest()

    def _write_oldest(self) -> None:
        shard, packed = self._waiting.popleft()
        self._write_shard(shard, *packed.result())

    def _write_shard(self, shard: Shard, packed: bytes, crc: int) -> None:
        self._zip.add(f"shards/{len(self._shards):06d}", packed, shard.bytes, crc)
        self._shards.append(msgspec.structs.replace(shard, crc32=crc))

    def close(
        self,
        *,
        sizes: IntArray | None = None,
        rate: FloatArray | None = None,
        multicast: BoolArray | None = None,
        ids: Sequence[int | str] | None = None,
        messages: IntArray | None = None,
        row: IntArray | None = None,
        identity: str | None = None,
    ) -> None:
        """Write the columns and the manifest and give the file its name.

        Parameters
        ----------
        sizes : (n, resources) what each vertex takes; 1 of each if not given
        rate : (messages,) messages per step; the largest outgoing weight of the vertex if not given
        multicast : (messages,) whether it is one message to all targets; none is if not given
        ids : (n,) names; 0 .. n - 1 if not given
        messages : (n,) number of messages of each vertex; 1 if not given
        row : (messages,) number of each message in the graph that was saved; in order of the vertices if not given
        identity : hash of the graph that was saved; given if ``row`` is, else computed here

        Raises
        ------
        InputError : fewer vertices than promised, columns of other lengths, wrong values, a full disk
        """
        try:
            if self._shard.vertices:
                self._finish_shard()
            while self._waiting:
                self._write_oldest()
            written = self._shard.first
            if written != self._n:
                raise InputError(
                    f"{written} vertices were written", str(self.path), f"the {self._n} promised"
                )
            count = self._n if messages is None else int(np.sum(messages))
            if rate is None and (messages is not None or self._tagged):
                raise InputError("no rates", str(self.path), "one per message where a vertex has several")
            rate = np.concatenate(self._largest) if rate is None else np.asarray(rate, np.float64)
            casts = np.zeros(count, bool) if multicast is None else np.asarray(multicast, bool)
            shape = (self._n, len(self._resources))
            sizes = np.ones(shape, np.int64) if sizes is None else np.asarray(sizes, np.int64)
            if sizes.shape != shape or casts.shape != (count,):
                raise InputError(
                    f"sizes {sizes.shape}, multicast {casts.shape}", str(self.path), f"{shape}, {(count,)}"
                )
            self._number_column("messages", messages, self._n)
            self._number_column("row", row, count)
            self._number_column("multicast", casts if casts.any() else None, count)
            self._number_column("sizes", None if (sizes == 1).all() else sizes.T, sizes.size)
            self._rate_column(rate, count)
            if ids is not None:
                self._column("ids", msgspec.json.encode(list(ids)), len(ids), self._n)
            if identity is None:
                names = None if ids is None else tuple(ids)
                identity = self._identity.value(
                    self._n,
                    self._directed,
                    tuple(self._resources),
                    names,
                    messages,
                    casts,
                    rate,
                    sizes,
                    str(self.path),
                )
            self._write_manifest(count, identity)
            self._zip.finish()
        except BaseException as error:
            self._end(error)
            raise
        self._end(None)

    def _number_column(self, name: str, values: AnyArray | None, count: int) -> None:
        if values is None:
            return
        flat = np.ascontiguousarray(values).ravel()
        if flat.size and flat.min() < 0:
            raise InputError(f"{name} holds {flat.min()}", str(self.path), "whole numbers >= 0")
        self._column(name, pack_numbers(flat), len(flat), count)

    def _rate_column(self, rate: FloatArray, count: int) -> None:
        if not (np.isfinite(rate).all() and (rate >= 0).all()):
            raise InputError("a rate is negative or not finite", str(self.path), "a finite number >= 0")
        coding = exact_coding(in_pieces(rate))
        codes = to_codes(rate, coding, str(self.path))
        self._column("rate", pack_numbers(codes), len(rate), count, coding)

    def _column(self, name: str, raw: bytes, values: int, count: int, coding: Coding | None = None) -> None:
        if values != count:
            raise InputError(f"{values} {name}", str(self.path), str(count))
        if len(raw) > MOST_MEMBER:
            raise InputError(f"{name} takes {len(raw)} bytes", str(self.path), f"at most {MOST_MEMBER}")
        packed, crc = _pack(raw, self._level)
        self._zip.add(f"columns/{name}", packed, len(raw), crc)
        self._columns[name] = Column(values, len(raw), crc, coding)

    def _write_manifest(self, messages: int, identity: str) -> None:
        manifest = Manifest(
            nmz=VERSION,
            name=self._name,
            hash=identity,
            directed=self._directed,
            directions=self._directions,
            vertices=self._n,
            connections=sum(s.connections for s in self._shards),
            messages=messages,
            weight=self._coding,
            resources=self._resources,
            meta=self._meta,
            columns=self._columns,
            shards=self._shards,
        )
        raw = msgspec.json.encode(manifest)
        packed, crc = _pack(raw, self._level)
        self._zip.add("manifest.json", packed, len(raw), crc)

    def _end(self, error: BaseException | None) -> None:
        """End the threads, then give the file its name, or remove it if there was an ``error``."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._open is not None:
            stack, self._open = self._open, None
            stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is None:
            return
        if kind is None:
            self.close()
        else:
            self._end(error)


def _pack(raw: bytes, level: int) -> tuple[bytes, int]:
    """Deflated data and the checksum of the raw data."""
    return deflate(raw, level), zlib.crc32(raw)
