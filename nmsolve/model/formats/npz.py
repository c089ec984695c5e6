"""NumPy archives ``.npz``: everything a :class:`LogicGraph` holds, or plain compressed sparse rows.

*Our own keys*: the array fields of :class:`LogicGraph` and ``header``, a JSON text with the rest.

*Plain rows*: ``indptr``, ``indices`` and optionally ``weights`` and ``vwgt`` hold an undirected graph with each
edge at both ends, as METIS wants it. A directed fan-out that may stand beside it (``d_indptr``, ``d_indices``,
``rate``) is *not* read: the undirected part is the same traffic with both directions added up, and it is what other
partitioners are given. ``meta["fan_out"]`` says that there was one.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import LARGEST_FILE, decode_json, write_atomic
from nmsolve.model.formats.symmetric import undirected_from_symmetric
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

#: Above this many unpacked bytes an archive may not shrink by more than PACKING.
UNSUSPICIOUS = 2**30
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

OWN = ("indptr", "targets", "weights", "source", "multicast", "rate", "sizes", "header")


class Header(msgspec.Struct):
    """What of a graph is no array."""

    nmsolve: int
    n: int
    resources: list[str]
    directed: bool
    name: str
    ids: list[int | str] | None = None
    meta: dict[str, Any] = {}


def load(path: Path) -> LogicGraph:
    """Read an archive of either kind. Pickled objects are never loaded.

    Raises
    ------
    InputError : truncated or damaged, a member that is missing or unpacks to more than it may, arrays that do not
        fit together
    """
    arrays = _read(path)
    if "header" in arrays:
        return _own(arrays, path)
    return _plain(arrays, path)


def _read(path: Path) -> dict[str, AnyArray]:
    """All wanted members, each checked before it is unpacked."""
    wanted = {*OWN, "indices", "vwgt"}
    out: dict[str, AnyArray] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_unpacked(members, path)
            names = {m.filename.removesuffix(".npy"): m for m in members}
            for name, member in names.items():
                if name in wanted:
                    out[name] = _member(archive, member, path)
            if "d_indptr" in names:
                out["fan_out"] = np.ones(1)
    except DAMAGE as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or "truncated"
        raise InputError(reason.lower(), str(path), "a complete .npz archive") from None
    return out


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
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(file)
        except (ValueError, SyntaxError, TokenError) as error:
            raise InputError(f"no array: {error}".splitlines()[0], where, "a .npy array") from None
        if dtype.hasobject:
            raise InputError("the array holds Python objects", where, "numbers or text")
        promised = dtype.itemsize * int(np.prod([int(s) for s in shape], dtype=object))
        left = member.file_size - file.tell()
        if promised != left:
            raise InputError(f"the header promises {promised} bytes, the member has {left}", where)
        data = file.read(promised)
        if len(data) != promised:
            raise InputError(f"only {len(data)} of {promised} bytes are there", where, "a complete member")
    with archive.open(member) as file:
        array: AnyArray = np.lib.format.read_array(io.BytesIO(file.read()), allow_pickle=False)
    return array


def _numbers(arrays: dict[str, AnyArray], key: str, path: Path, dimensions: int = 1) -> AnyArray:
    if key not in arrays:
        raise InputError(
            f"there is no member {key!r}", str(path), "indptr and indices, or nmsolve's own keys"
        )
    array = arrays[key]
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise InputError(
            f"found {array.ndim}-dimensional {array.dtype}",
            f"{path}: {key}",
            f"a {dimensions}-dimensional array of numbers",
        )
    return array


def _indices(arrays: dict[str, AnyArray], key: str, path: Path, end: int) -> IntArray:
    """A one-dimensional array of whole numbers in 0..end-1."""
    array = _numbers(arrays, key, path)
    if array.dtype.kind not in "iu":
        raise InputError(f"found {array.dtype}", f"{path}: {key}", "whole numbers")
    bad = np.flatnonzero((array < 0) | (array >= end))
    if len(bad):
        raise InputError(f"found {array[bad[0]]}", f"{path}: {key}[{bad[0]}]", f"0..{end - 1}")
    return array.astype(np.int64)


def _row_starts(arrays: dict[str, AnyArray], path: Path, entries: int) -> IntArray:
    indptr = _indices(arrays, "indptr", path, entries + 1)
    if len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != entries or (np.diff(indptr) < 0).any():
        raise InputError(
            "indptr does not cut the edges into rows",
            f"{path}: indptr",
            f"rising numbers from 0 to {entries}",
        )
    return indptr


def _length(array: AnyArray, length: int, key: str, path: Path) -> None:
    if len(array) != length:
        raise InputError(f"{len(array)} values", f"{path}: {key}", str(length))


def _plain(arrays: dict[str, AnyArray], path: Path) -> LogicGraph:
    """An undirected graph with each edge at both ends."""
    entries = len(_numbers(arrays, "indices", path))
    indptr = _row_starts(arrays, path, entries)
    n = len(indptr) - 1
    indices = _indices(arrays, "indices", path, n)
    weights = _numbers(arrays, "weights", path) if "weights" in arrays else np.ones(entries)
    _length(weights, entries, "weights", path)
    sizes: IntArray | None = None
    resources: tuple[str, ...] = ("neurons",)
    if "vwgt" in arrays:
        vwgt = arrays["vwgt"].reshape(len(arrays["vwgt"]), -1) if arrays["vwgt"].ndim else np.zeros((0, 1))
        if vwgt.dtype.kind not in "iu" or len(vwgt) != n or (vwgt < 0).any():
            raise InputError(f"found {vwgt.dtype} {vwgt.shape}", f"{path}: vwgt", f"{n} whole numbers >= 0")
        sizes = np.ascontiguousarray(vwgt, np.int64)
        resources = ("neurons", *(f"weight{i + 1}" for i in range(1, sizes.shape[1])))
    meta: dict[str, object] = (
        {"fan_out": "there is a directed fan-out, not read"} if "fan_out" in arrays else {}
    )
    return undirected_from_symmetric(
        indptr,
        indices,
        weights,
        lambda u: f"{path}: row {u}",
        0,
        resources=resources,
        sizes=sizes,
        name=path.stem,
        meta=meta,
    )


def _own(arrays: dict[str, AnyArray], path: Path) -> LogicGraph:
    """A graph as :func:`save` writes it."""
    header = decode_json(arrays["header"].tobytes(), Header, f"{path}: header")
    if header.nmsolve != 1:
        raise InputError(f"the file has version {header.nmsolve}", f"{path}: header", "1")
    targets = _indices(arrays, "targets", path, header.n)
    indptr = _row_starts(arrays, path, len(targets))
    rows = len(indptr) - 1
    source = _indices(arrays, "source", path, header.n)
    weights: FloatArray = _numbers(arrays, "weights", path).astype(np.float64)
    rate: FloatArray = _numbers(arrays, "rate", path).astype(np.float64)
    multicast: BoolArray = _numbers(arrays, "multicast", path).astype(bool)
    for key, array, length in (
        ("source", source, rows),
        ("rate", rate, rows),
        ("multicast", multicast, rows),
        ("weights", weights, len(targets)),
        ("header.ids", header.ids or range(header.n), header.n),
    ):
        _length(array, length, key, path)  # type: ignore[arg-type]
    row = np.repeat(np.arange(rows), np.diff(indptr))
    if ((np.diff(targets) <= 0) & (np.diff(row) == 0)).any() or (source[row] == targets).any():
        raise InputError("targets are not sorted, or a row holds its source", f"{path}: targets")
    return LogicGraph(
        n=header.n,
        indptr=indptr,
        targets=targets.astype(np.int32),
        weights=weights,
        source=source.astype(np.int32),
        multicast=multicast,
        rate=rate,
        resources=tuple(header.resources),
        sizes=_numbers(arrays, "sizes", path, 2).astype(np.int64),
        ids=None if header.ids is None else tuple(header.ids),
        directed=header.directed,
        name=header.name,
        meta=header.meta,
    )


def save(graph: LogicGraph, path: Path) -> None:
    """Write everything the graph holds, compressed; reading it back gives the same hash.

    Raises
    ------
    InputError : a file that cannot be written
    """
    header = Header(
        nmsolve=1,
        n=graph.n,
        resources=list(graph.resources),
        directed=graph.directed,
        name=graph.name,
        ids=None if graph.ids is None else list(graph.ids),
        meta=graph.meta,
    )
    arrays = {key: getattr(graph, key) for key in OWN if key != "header"}
    arrays["header"] = np.frombuffer(msgspec.json.encode(header), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
