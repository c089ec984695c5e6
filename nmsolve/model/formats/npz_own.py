"""Archives as :func:`nmsolve.model.formats.npz.save` writes them: in memory, or their edges a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json
from nmsolve.model.formats.npz_members import (
    MemberStream,
    check_length,
    indices_of,
    numbers_of,
    read_members,
    row_starts,
    warn_of_members,
)
from nmsolve.model.graph import LogicGraph, NodeKinds, check_kinds
from nmsolve.model.network import BLOCK, Connections, Network
from nmsolve.model.store.coding import exact_coding
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray

OWN: tuple[str, ...] = (
    "indptr",
    "targets",
    "weights",
    "source",
    "multicast",
    "rate",
    "sizes",
    "kind",
    "header",
)
#: For messages.
MEMBERS = "the members that nmsolve writes"


class Header(msgspec.Struct):
    """What of a graph is not an array."""

    nmsolve: int
    n: int
    resources: list[str]
    directed: bool
    name: str
    ids: list[int | str] | None = None
    meta: dict[str, Any] = {}
    kinds: list[int | str] | None = None


class Columns(NamedTuple):
    """What an archive of ours holds besides header, targets and weights: arrays as in the graph."""

    indptr: IntArray
    source: IntArray
    multicast: BoolArray
    rate: FloatArray
    sizes: IntArray


def _header(arrays: dict[str, AnyArray], path: Path) -> Header:
    header = decode_json(arrays["header"].tobytes(), Header, f"{path}: header")
    if header.nmsolve != 1:
        raise InputError(f"the file has version {header.nmsolve}", f"{path}: header", "1")
    return header


def _columns(header: Header, arrays: dict[str, AnyArray], path: Path, entries: int) -> Columns:
    """Return the columns of a graph of ``entries`` edges, checked."""
    indptr = row_starts(arrays, path, entries)
    source = indices_of(arrays, "source", path, header.n)
    rate: FloatArray = numbers_of(arrays, "rate", path).astype(np.float64)
    multicast: BoolArray = numbers_of(arrays, "multicast", path).astype(bool)
    for key, array, length in (
        ("source", source, len(indptr) - 1),
        ("rate", rate, len(indptr) - 1),
        ("multicast", multicast, len(indptr) - 1),
        ("header.ids", header.ids or range(header.n), header.n),
    ):
        check_length(array, length, key, path)  # type: ignore[arg-type]
    sizes = numbers_of(arrays, "sizes", path, 2).astype(np.int64)
    return Columns(indptr, source, multicast, rate, sizes)


def _kinds(header: Header, arrays: dict[str, AnyArray], path: Path) -> NodeKinds | None:
    """Return the kinds of the nodes, checked."""
    if header.kinds is None:
        return None
    of = indices_of(arrays, "kind", path, max(1, len(header.kinds)))
    kinds = NodeKinds(tuple(header.kinds), of.astype(np.int32))
    check_kinds(kinds, header.n, f"{path}: kind")
    return kinds


def own_members(graph: LogicGraph) -> dict[str, AnyArray]:
    """Return everything that a graph holds, as the members from which :func:`own_graph` makes it again."""
    header = Header(
        nmsolve=1,
        n=graph.n,
        resources=list(graph.resources),
        directed=graph.directed,
        name=graph.name,
        ids=None if graph.ids is None else list(graph.ids),
        meta=graph.meta,
        kinds=None if graph.kinds is None else list(graph.kinds.names),
    )
    arrays: dict[str, AnyArray] = {key: getattr(graph, key) for key in OWN if key not in ("header", "kind")}
    if graph.kinds is not None:
        arrays["kind"] = graph.kinds.of
    return arrays | {"header": np.frombuffer(msgspec.json.encode(header), np.uint8)}


def own_graph(arrays: dict[str, AnyArray], path: Path) -> LogicGraph:
    """Return the graph of the members ``arrays`` that :func:`own_members` gives.

    Raises
    ------
    InputError : wrong content
    """
    header = _header(arrays, path)
    entries = len(numbers_of(arrays, "targets", path))
    indptr, source, multicast, rate, sizes = _columns(header, arrays, path, entries)
    targets = indices_of(arrays, "targets", path, header.n)
    weights: FloatArray = numbers_of(arrays, "weights", path).astype(np.float64)
    check_length(weights, entries, "weights", path)
    row = np.repeat(np.arange(len(source)), np.diff(indptr))
    if ((np.diff(targets) <= 0) & (np.diff(row) == 0)).any() or (source[row] == targets).any():
        raise InputError("targets are not sorted, or a row contains its own source", f"{path}: targets")
    return LogicGraph(
        n=header.n,
        indptr=indptr,
        targets=targets.astype(np.int32),
        weights=weights,
        source=source.astype(np.int32),
        multicast=multicast,
        rate=rate,
        resources=tuple(header.resources),
        sizes=sizes,
        ids=None if header.ids is None else tuple(header.ids),
        directed=header.directed,
        name=header.name,
        meta=header.meta,
        kinds=_kinds(header, arrays, path),
    )


def own_network(path: Path) -> Network | None:
    """Return the network of an archive that :func:`save` wrote, its edges read when they are taken.

    None for plain rows (each edge at both ends) and hypergraphs (messages in any order).

    Raises
    ------
    InputError : as :func:`load`; what is wrong with edges shows when they are taken
    """
    small, others = read_members(path, {*OWN} - {"targets", "weights"})
    if "header" not in small:
        return None
    warn_of_members([name for name in others if name not in OWN], path, MEMBERS)
    header = _header(small, path)
    files = MemberStream(path, "targets", "iu"), MemberStream(path, "weights", "iuf")
    entries = files[0].length
    indptr, source, multicast, rate, sizes = _columns(header, small, path, entries)
    if len(source) != header.n or (source != np.arange(header.n)).any():
        return None
    if files[1].length != entries:
        raise InputError(f"{files[1].length} values", f"{path}: weights", str(entries))
    coding = exact_coding(files[1].pieces(repeat(BLOCK)))
    return Network(
        header.n,
        header.name,
        _blocks(indptr, *files),
        directed=header.directed,
        multicast=multicast,
        rate=rate,
        resources=tuple(header.resources),
        sizes=sizes,
        ids=None if header.ids is None else tuple(header.ids),
        unit=None if coding.code == "float" else 1 / coding.per,
        meta=header.meta,
        kinds=_kinds(header, small, path),
    )


def _blocks(indptr: IntArray, targets: MemberStream, weights: MemberStream) -> Iterator[Connections]:
    """Whole rows of about BLOCK edges."""
    cuts = [0]
    while cuts[-1] < len(indptr) - 1:
        full = int(np.searchsorted(indptr, indptr[cuts[-1]] + BLOCK))
        cuts.append(min(max(full, cuts[-1] + 1), len(indptr) - 1))
    lengths = np.diff(indptr[cuts]).tolist()
    parts = zip(targets.pieces(lengths), weights.pieces(lengths), strict=True)
    for (first, last), (neighbour, weight) in zip(pairwise(cuts), parts, strict=True):
        if len(neighbour) and not 0 <= neighbour.min() <= neighbour.max() < len(indptr) - 1:
            raise InputError("an edge leads to an unknown node", targets.where, f"0..{len(indptr) - 2}")
        yield Connections(
            indptr[first : last + 1] - indptr[first], neighbour.astype(np.int32), weight.astype(np.float64)
        )
