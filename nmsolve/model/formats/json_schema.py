"""The typed shapes of graph JSON; msgspec checks them and names the JSON path of what is wrong."""

from __future__ import annotations

from typing import Any

import msgspec

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
