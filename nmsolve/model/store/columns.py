"""The columns of a ``.nmz`` file about vertices and messages, in memory and as members of the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json
from nmsolve.model.graph import NodeKinds, check_kinds
from nmsolve.model.store.coding import (
    exact_coding,
    from_codes,
    in_pieces,
    pack_numbers,
    to_codes,
    unpack_numbers,
)
from nmsolve.model.store.manifest import Coding, Column, Manifest
from nmsolve.model.store.varint import OK, WORDS
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray, frozen


@dataclass(frozen=True)
class Columns:
    """All columns, defaults filled in.

    Attributes
    ----------
    sizes : (n, resources) what each vertex takes
    rate, multicast : (messages,)
    ids : n names, or None for 0 .. n - 1
    messages : (n,) number of messages of each vertex, or None if each has one
    row : (messages,) number of each message in the graph that was saved, or None for 0, 1, ...
    kinds : what kind each vertex is, or None
    """

    sizes: IntArray
    rate: FloatArray
    multicast: BoolArray
    ids: tuple[int | str, ...] | None = None
    messages: IntArray | None = None
    row: IntArray | None = None
    kinds: NodeKinds | None = None


def complete(
    n: int,
    resources: int,
    where: str,
    *,
    sizes: IntArray | None,
    rate: FloatArray,
    multicast: BoolArray | None,
    ids: Sequence[int | str] | None,
    messages: IntArray | None,
    row: IntArray | None,
    kinds: NodeKinds | None = None,
) -> Columns:
    """Return columns with defaults filled in; shapes as in :class:`Columns`, ``n`` vertices.

    Raises
    ------
    InputError : a column of the wrong length, or with a value that cannot be; ``where`` is the place to name
    """
    total = n if messages is None else int(np.sum(messages))
    columns = Columns(
        sizes=np.ones((n, resources), np.int64) if sizes is None else np.asarray(sizes, np.int64),
        rate=np.asarray(rate, np.float64),
        multicast=np.zeros(total, bool) if multicast is None else np.asarray(multicast, bool),
        ids=None if ids is None else tuple(ids),
        messages=None if messages is None else np.asarray(messages, np.int64),
        row=None if row is None else np.asarray(row, np.int64),
        kinds=kinds,
    )
    if kinds is not None:
        check_kinds(kinds, n, where)
    for name, shape in (
        ("sizes", (n, resources)), ("rate", (total,)), ("multicast", (total,)), ("messages", (n,)), ("row", (total,)),
    ):  # fmt: skip
        values = getattr(columns, name)
        if values is None:
            continue
        if values.shape != shape:
            raise InputError(f"{name} of shape {values.shape}", where, str(shape))
        if values.size and not values.min() >= 0:
            raise InputError(f"{name} holds {values.min()}", where, "numbers >= 0")
    if columns.ids is not None and len(columns.ids) != n:
        raise InputError(f"{len(columns.ids)} ids", where, str(n))
    return columns


class Packed(NamedTuple):
    """A column as it is written."""

    name: str
    raw: bytes
    values: int
    coding: Coding | None = None


def packed_columns(columns: Columns, where: str) -> Iterator[Packed]:
    """Yield the columns that are not as a reader assumes anyway."""
    for name, values in (
        ("messages", columns.messages),
        ("row", columns.row),
        ("multicast", columns.multicast if columns.multicast.any() else None),
        ("sizes", None if (columns.sizes == 1).all() else columns.sizes.T),
        ("kind", None if columns.kinds is None else columns.kinds.of),
    ):
        if values is not None:
            yield Packed(name, pack_numbers(values.ravel()), values.size)
    coding = exact_coding(in_pieces(columns.rate))
    yield Packed("rate", pack_numbers(to_codes(columns.rate, coding, where)), len(columns.rate), coding)
    if columns.ids is not None:
        yield Packed("ids", msgspec.json.encode(columns.ids), len(columns.ids))


def read_columns(manifest: Manifest, member: Callable[[str, Column], bytes], path: str) -> Columns:
    """Return the columns of a file; ``member`` gives the unpacked bytes of one, whose size and checksum it has checked.

    Raises
    ------
    InputError : columns that are not of the length or kind that the manifest asks for; the message names them
    """
    n, resources = manifest.vertices, len(manifest.resources)

    def place(name: str) -> str:
        return f"{path}: columns/{name}"

    def numbers(name: str, count: int) -> AnyArray | None:
        """Return the values of a column, None if the file has none of that name."""
        column = manifest.columns.get(name)
        if column is None:
            return None
        if column.values != count:
            raise InputError(f"{column.values} values", place(name), str(count))
        status, values = unpack_numbers(member(f"columns/{name}", column), count)
        if status != OK:
            raise InputError(WORDS[status], place(name), f"{count} numbers")
        return values

    messages = numbers("messages", n)
    total = n if messages is None else int(messages.sum())
    if total != manifest.messages:
        raise InputError(f"the vertices have {total} messages", place("messages"), str(manifest.messages))
    row = numbers("row", total)
    if row is not None and not np.array_equal(np.sort(row), np.arange(total, dtype=np.uint64)):
        raise InputError("messages are missing or listed twice", place("row"), f"0..{total - 1}")
    sizes, multicast, codes = (
        numbers("sizes", n * resources),
        numbers("multicast", total),
        numbers("rate", total),
    )
    if sizes is None:
        sizes = np.ones(n * resources, np.int64)
    elif sizes.size and sizes.max() > 2**62:
        raise InputError(f"a size of {sizes.max()}", place("sizes"), "at most 2^62")
    coding = None if codes is None else manifest.columns["rate"].coding
    if codes is None or coding is None:
        raise InputError("the rates or their coding are missing", place("rate"), "a column with its coding")
    return Columns(
        sizes=np.ascontiguousarray(sizes.astype(np.int64).reshape(resources, n).T),
        rate=from_codes(codes, coding, place("rate")),
        multicast=np.zeros(total, bool) if multicast is None else multicast != 0,
        ids=_names(manifest, member, place("ids")),
        messages=None if messages is None else messages.astype(np.int64),
        row=None if row is None else row.astype(np.int64),
        kinds=_kinds(manifest.kinds or None, numbers("kind", n), place("kind")),
    )


def _kinds(names: list[int | str] | None, of: AnyArray | None, where: str) -> NodeKinds | None:
    if names is None and of is None:
        return None
    if names is None or of is None or of.max() >= len(names):
        raise InputError("names of kinds and kinds of vertices do not match", where, "both, or neither")
    kinds = NodeKinds(tuple(names), frozen(of.astype(np.int32)))
    check_kinds(kinds, len(of), where)
    return kinds


def _names(
    manifest: Manifest, member: Callable[[str, Column], bytes], where: str
) -> tuple[int | str, ...] | None:
    column = manifest.columns.get("ids")
    if column is None:
        return None
    ids = decode_json(member("columns/ids", column), list[int | str], where)
    if len(ids) != manifest.vertices or len(set(ids)) != len(ids):
        raise InputError(
            f"{len(ids)} ids, {len(set(ids))} different ones", where, f"{manifest.vertices} different ones"
        )
    return tuple(ids)
