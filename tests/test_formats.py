"""Graph files: what is written is read back, and every damaged file is one clear line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from formats_support import adjacency, nets, put, refused, rich_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import FORMATS, load_graph, load_instance, save_graph
from nmsolve.model.graph import LogicGraph


@pytest.mark.parametrize("extension", [".json", ".npz"])
@pytest.mark.parametrize("make", [rich_graph, nets])
def test_own_formats_keep_everything(tmp_path: Path, extension: str, make: object) -> None:
    graph = make()  # type: ignore[operator]
    path = tmp_path / f"g{extension}"
    save_graph(graph, path)
    back = load_graph(path)
    assert (back.hash, back.name, back.meta) == (graph.hash, graph.name, graph.meta)


def test_column_form_of_an_ordinary_graph_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmsolve.model.formats import json_graph

    monkeypatch.setattr(json_graph, "NODE_LINK_EDGES", 0)
    for graph in (rich_graph(), LogicGraph.from_edges(3, [0, 2], [1, 1], directed=False)):
        save_graph(graph, tmp_path / "g.json")
        assert '"form":"columns"' in (tmp_path / "g.json").read_text()
        assert load_graph(tmp_path / "g.json").hash == graph.hash


edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), max_size=15)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(edges=edges, directed=st.booleans(), sized=st.booleans())
def test_every_format_gives_the_same_traffic_back(
    tmp_path_factory: pytest.TempPathFactory, edges: list[tuple[int, int, int]], directed: bool, sized: bool
) -> None:
    graph = LogicGraph.from_edges(
        7,
        [e[0] for e in edges],
        [e[1] for e in edges],
        [float(e[2]) for e in edges],
        directed=directed,
        sizes=np.arange(1, 8).reshape(7, 1) if sized else None,
        meta={"mesh": [7, 1]},
    )
    wanted = adjacency(graph)
    folder = tmp_path_factory.mktemp("formats")
    for extension in FORMATS:
        path = folder / f"g{extension}"
        save_graph(graph, path)
        back = load_graph(path)
        got = adjacency(back)
        if extension == ".hgr" and directed:
            assert back.m == graph.m  # one net per sender, with its largest weight
        elif directed and extension in (".json", ".npz", ".mtx", ".dat"):
            assert np.array_equal(got, wanted)
        else:
            assert np.array_equal(got + got.T, wanted + wanted.T)
        if extension in (".json", ".npz", ".graph", ".hgr"):
            assert np.array_equal(back.sizes, graph.sizes)


def test_unknown_extension_suggests_the_nearest(tmp_path: Path) -> None:
    assert "did you mean .json?" in refused(tmp_path / "net.jsn")
    assert "no extension" in refused(tmp_path / "net")
    assert "`nmsolve assign`" in refused(tmp_path / "net.onnx")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for extension in FORMATS:
        assert "no such file" in refused(tmp_path / f"none{extension}")
        (tmp_path / f"folder{extension}").mkdir()
        assert "directory" in refused(tmp_path / f"folder{extension}")


# ---- JSON ---------------------------------------------------------------------------------------------------


def node_link(**changes: object) -> str:
    content: dict[str, object] = {
        "directed": True,
        "nodes": [{"id": "a"}, {"id": "b"}],
        "edges": [{"source": "a", "target": "b", "weight": 2}],
    }
    return json.dumps({**content, **changes})


@pytest.mark.parametrize("key", ["edges", "links"])
@pytest.mark.parametrize("directed", [True, False])
def test_reads_what_networkx_writes(tmp_path: Path, key: str, directed: bool) -> None:
    g = nx.gnp_random_graph(12, 0.4, seed=3, directed=directed)
    nx.set_edge_attributes(g, {e: i + 0.5 for i, e in enumerate(g.edges)}, "weight")
    data = nx.node_link_data(g, edges=key)
    graph = load_graph(put(tmp_path, "g.json", json.dumps(data)))
    wanted = nx.to_numpy_array(g)
    assert graph.directed == directed
    assert np.array_equal(adjacency(graph), wanted if directed else np.triu(wanted))


def test_sizes_may_be_given_in_three_ways(tmp_path: Path) -> None:
    nodes = [
        {"id": 0, "neurons": 3, "layer": "x", "y": -1, "age": 4},
        {"id": 1, "neurons": 2, "multicast": True, "rate": 1.5},
    ]
    graph = load_graph(put(tmp_path, "a.json", node_link(nodes=nodes, edges=[])))
    assert graph.resources == ("neurons", "age") and graph.sizes.tolist() == [[3, 4], [2, 0]]
    assert graph.rate.tolist() == [0, 1.5] and graph.multicast.tolist() == [False, True]
    nodes = [{"id": 0, "size": 3}, {"id": 1, "sizes": {"neurons": 1, "bytes": 10}}]
    graph = load_graph(put(tmp_path, "b.json", node_link(nodes=nodes, edges=[])))
    assert graph.resources == ("neurons", "bytes") and graph.sizes.tolist() == [[3, 0], [1, 10]]
    listed = {"resources": ["cells"]}
    nodes = [{"id": 0, "cells": 3, "x": 1}]
    graph = load_graph(put(tmp_path, "c.json", node_link(nodes=nodes, edges=[], graph=listed)))
    assert graph.resources == ("cells",)


def test_implied_machine(tmp_path: Path) -> None:
    meta = {"mesh": [2, 3], "chips": [1, 2], "capacity": {"neurons": 4}}
    _, machine = load_instance(put(tmp_path, "g.json", node_link(graph=meta)))
    assert machine is not None
    assert (machine.chips, machine.cores, machine.capacity) == ((1, 2), (2, 3), {"neurons": 4})
    assert load_instance(put(tmp_path, "h.json", node_link()))[1] is None


A, B = {"id": "a"}, {"id": "b"}
BAD_JSON = [
    (node_link(edges=[{"source": "a", "target": "b", "weight": "2"}]), "$.edges[0].weight: found str"),
    (node_link(edges=[{"source": "a", "target": "x"}]), "$.edges[0].target: no node has id 'x'"),
    (node_link(edges=[{"source": 1.5, "target": "a"}]), "$.edges[0].source: found float"),
    (node_link(edges=[{"target": "a"}]), "$.edges[0]: Object missing required field source"),
    (node_link(edges=[{"source": "a", "target": "b", "weight": -1}]), "$.edges[0].weight: weight of edge 'a' -> 'b' is -1"),
    (node_link(edges=[{"source": "a", "target": "b", "weight": float("nan")}]), "weight of edge 'a' -> 'b' is nan"),
    (node_link(edges=[{"source": "a", "target": "b", "weight": float("inf")}]), "weight of edge 'a' -> 'b' is inf"),
    (node_link(nodes=[A, B, A]), "$.nodes[2].id: node 'a' appears twice (first at 0)"),
    (node_link(nodes=[A, {}]), "$.nodes[1].id: the node has no id"),
    (node_link(nodes=[A, {"id": True}]), "$.nodes[1].id: found True"),
    (node_link(nodes=[A, 3]), "$.nodes[1]: found int"),
    (node_link(nodes=[], edges=[]), "the graph has no nodes"),
    (node_link(nodes=[A, {"id": "b", "neurons": -1}]), "$.nodes[1].neurons: found -1"),
    (node_link(nodes=[A, {"id": "b", "size": 1.5}]), "$.nodes[1].size: found 1.5"),
    (node_link(nodes=[A, {"id": "b", "sizes": {"x": 1e300}}]), "$.nodes[1].sizes.x"),
    (node_link(nodes=[A, {"id": "b", "multicast": "yes"}]), "$.nodes[1].multicast: found 'yes'"),
    (node_link(nodes=[A, {"id": "b", "rate": -2}]), "$.nodes[1].rate: rate is -2"),
    (node_link(nodes=[A, {"id": "b", "rate": 10**400}]), "$.nodes[1].rate: rate is inf"),
    (node_link(directed=False, nodes=[A, {"id": "b", "multicast": True}]), "multicast node in an undirected"),
    (node_link(nodes=[{"id": "1"}, {"id": 2}], edges=[{"source": 1, "target": 2}]), "there is a node '1'"),
    (node_link(edges=None), "$: the file has no edges"),
    (node_link(links=[]), "both edges and links"),
    (node_link(form="rows"), "$.form: found 'rows'"),
    (node_link(nmsolve=2), "$.nmsolve: the file has version 2"),
    (node_link()[:-20], "g.json"),
    ("", "g.json"),
    ("[1, 2]", "found array"),
    (b"\xff\xfe{}", "g.json"),
    ("[" * 5000, "g.json"),
    ('{"nodes": NaN}', "found float"),
    ('{"nodes": [NaN', "not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_JSON)
def test_bad_json_names_its_path(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in refused(put(tmp_path, "g.json", text))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"mesh": [0, 3]}, "$.graph.mesh: found [0, 3]"),
        ({"mesh": "3x3"}, "$.graph.mesh"),
        ({"mesh": [10**9, 10**9]}, "$.graph.mesh: the board has"),
        ({"mesh": [2, 2], "capacity": {"neurons": -1}}, "$.graph.capacity.neurons: found -1"),
        ({"distances": [[0, 1], [-2, 0]]}, "negative or infinite"),
        ({"distances": [[0, 10**400], [2, 0]]}, "no matrix of numbers"),
        ({"distances": [[0, 1]]}, "found shape (1, 2)"),
    ],
)
def test_bad_implied_machine(tmp_path: Path, graph: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_instance(put(tmp_path, "g.json", node_link(graph=graph)))
    assert message in str(error.value)


def columns(**changes: object) -> str:
    content: dict[str, object] = {
        "nmsolve": 1,
        "form": "columns",
        "nodes": {"id": ["a", "b"]},
        "edges": {"source": ["a"], "target": ["b"], "weight": [2]},
    }
    return json.dumps({**content, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (columns(nodes={"id": ["a", "a"]}), "$.nodes.id[1]: node 'a' appears twice"),
        (columns(nodes={"id": ["a", "b"], "rate": [1]}), "$.nodes.rate: 1 values"),
        (columns(nodes={"n": 10**12}, edges={"source": [], "target": []}), "$.nodes.n"),
        (columns(nodes={}), "$.nodes: no column of nodes"),
        (
            columns(nodes={"id": ["a", "b"], "sizes": {"neurons": [1, -2]}}),
            "$.nodes.sizes.neurons[1]: found -2",
        ),
        (
            columns(edges={"source": ["a", "x"], "target": ["b", "b"]}),
            "$.edges.source[1]: no node has id 'x'",
        ),
        (columns(edges={"source": ["a"], "target": ["b"], "weight": [-1]}), "$.edges.weight[0]: value is -1"),
        (columns(edges={"source": ["a"], "target": []}), "$.edges.target: 0 values"),
        (columns(nets={"indptr": [0], "source": [], "target": []}), "both edges and nets, or neither"),
        (columns(edges=None, nets={"indptr": [0, 3], "source": ["a"], "target": ["b"]}), "$.nets.indptr"),
        (columns(edges=None, nets={"indptr": [], "source": [], "target": []}), "$.nets.indptr"),
        (columns(edges=None, nets={"indptr": [0, 10**30], "source": ["a"], "target": []}), "$.nets.indptr"),
    ],
)
def test_bad_columns_name_their_path(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(put(tmp_path, "g.json", text))


# ---- npz ----------------------------------------------------------------------------------------------------


def csr(**changes: object) -> dict[str, np.ndarray]:
    arrays = {"indptr": np.array([0, 1, 2]), "indices": np.array([1, 0]), "weights": np.array([3, 3])}
    return {**arrays, **{k: np.asarray(v) for k, v in changes.items()}}


def test_plain_rows(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, **csr(vwgt=[4, 5], d_indptr=[0, 1, 1], d_indices=[1], rate=[3, 1]))
    with pytest.warns(InputWarning, match=r"members .*'d_indptr', 'd_indices' are not read"):
        graph = load_graph(path)
    assert not graph.directed and graph.weights.tolist() == [3] and graph.sizes.ravel().tolist() == [4, 5]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (csr(indices=[1, 2]), "g.npz: indices[1]: found 2"),
        (csr(indices=[1.0, 0.0]), "indices: found float64"),
        (csr(indptr=[0, 2, 1]), "indptr does not split"),
        (csr(indptr=[0, 1, 1]), "indptr does not split"),
        (csr(weights=[3, 4]), "row 0: edge 0-1 has weight 3 at one end and 4 at the other"),
        (csr(weights=[-3, -3]), "has weight -3"),
        (csr(weights=[np.nan, np.nan]), "has weight nan"),
        (csr(weights=[3]), "weights: 1 values"),
        (csr(weights=["a", "b"]), "weights: found"),
        (csr(indices=[0, 1]), "an edge to itself"),
        (csr(vwgt=[1]), "vwgt"),
        ({"indptr": np.array([0])}, "there is no member 'indices'"),
        ({"indices": np.array([0])}, "there is no member 'indptr'"),
        ({"header": np.frombuffer(b"{}", np.uint8)}, "header"),
    ],
)
def test_bad_rows(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "g.npz", **arrays)
    assert message in refused(tmp_path / "g.npz")


def test_npz_never_unpickles(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", indptr=np.array([0, {}], dtype=object), indices=np.array([1]))
    assert "Python objects" in refused(tmp_path / "g.npz")


def test_npz_truncated_at_any_byte(tmp_path: Path) -> None:
    save_graph(rich_graph(), tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    for end in range(0, len(data), 37):
        refused(put(tmp_path, "g.npz", data[:end]))


def test_npz_flipped_bytes_never_escape(tmp_path: Path) -> None:
    """Whatever byte is damaged: an InputError, or the graph itself (zip has bytes without meaning)."""
    save_graph(rich_graph(), tmp_path / "whole.npz")
    data = bytearray((tmp_path / "whole.npz").read_bytes())
    rng = np.random.default_rng(1)
    for k in rng.integers(0, len(data), 300).tolist():
        damaged = data.copy()
        damaged[k] ^= 1 << int(rng.integers(8))
        path = put(tmp_path, "g.npz", bytes(damaged))
        try:
            assert load_graph(path).n == 4
        except InputError as error:
            assert "\n" not in str(error)


def test_npz_huge_header_allocates_nothing(tmp_path: Path) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 16
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("indptr.npy", member)
    assert "the header promises 8000000000000 bytes" in refused(tmp_path / "g.npz")


def test_npz_header_with_keys_of_two_types_is_refused(tmp_path: Path) -> None:
    """numpy sorts the keys of a header before it looks at them."""
    header = b"{'descr': '<i8', 'fortran_order': False, b'shape': (2,)}\n"
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("indptr.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        archive.writestr("indices.npy", b"")
    assert "indptr.npy: not an array" in refused(tmp_path / "g.npz")


def test_npz_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nmsolve.model.formats import npz_members as npz

    monkeypatch.setattr(npz, "UNSUSPICIOUS", 1000)
    np.savez_compressed(tmp_path / "g.npz", **csr(weights=np.zeros(10**6)))
    assert "unpack to" in refused(tmp_path / "g.npz")


# ---- every format -------------------------------------------------------------------------------------------

JUNK = (b"99999999999999999999", b"1e999", b"-1", b"null", b'""', b"[]", b"\r\n", b"NaN", b"\xc3", b"%", b" ")


@pytest.mark.parametrize("extension", FORMATS)
def test_random_damage_is_refused_in_one_line_or_harmless(tmp_path: Path, extension: str) -> None:
    """Bytes changed, removed, inserted, files cut: nothing but InputError comes out, and no crash."""
    graph = LogicGraph.from_edges(5, [0, 1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4], directed=False,
                                  sizes=np.arange(1, 6).reshape(5, 1), meta={"mesh": [1, 5]})  # fmt: skip
    path = tmp_path / f"g{extension}"
    save_graph(graph, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(7)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            k, way = int(rng.integers(len(data))), int(rng.integers(4))
            if way == 0:
                data[k] = int(rng.integers(256))
            elif way == 1 and k > 0:
                del data[k:]
            elif way == 2 and len(data) > 1:
                del data[k]
            else:
                data[k:k] = JUNK[int(rng.integers(len(JUNK)))]
        path.write_bytes(data)
        try:
            load_instance(path)
        except InputError as error:
            assert "\n" not in str(error)
