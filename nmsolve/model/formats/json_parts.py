"""The typed shapes of graph JSON, which msgspec checks, and lists of JSON values as checked arrays; errors name the JSON path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.text import whole_number
from nmsolve.model.types import FloatArray, IntArray, first_true, repeat_of


class NodeIndex:
    """Ids of the nodes of one file, and where each of them is.

    Parameters
    ----------
    ids : ids in file order
    where : file and JSON path of the list, e.g. ``net.json: $.nodes``
    key : what follows the position in an error, e.g. ``.id``

    Raises
    ------
    InputError : an id twice
    """

    def __init__(self, ids: Sequence[int | str], where: str, key: str = "") -> None:
        self.n = len(ids)
        self._index = dict(zip(ids, range(self.n), strict=True))
        if len(self._index) < self.n:
            i = repeat_of(ids) or 0
            what = f"node {ids[i]!r} appears twice (first at {ids.index(ids[i])})"
            raise InputError(what, f"{where}[{i}]{key}", "unique ids")
        plain = all(type(v) is int for v in ids) and list(ids) == list(range(self.n))
        #: the ids, or None if they are 0..n-1
        self.ids: tuple[int | str, ...] | None = None if plain else tuple(ids)

    def lookup(self, ids: Sequence[int | str], where: str, key: str = "") -> IntArray:
        """Return (len(ids),) the node index of every id.

        Raises
        ------
        InputError : an id that no node has
        """
        try:
            return np.fromiter(map(self._index.__getitem__, ids), np.int64, len(ids))
        except KeyError:
            k = next(i for i, v in enumerate(ids) if v not in self._index)
        found = ids[k]
        other: int | str | None = str(found) if isinstance(found, int) else whole_number(found)
        hint = ""
        if other in self._index:
            hint = f" (there is a node {other!r}: text and numbers are different ids)"
        raise InputError(f"no node has id {found!r}{hint}", f"{where}[{k}]{key}", "the id of a node")


def as_float(value: float) -> float:
    """Return a number as a float; infinite for a whole number of more than 308 digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def amounts(
    values: Sequence[float], where: str, key: str = "", names: Sequence[str] | None = None
) -> FloatArray:
    """Return ``values`` as (len(values),) float64; ``names`` says in errors what each one belongs to.

    Raises
    ------
    InputError : a value is negative or not finite
    """
    try:
        out = np.array(values, np.float64)
    except OverflowError:
        out = np.array([as_float(v) for v in values])
    if (k := first_true(~(np.isfinite(out) & (out >= 0)))) is not None:
        owner = f" of {names[k]}" if names is not None else ""
        raise InputError(f"{key.lstrip('.') or 'value'}{owner} is {out[k]:g}", f"{where}[{k}]{key}", ">= 0")
    return out


def whole(value: Any, where: str) -> int:
    """Return ``value`` if it is a whole number from 0 to 2^62; 32.0 is one, true and "32" are none.

    Raises
    ------
    InputError : anything else
    """
    if (
        isinstance(value, float) and value.is_integer() and value < 2**53
    ):  # beyond, decimals may have been lost
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise InputError(f"found {value!r}", where, "a whole number >= 0")
    return value


Id = int | str


class Anything(msgspec.Struct, gc=False):
    """An object that is passed over."""


class Net(msgspec.Struct):
    """What of ``net`` says that a file is one of NetPyNE."""

    cells: list[Anything] | None = None


class Form(msgspec.Struct):
    """The keys that say which form a file has; ``networks`` is that of a SONATA circuit, ``network`` and ``run`` those of a
    simulation of one, ``net`` and ``simConfig`` those of NetPyNE."""

    nmsolve: int | None = None
    form: str = "node-link"
    networks: Any = None
    network: Any = None
    run: Any = None
    net: Net | list[Any] | str | float | bool | None = None
    simConfig: Any = None


class Edge(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One edge of a node-link file; ``key`` tells parallel edges of a multigraph apart, which are added up."""

    source: Id
    target: Id
    weight: float = 1.0
    key: Any = None


class NodeLink(msgspec.Struct, forbid_unknown_fields=True):
    """Node-link JSON as ``networkx.node_link_data`` writes it (``edges``, or ``links`` in older versions)."""

    nodes: list[dict[str, Any]]
    directed: bool = True
    multigraph: bool = False
    graph: dict[str, Any] = {}
    edges: list[Edge] | None = None
    links: list[Edge] | None = None
    nmsolve: int | None = None
    form: str = ""


class NodeColumns(msgspec.Struct, forbid_unknown_fields=True):
    """Columns of nodes, all of equal length; ``n`` is needed only where no column says it.

    A column of another name (``neurons`` beside ``sizes``, ``weights`` of edges) is refused: it may be a size or a weight
    that would not count.
    """

    n: int | None = None
    id: list[Id] | None = None
    multicast: list[bool] | None = None
    rate: list[float] | None = None
    kind: list[Id] | None = None
    sizes: dict[str, list[int]] = {}


class EdgeColumns(msgspec.Struct, forbid_unknown_fields=True):
    """Columns of edges, all of equal length."""

    source: list[Id]
    target: list[Id]
    weight: list[float] | None = None


class NetColumns(msgspec.Struct, forbid_unknown_fields=True):
    """Messages that are not one per node: row ``i`` has targets ``target[indptr[i]:indptr[i+1]]``."""

    indptr: list[int]
    source: list[Id]
    target: list[Id]
    weight: list[float] | None = None
    rate: list[float] | None = None
    multicast: list[bool] | None = None


class Columns(msgspec.Struct, forbid_unknown_fields=True):
    """The column form, version 1: ``edges`` for an ordinary graph, ``nets`` for a hypergraph."""

    nodes: NodeColumns
    edges: EdgeColumns | None = None
    nets: NetColumns | None = None
    directed: bool = True
    graph: dict[str, Any] = {}
    nmsolve: int | None = None
    form: str = ""
