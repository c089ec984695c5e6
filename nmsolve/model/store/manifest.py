"""The manifest of a ``.nmz`` file: what is in it, and how large each part is, before any of it is unpacked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json

VERSION = 1

#: Most bytes of a manifest, and of a shard or a column when unpacked.
MOST_MANIFEST, MOST_MEMBER = 2**26, 2**30

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Word = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class Coding(msgspec.Struct, frozen=True):
    """How numbers that may be fractions are written: ``integer`` as ``value * per``, ``float`` with bytes reversed."""

    code: Literal["integer", "float"]
    per: Annotated[int, msgspec.Meta(ge=1, le=10**15)] = 1


class Shard(msgspec.Struct, frozen=True):
    """The connections of ``vertices`` consecutive vertices from ``first`` on.

    ``bytes`` and ``crc32`` are of the unpacked data. ``imbalance`` (files with both directions) is the number that
    :func:`nmsolve.model.store.codec.imbalance` gives; over the file they add up to 0 modulo 2^64.
    """

    first: Count
    vertices: Count
    connections: Count
    bytes: Count
    crc32: Word
    imbalance: Annotated[int, msgspec.Meta(ge=0)] = 0


class Column(msgspec.Struct, frozen=True):
    """A member with one value per vertex (or message, or vertex and resource); ``bytes`` are unpacked ones."""

    values: Count
    bytes: Count
    crc32: Word
    coding: Coding | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a graph that is not an array. ``docs/nmz.md`` explains each field."""

    nmz: int
    name: str
    hash: str
    vertices: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    connections: Count
    messages: Count
    directed: bool
    directions: Literal["out", "both"]
    weight: Coding
    resources: list[str]
    meta: dict[str, Any] = {}
    kinds: list[int | str] | msgspec.UnsetType = msgspec.UNSET
    columns: dict[str, Column] = {}
    shards: list[Shard]


class _Version(msgspec.Struct):
    nmz: int


def shard_name(number: int) -> str:
    """Name of a shard in the archive."""
    return f"shards/{number:06d}"


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Return the manifest, consistent in itself.

    Raises
    ------
    InputError : not JSON, a missing or wrong field, another version, counts that contradict each other
    """
    version = decode_json(data, _Version, where).nmz
    if version != VERSION:
        raise InputError(
            f"the file has version {version}", f"{where}: $.nmz", f"{VERSION} (a newer nmsolve may read it)"
        )
    manifest = decode_json(data, Manifest, where)
    _check_shards(manifest, where)
    for name, column in manifest.columns.items():
        at = f"{where}: $.columns.{name}"
        if name != "ids":  # names are JSON text of any length
            _check_bytes(column.bytes, column.values, 0, at)
        elif column.bytes > MOST_MEMBER:
            raise InputError(f"unpacks to {column.bytes} bytes", at, f"at most {MOST_MEMBER}")
    return manifest


def _check_shards(manifest: Manifest, where: str) -> None:
    shards = manifest.shards
    for i, shard in enumerate(shards):
        _check_bytes(shard.bytes, shard.vertices, shard.connections, f"{where}: $.shards[{i}]")
    starts = [s.first for s in shards] + [manifest.vertices]
    ends = [0] + [s.first + s.vertices for s in shards]
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start != end or (i < len(shards) and not shards[i].vertices):
            raise InputError(
                f"shards do not follow each other at vertex {end}",
                f"{where}: $.shards[{min(i, len(shards) - 1)}]",
                f"every vertex from 0 to {manifest.vertices - 1} in one shard, in order",
            )
    total = sum(s.connections for s in shards)
    if total != manifest.connections:
        raise InputError(
            f"the shards hold {total} connections", f"{where}: $.connections", str(manifest.connections)
        )
    if manifest.directions == "both" and sum(s.imbalance for s in shards) % 2**64:
        raise InputError(
            "the two directions disagree: a connection is missing or different at one of its ends",
            f"{where}: $.shards",
            "each connection once at its source and once at its target",
        )


def _check_bytes(size: int, values: int, connections: int, where: str) -> None:
    """``values`` numbers and ``connections`` records of four must be able to take ``size`` bytes."""
    least, most = values + 4 * connections, 10 * values + 40 * connections
    if not least <= size <= most:
        raise InputError(
            f"{size} bytes for {values} numbers and {connections} connections", where, f"{least} to {most}"
        )
    if size > MOST_MEMBER:
        raise InputError(f"unpacks to {size} bytes", where, f"at most {MOST_MEMBER}")
