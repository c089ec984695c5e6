"""Networks for programs that draw graphs: GraphML read again by NetworkX, DOT by a small reader of its grammar."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw import graph_files
from nmsolve.hw.graph_files import export_graph
from nmsolve.hw.machines import load_machine
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph

#: A statement of DOT as they are written: a cluster's begin or end, a node, an edge.
STRING = r'"((?:[^"\\]|\\.)*)"'
NODE, EDGE = (
    re.compile(rf"    (n\d+) \[label={STRING}\];"),
    re.compile(r"  (n\d+) (->|--) (n\d+) \[weight=(\S+)\];"),
)
CLUSTER = re.compile(rf"  subgraph cluster_(\d+) {{\n    label={STRING};")


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_networks_come_back(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Names of any characters, cores, edges and weights."""
    folder = tmp_path_factory.mktemp("graph")
    ids = data.draw(st.lists(names, min_size=1, max_size=8, unique=True))
    n, machine = len(ids), load_machine("mesh:2x3")
    edges = data.draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12, unique=True)
    )
    edges = [(a, b) for a, b in edges if a != b]
    weight = np.arange(1.0, len(edges) + 1) / 3
    source, target = np.array(edges or np.zeros((0, 2)), int).T
    graph = LogicGraph.from_edges(n, source, target, weight, ids=ids, name=data.draw(names))
    core = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    expected = {(a, b): w for (a, b), w in zip(edges, weight.tolist(), strict=True)}

    again = nx.read_graphml(export_graph(graph, machine, core, folder, "graphml"))
    plain = [
        re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "�", name).replace("\r\n", "\n").replace("\r", "\n")
        for name in ids
    ]
    assert [again.nodes[f"n{i}"].get("id", "") for i in range(n)] == plain
    assert [(again.nodes[f"n{i}"]["row"], again.nodes[f"n{i}"]["column"]) for i in range(n)] == [
        divmod(p, 3) for p in core.tolist()
    ]
    assert {
        (int(a[1:]), int(b[1:])): d["weight"] for a, b, d in again.edges(data=True)
    } == expected and again.is_directed()

    text = export_graph(graph, machine, core, folder, "dot").read_text()
    found = {m[1]: unquoted(m[2]) for m in NODE.finditer(text)}
    assert found == {f"n{i}": name.replace("\r", "") for i, name in enumerate(ids)}
    assert {
        (int(m[1][1:]), int(m[3][1:])): pytest.approx(float(m[4])) for m in EDGE.finditer(text)
    } == expected
    assert [int(m[1]) for m in CLUSTER.finditer(text)] == sorted(set(core.tolist()))


def test_graphviz_draws_what_is_written(tmp_path: Path) -> None:
    """With the real program, where it is installed."""
    program = shutil.which("dot")
    if program is None:
        pytest.skip("no Graphviz: apt-get install graphviz")
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2], ids=['a "quoted"', "b\\", "c\nd"])
    path = export_graph(graph, load_machine("mesh:1x2"), np.array([0, 1, 1]), tmp_path, "dot")
    done = subprocess.run([program, "-Tsvg", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count('class="node"') == 3


def test_too_many_edges_and_bad_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2])
    machine, core = load_machine("mesh:1x3"), np.arange(3)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        export_graph(graph, machine, core, tmp_path / "file", "dot")
    monkeypatch.setattr(graph_files, "MOST_EDGES", 1)
    with pytest.raises(InputError, match="2 edges"):
        export_graph(graph, machine, core, tmp_path / "out", "dot")
    assert not (tmp_path / "out").exists()
