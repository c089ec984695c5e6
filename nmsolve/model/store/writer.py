"""Writing ``.nmz`` files vertex by vertex, without ever holding more than a few shards; and the hash of what passes by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import atomic_file
from nmsolve.model.graph import NodeKinds, array_digest, combined_hash, row_max
from nmsolve.model.store.archive import ZipWriter
from nmsolve.model.store.block import NONE
from nmsolve.model.store.coding import coding_of, from_codes, to_codes
from nmsolve.model.store.columns import Columns, complete, packed_columns
from nmsolve.model.store.manifest import MOST_MEMBER, VERSION, Column, Manifest
from nmsolve.model.store.shards import ShardWriter, pack
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray

#: Deflate level. Microcircuit: 1 packs 85 MB/s to 1.41 bytes per synapse, 4 59 MB/s to 1.27, 6 16 MB/s to 1.15.
LEVEL = 1


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
        self._n, self._level = vertices, level
        self._name, self._directed, self._directions = name, directed, directions
        self._resources, self._meta = list(resources), dict(meta or {})
        self._largest: list[FloatArray] = []  # weight of every vertex, for rates that are not given
        self._identity = Identity()
        self._open: ExitStack | None = ExitStack()
        self._zip = ZipWriter(self._open.enter_context(atomic_file(path)))
        self._shards = ShardWriter(self._zip, vertices, directions == "both", level, workers, str(path))

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
        size : (e,) synapses that each connection represents, 1 if not given
        tag : (e,) bit 0: incoming; higher bits: number of the vertex's message. 0 if not given; not falling in a vertex

        Raises
        ------
        InputError : more vertices than promised, or connections that are not as above
        """
        indptr = np.asarray(indptr, np.int64)
        e, where = int(indptr[-1]), str(self.path)
        if indptr[0] != 0 or (np.diff(indptr) < 0).any():
            raise InputError("indptr does not split the connections", where, "rising numbers from 0")
        if not len(neighbour) == len(weight) == e or any(a is not None and len(a) != e for a in (size, tag)):
            raise InputError(f"an array does not have {e} values", where, "one value per connection")
        neighbour, sizes, tags = (_as_int32(a, where) for a in (neighbour, size, tag))
        weight = np.ascontiguousarray(weight, np.float64)
        begin, k = 0, len(indptr) - 1
        while begin < k:
            connections, vertices = self._shards.room()
            end = begin + max(1, int(np.searchsorted(indptr[begin:], indptr[begin] + connections)))
            end = min(end, k, begin + vertices)
            a, b = int(indptr[begin]), int(indptr[end])
            self._extend(indptr[begin : end + 1] - a, tags[a:b], neighbour[a:b], sizes[a:b], weight[a:b])
            begin = end

    def _extend(
        self, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, size: Int32Array, weight: FloatArray
    ) -> None:
        """Add vertices that all belong to one shard."""
        code = to_codes(weight, self._coding, str(self.path))
        first = self._shards.vertices
        self._shards.extend(indptr, tag, neighbour, size, code)
        read_back = from_codes(code, self._coding, str(self.path))
        self._identity.add(first, indptr, tag, neighbour, read_back)
        self._largest.append(row_max(indptr, np.where(tag & 1, 0.0, read_back) if len(tag) else read_back))

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
        kinds: NodeKinds | None = None,
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
        kinds : what kind each vertex is

        Raises
        ------
        InputError : fewer vertices than promised, columns of other lengths, wrong values, a full disk
        """
        try:
            self._shards.drain()
            if self._shards.vertices != self._n:
                written = f"{self._shards.vertices} vertices were written"
                raise InputError(written, str(self.path), f"the {self._n} promised")
            if rate is None:
                if messages is not None:
                    raise InputError("no rates", str(self.path), "one per message where a vertex has several")
                rate = np.concatenate(self._largest)
            columns = complete(
                self._n, len(self._resources), str(self.path),
                sizes=sizes, rate=rate, multicast=multicast, ids=ids, messages=messages, row=row, kinds=kinds,
            )  # fmt: skip
            if identity is None:
                resources = tuple(self._resources)
                identity = self._identity.value(self._n, self._directed, resources, columns, str(self.path))
            names = msgspec.UNSET if kinds is None else list(kinds.names)
            self._write_manifest(self._write_columns(columns), len(columns.rate), identity, names)
            self._zip.finish()
        except BaseException as error:
            self._end(error)
            raise
        self._end(None)

    def _write_columns(self, columns: Columns) -> dict[str, Column]:
        out = {}
        for name, raw, values, coding in packed_columns(columns, str(self.path)):
            if len(raw) > MOST_MEMBER:
                raise InputError(f"{name} takes {len(raw)} bytes", str(self.path), f"at most {MOST_MEMBER}")
            packed, crc = pack(raw, self._level)
            self._zip.add(f"columns/{name}", packed, len(raw), crc)
            out[name] = Column(values, len(raw), crc, coding)
        return out

    def _write_manifest(
        self,
        columns: dict[str, Column],
        messages: int,
        identity: str,
        kinds: list[int | str] | msgspec.UnsetType,
    ) -> None:
        manifest = Manifest(
            nmz=VERSION,
            name=self._name,
            hash=identity,
            directed=self._directed,
            directions=self._directions,
            vertices=self._n,
            connections=sum(s.connections for s in self._shards.shards),
            messages=messages,
            weight=self._coding,
            resources=self._resources,
            meta=self._meta,
            kinds=kinds,
            columns=columns,
            shards=self._shards.shards,
        )
        raw = msgspec.json.encode(manifest)
        packed, crc = pack(raw, self._level)
        self._zip.add("manifest.json", packed, len(raw), crc)

    def _end(self, error: BaseException | None) -> None:
        """End the threads, then give the file its name, or remove it if there was an ``error``."""
        self._shards.stop()
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


def _as_int32(values: Int32Array | None, where: str) -> Int32Array:
    """Return the values as int32; length 0 if there are none."""
    if values is None:
        return NONE
    if values.dtype != np.int32 and len(values) and not -1 < values.min() <= values.max() < 2**31:
        raise InputError(f"numbers from {values.min()} to {values.max()}", where, f"from 0 to {2**31 - 1}")
    return np.ascontiguousarray(values, np.int32)


class Identity:
    """Takes the connections of all vertices in order, then says the hash. Incoming ones (odd tags) are skipped."""

    def __init__(self) -> None:
        self._targets, self._weights = hashlib.sha256(), hashlib.sha256()
        #: First vertex, or sender and number of each message; and lengths of the messages.
        self._lengths: list[tuple[int | tuple[Int32Array, Int32Array], Int32Array]] = []

    def add(
        self, first: int, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, weight: FloatArray
    ) -> None:
        """Add the connections of vertices ``first``, ``first + 1``, ... as in a block; weights as a reader will get them.

        ``indptr`` (vertices + 1,) splits ``tag``, ``neighbour`` and ``weight`` (connections,).
        """
        length = np.diff(indptr).astype(np.int32)
        place: int | tuple[Int32Array, Int32Array] = first
        if len(tag):
            out = (tag & 1) == 0
            neighbour, weight = neighbour[out], weight[out]
            sender = np.repeat(np.arange(first, first + len(length), dtype=np.int32), length)[out]
            number = tag[out] >> 1
            new = np.ones(len(number), bool)
            new[1:] = (sender[1:] != sender[:-1]) | (number[1:] != number[:-1])
            start = np.flatnonzero(new)
            place = sender[start], number[start]
            length = np.diff(start, append=len(number)).astype(np.int32)
        self._targets.update(np.ascontiguousarray(neighbour).data)
        self._weights.update(np.ascontiguousarray(weight).data)
        self._lengths.append((place, length))

    def value(
        self,
        n: int,
        directed: bool,
        resources: tuple[str, ...],
        columns: Columns,
        where: str,
    ) -> str:
        """Return the hash, given everything else about the graph.

        Raises
        ------
        InputError : a connection of a message that its vertex lacks; ``where`` is the place to name
        """
        many = np.ones(n, np.int64) if columns.messages is None else columns.messages
        indptr = self._row_starts(many, where)
        source = np.repeat(np.arange(n, dtype=np.int32), many)
        digests = [array_digest(indptr), self._targets.digest(), self._weights.digest()]
        digests += [array_digest(a) for a in (source, columns.multicast, columns.rate, columns.sizes)]
        return combined_hash(n, directed, resources, columns.ids, digests, columns.kinds)

    def _row_starts(self, many: IntArray, where: str) -> IntArray:
        """Return (messages + 1,) where the targets of each message begin."""
        first = np.cumsum(many) - many
        indptr = np.zeros(int(many.sum()) + 1, np.int64)
        for place, length in self._lengths:
            used = np.flatnonzero(length)
            sender, number = (place + used, np.zeros(1, np.int32)) if isinstance(place, int) else place
            if (number >= many[sender]).any():
                raise InputError("a connection of a message that its vertex lacks", where)
            indptr[first[sender] + number + 1] = length[used]
        np.cumsum(indptr, out=indptr)
        return indptr
