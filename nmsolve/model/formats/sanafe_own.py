"""The section ``nmsolve`` of SANA-FE's networks that we write: what of a graph SANA-FE's own sections do not say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.sanafe_text import Parsed
from nmsolve.model.graph import LogicGraph, NodeKinds, compress_rows, row_max
from nmsolve.model.types import IntArray, frozen

#: The groups that the section is about: a neuron per node, and those that only send.
NODES, MORE = "nodes", "more"
#: The only version of the section that there is.
VERSION = 1


class Kinds(msgspec.Struct, forbid_unknown_fields=True):
    """Kinds of nodes: their names, and the number of each node's."""

    names: list[str | int]
    of: list[int]


class Section(msgspec.Struct, forbid_unknown_fields=True):
    """What is said.

    Attributes
    ----------
    more : the node that every neuron of the group ``more`` sends for
    rates, multicast : of every neuron: messages per step, and whether one goes to all its targets
    weights : of every edge, in the file's order, if they are not the rates of their senders
    ids, resources, sizes, kinds, directed, name : as in :class:`nmsolve.model.graph.LogicGraph`; a row of sizes per resource
    """

    version: int
    name: str
    directed: bool
    resources: list[str]
    sizes: list[list[int]]
    more: list[int]
    rates: list[float]
    multicast: list[bool]
    ids: list[str | int] | None = None
    kinds: Kinds | None = None
    weights: list[float] | None = None


def own_graph(parsed: Parsed, path: Path) -> LogicGraph:
    """Return the graph that was exported: messages of one node without multicast are one row.

    Raises
    ------
    InputError : the section is not of this shape, or about other neurons or edges
    """
    s, n, node = _checked(parsed, path)
    weights = (
        np.array(s.rates, np.float64)[parsed.source] if s.weights is None else np.array(s.weights, np.float64)
    )
    flag = np.array(s.multicast, bool)
    key = np.where(flag[parsed.source], parsed.source, len(node) + node[parsed.source])
    keys, first, row = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sender = node[parsed.source[first]]
    if len(np.unique(sender)) == len(keys):  # at most one message of every node: an ordinary graph
        rows, row, source = n, node[parsed.source], np.arange(n)
        multicast, rates = flag[:n].copy(), np.array(s.rates, np.float64)[:n]
    else:
        rows, row, source = len(keys), np.argsort(order)[row], sender[order]
        multicast = flag[parsed.source[first]][order]
        rates = np.array(s.rates, np.float64)[parsed.source[first]][order]
    indptr, targets, summed = compress_rows(rows, row, parsed.target, weights, n)
    kinds = (
        None if s.kinds is None else NodeKinds(tuple(s.kinds.names), frozen(np.array(s.kinds.of, np.int32)))
    )
    return LogicGraph(
        n=n, indptr=indptr, targets=targets, weights=summed, source=source.astype(np.int32), multicast=multicast,
        rate=np.where(multicast, rates, row_max(indptr, summed)), resources=tuple(s.resources),
        sizes=np.array(s.sizes, np.int64).reshape(len(s.resources), n).T.copy(), ids=None if s.ids is None else tuple(s.ids),
        directed=s.directed, name=s.name, kinds=kinds,
    )  # fmt: skip


def ids_and_nodes(parsed: Parsed, path: Path) -> tuple[Sequence[str | int], IntArray]:
    """Return the id of every node, and the node of every neuron. InputError as :func:`own_graph`."""
    s, n, node = _checked(parsed, path)
    return range(n) if s.ids is None else s.ids, node


def _checked(parsed: Parsed, path: Path) -> tuple[Section, int, IntArray]:
    """Return the section, the number of nodes, and the node of every neuron."""
    where = f"{path}: $.nmsolve"
    try:
        s = msgspec.convert(parsed.section, Section)
    except msgspec.ValidationError as error:
        raise InputError(
            f"not as it was written ({error})", where, "the section of an exported file, or none"
        ) from None
    if s.version != VERSION:
        raise InputError(f"version {s.version}", where, f"{VERSION}, or a newer nmsolve")
    sizes = {name: size for name, size, _ in parsed.groups}
    n, more = sizes.get(NODES, 0), sizes.get(MORE, 0)
    if [name for name, _, _ in parsed.groups] not in ([NODES], [NODES, MORE]) or n < 1:
        raise InputError("other groups of neurons", where, f"{NODES}, then {MORE}")
    lengths = {
        "more": (len(s.more), more), "rates": (len(s.rates), n + more), "multicast": (len(s.multicast), n + more),
        "sizes": (len(s.sizes), len(s.resources)), **{f"sizes[{i}]": (len(v), n) for i, v in enumerate(s.sizes)},
        "ids": (n if s.ids is None else len(set(s.ids)), n), "kinds": (n if s.kinds is None else len(s.kinds.of), n),
        "weights": (len(parsed.source) if s.weights is None else len(s.weights), len(parsed.source)),
    }  # fmt: skip
    for name, (found, wanted) in lengths.items():
        if found != wanted:
            raise InputError(f"{found} entries", f"{where}.{name}", f"{wanted} of this network")
    large = [
        v
        for row in (s.more, *s.sizes, [] if s.kinds is None else s.kinds.of)
        for v in row
        if not 0 <= v < 2**31
    ]
    if large or any(v >= n for v in s.more):
        raise InputError("a number is out of range", where, "the section of an exported file")
    if len(parsed.target) and parsed.target.max() >= n:
        raise InputError("an edge leads to a neuron that only sends", where, f"targets of the group {NODES}")
    return s, n, np.concatenate([np.arange(n), np.array(s.more, np.int64)])
