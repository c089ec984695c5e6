"""METIS, hMETIS, Matrix Market, QAPLIB, archives, JSON, binaries, mappings, machines and constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmsolve.hw.machines import load_machine
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.any_file import read_any_mapping
from nmsolve.model.mapping.constraints_file import load_constraints
from unknown import Row

GRAPH = LogicGraph.from_edges(2, [0], [1])
BOARD = load_machine("mesh:1x2")
MARKET = "%%MatrixMarket matrix {} {} {}\n2 2 1\n2 1 3\n"


def archive(**members: Any) -> Callable[[Path], None]:
    """Write an archive with these members."""
    return lambda path: np.savez(path, **members)


def of_scipy(**members: Any) -> Callable[[Path], None]:
    """Write a matrix of SciPy with more members."""
    matrix = sp.csr_array(np.array([[0, 1], [1, 0]]))
    return archive(
        indices=matrix.indices, indptr=matrix.indptr, data=matrix.data, **{"shape": (2, 2), "format": "csr", **members}
    )  # fmt: skip


def own(path: Path) -> None:
    """Write an archive of ours with one member more."""
    from nmsolve.model.formats.npz_own import own_members

    np.savez(path, **own_members(GRAPH), delays=np.ones(1))


def mapping(path: Path) -> object:
    """Read a mapping of two nodes."""
    return read_any_mapping(path, GRAPH, BOARD)


def constraints(path: Path) -> object:
    """Read side constraints of two nodes."""
    return load_constraints(path, GRAPH, BOARD)


def machine(path: Path) -> object:
    """Read a machine."""
    return load_machine(str(path))


def node_link(**more: str) -> str:
    """Return a graph with more at its top, in a node, in an edge and among its attributes."""
    text = '{"directed": true, TOP "graph": {ATTRIBUTE}, "nodes": [{"id": 0 NODE}, {"id": 1}],'
    text += ' "edges": [{"source": 0, "target": 1 EDGE}]}'
    for place in ("TOP", "ATTRIBUTE", "NODE", "EDGE"):
        text = text.replace(place, more.get(place.lower(), ""))
    return text


words = np.array([2, 1, 1, 0, 1], "<u4")
snn = words.tobytes() + np.array([1.0], "<f4").tobytes()

_metis = partial(Row, "model.formats.metis", load_graph, "g.graph")
_market = partial(Row, "model.formats.matrix_market", load_graph, "g.mtx")
_npz = partial(Row, "model.formats.npz", load_graph, "g.npz")
_json = partial(Row, "model.formats.json_node_link", load_graph, "g.json")
_table = partial(Row, "model.mapping.csv_file", mapping, "m.csv")
_board = partial(Row, "hw.machine_file", machine, "m.toml")
_limits = partial(Row, "model.mapping.constraints_file", constraints, "c.json")

ROWS = [
    _metis("2 1 100\n4 2\n4 1\n", "vertex sizes"),
    _metis("2 1 5\n2\n1\n", "format is 5"),
    _metis("2 1\n2\n1\n7\n", "g.graph:4"),
    _metis("2 1\n2 three\n1\n", "'three'"),
    Row("model.formats.hmetis", load_graph, "g.hgr", "1 2 12\n1 2\n", "format is 12"),
    Row("model.formats.hmetis", load_graph, "g.hgr", "1 2\n1 2\n2 1\n", "g.hgr:3"),
    Row("model.formats.qaplib", load_graph, "g.dat", "1\n0\n0\n0\n", "more after the second matrix"),
    Row("model.formats.qaplib", load_graph, "g.dat", "1\n0\n-4\n", "-4"),
    Row("model.formats.axon", load_graph, "g.snn", snn + words.tobytes(), "one too many"),
    Row("model.formats.axon", load_graph, "g.axh", snn, "sources"),
    _market(MARKET.format("coordinate", "quaternion", "general"), "quaternion"),
    _market(MARKET.format("coordinate", "real", "lopsided"), "lopsided"),
    _market(MARKET.format("sparse", "real", "general"), "sparse"),
    _market(MARKET.format("coordinate", "real", "general") + "1 2 5\n", "6 numbers"),
    _npz(of_scipy(delay=np.ones(2)), "delay"),
    _npz(of_scipy(format="lil"), "lil"),
    _npz(of_scipy(offsets=np.ones(2)), "offsets"),
    _npz(archive(indptr=[0, 1, 2], indices=[1, 0], delay=[1, 1]), "delay"),
    _npz(archive(indptr=[0, 1, 2], indices=[1, 0], d_indptr=[0, 1, 1], rate=[1, 1]), "d_indptr"),
    _npz(own, "delays"),
    _json(node_link(top='"version": 3,'), "version"),
    _json(node_link(attribute='"capacities": {"neurons": 4}'), "capacities"),
    _json(node_link(node=', "pos": [0, 1]'), "pos"),
    _json(node_link(node=', "label": "in"'), "label"),
    _json(node_link(node=', "color": 3'), "color"),
    _json(node_link(node=', "rate": 3'), "rate"),
    _json(node_link(edge=', "delay": 2'), "delay"),
    _json(node_link(edge='}, {"source": 0, "target": 1'), "there before, perhaps the other way round: 1"),
    _json('{"elements": {"nodes": [{"data": {"id": "a"}}], "edges": []}}', "Cytoscape"),
    _json('{"graph": {"nodes": {"a": {}}, "edges": []}}', "JSON Graph Format"),
    _json('{"directed": true, "nodes": [{"id": 0}], "adjacency": [[]]}', "adjacency"),
    _json('{"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1}]}', "name"),
    Row(
        "model.formats.json_columns", load_graph, "c.json",
        '{"nmsolve": 1, "form": "columns", "delays": [1], "nodes": {"n": 2}, "edges": {"source": [0], "target": [1]}}',
        "delays",
    ),
    _table("node,core,load\n0,0,1\n1,1,1\n", "load"),
    _table("node,x,y\n0,0,0\n1,0,1\n", "'x'"),
    _table("node,chip_row,row,col\n0,0,0,0\n1,0,0,1\n", "chip_row"),
    _board("cores = [1, 2]\n[capcity]\nneurons = 3\n", "capacity"),
    _board("cores = [1, 2]\n[capacity]\nneurons = 3\nkinds_per_core = 2\n", "kinds_per_core"),
    _board("cores = [1, 2]\n[figures]\ncrossing_weight = 2\n", "crossing_weight"),
    _board('cores = [1, 2]\n[energy]\nrouter = {value = 1, unit = "J"}\n', "'J'"),
    _board("cores = [1, 2]\n[latency]\nhop = 1\n", "hop"),
    _board("cores = [1, 2]\n[[core]]\nNeurons = 2\n", "Neurons"),
    _limits('{"constraints": [], "version": 2}', "version"),
    _limits('{"constraints": [{"kind": "near", "nodes": [0, 1]}]}', "near"),
    _limits('{"constraints": [{"kind": "pin", "nodes": [0], "Core": [0, 0]}]}', "core (the nearest key)"),
]  # fmt: skip
