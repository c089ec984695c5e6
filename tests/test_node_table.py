"""Node tables and ``--multicast``: what an edge list cannot say, in memory, on disk, and in every command about a run."""

from __future__ import annotations

import gzip
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import Called
from formats_support import put

import nmsolve
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import convert, load_graph
from nmsolve.model.formats.node_table import read_nodes
from nmsolve.model.formats.reading import GraphReading

EDGES = "source,target\na,b\na,c\nb,c\n"
TABLE = (
    "Node,size,population,multicast,rate,colour\na,2,exc,true,3,red\nb,1,exc,1,,\nc,1,inh,no,,\nd,5,inh,0,,\n"
)


def refused_table(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read_nodes(path)
    return str(error.value)


def test_a_table_says_sizes_kinds_rates_and_names_nodes_without_edges(tmp_path: Path) -> None:
    edges, table = put(tmp_path, "e.csv", EDGES), put(tmp_path, "n.csv.gz", gzip.compress(TABLE.encode()))
    with pytest.warns(InputWarning, match="column 'colour' is not read"):
        graph = load_graph(edges, nodes=table)
    assert graph.ids == ("a", "b", "c", "d") and graph.sizes.tolist() == [[2], [1], [1], [5]]
    assert graph.kinds is not None and graph.kinds.names == ("exc", "inh")
    assert graph.multicast.tolist() == [True, True, False, False]
    assert graph.rate.tolist() == [3, 1, 0, 0] and graph.weights.tolist() == [3, 3, 1]
    with pytest.warns(InputWarning, match="colour"):
        convert(edges, tmp_path / "g.nmz", reading=GraphReading(nodes=str(table)))
    assert load_graph(tmp_path / "g.nmz").hash == graph.hash
    weighted = put(tmp_path, "w.csv", "source,target,weight\na,b,4\na,c,2\nb,c,1\n")
    with pytest.warns(InputWarning, match="colour"):
        assert load_graph(weighted, nodes=table).weights.tolist() == [4, 2, 1]


def test_numbers_in_a_table_may_have_any_order_and_form(tmp_path: Path) -> None:
    edges, table = (
        put(tmp_path, "e.txt", "5 7 2\n7 9 1\n"),
        put(tmp_path, "n.tsv", "id\tsynapses\n9.0\t4\n5\t0\n7\t1e1\n"),
    )
    graph = load_graph(edges, nodes=table)
    assert (
        graph.ids == (9, 5, 7)
        and graph.resources == ("synapses",)
        and graph.sizes.tolist() == [[4], [0], [10]]
    )
    assert graph.edge_source.tolist() == [1, 2] and graph.targets.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "there is no table"),
        ("node,size\n", "there are no nodes"),
        ("who,size\na,1\n", "n.csv:1: no column is the id in 'who', 'size'"),
        ("node,size,neurons\na,1,1\n", "two columns are 'neurons'"),
        ("node,size\na,1\nb,2\na,1\n", "n.csv:4: node 'a' is there twice"),
        ("node,size\na,1.5\n", "n.csv:2: size is '1.5'; expected a whole number >= 0"),
        ("node,size\na\n", "n.csv:2: 1 fields; expected 2: node, size"),
        ("node,multicast\na,maybe\n", "multicast is 'maybe'; expected true or false"),
        ("node,rate\na,3 Hz\n", "rate is '3 Hz'"),
        ("node,kind\na,\n", "kind is ''; expected a kind for every node"),
        ('"a\n', "n.csv:1"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused_with_the_line(tmp_path: Path, table: str, words: str) -> None:
    assert words in refused_table(put(tmp_path, "n.csv", table))


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = put(tmp_path, "n.csv", "node,size\na,1\nb,1\n")
    with pytest.raises(InputError, match=r"n\.csv: no node 'c'; expected every node of e\.csv"):
        load_graph(put(tmp_path, "e.csv", EDGES), nodes=table)
    matrix = put(tmp_path, "m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n")
    with pytest.raises(InputError, match=r"--nodes has no meaning for a \.mtx file"):
        load_graph(matrix, nodes=table)


def test_rates_of_nodes_that_do_not_multicast_are_named(tmp_path: Path) -> None:
    edges, table = put(tmp_path, "e.csv", EDGES), put(tmp_path, "n.csv", "node,rate\na,3\nb,2\nc,1\n")
    with pytest.warns(InputWarning, match="column 'rate' is not read"):
        assert load_graph(edges, nodes=table).weights.tolist() == [1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        graph = load_graph(edges, nodes=table, multicast=True)
    assert graph.multicast.all() and graph.rate.tolist() == [3, 2, 1]


def test_multicast_needs_senders_and_equal_weights(tmp_path: Path) -> None:
    unequal = put(tmp_path, "u.csv", "source,target,weight\n0,1,2\n0,2,5\n1,2,3\n")
    with pytest.warns(InputWarning, match="different weights: 1; each sends one message of the largest"):
        graph = load_graph(unequal, multicast=True)
    assert graph.multicast.all() and graph.rate.tolist() == [5, 3, 0]
    with pytest.warns(InputWarning, match="different weights: 1"):
        convert(unequal, tmp_path / "u.nmz", reading=GraphReading(multicast=True))
    assert load_graph(tmp_path / "u.nmz").hash == graph.hash
    with pytest.raises(InputError, match="--multicast for an undirected graph"):
        load_graph(put(tmp_path, "g.graph", "2 1\n2\n1\n"), multicast=True)


def _least_tree(graph: nmsolve.LogicGraph, multicast: bool) -> int:
    """The least multicast-hops of one node per core on a 2x2 mesh with XY routes, by trying all placements."""
    place = [(0, 0), (0, 1), (1, 0), (1, 1)]

    def links(a: tuple[int, int], b: tuple[int, int]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
        corner = (a[0], b[1])  # X first
        return {(p, q) for p, q in ((a, corner), (corner, b)) if p != q}

    best = 10**9
    for core in product(range(4), repeat=graph.n):
        if len(set(core)) < graph.n:
            continue
        total = 0
        for u in range(graph.n):
            goals = graph.targets[graph.indptr[u] : graph.indptr[u + 1]].tolist()
            routes = [links(place[core[u]], place[core[v]]) for v in goals]
            total += len(set().union(*routes)) if multicast else sum(map(len, routes))
        best = min(best, total)
    return best


def test_multicast_hops_of_an_edge_list(tmp_path: Path, call: Called) -> None:
    """Of all-to-all edges: one message to all three others takes 3 links, one to each takes 4."""
    edges = put(
        tmp_path,
        "e.csv",
        "source,target\n" + "".join(f"{u},{v}\n" for u in range(4) for v in range(4) if u != v),
    )
    common = ["--machine", "mesh:2x2", "--balance", 0, "--objective", "multicast-hops", "--time-limit", 20]
    graph = load_graph(edges)
    found = {}
    for more in ([], ["--multicast"]):
        out = tmp_path / f"run{len(more)}"
        code, _, said = call("map", edges, *common, *more, "--out", out)
        assert code in (0, 3), said
        assert ("counts every edge as one message" in said) == (not more)
        found[bool(more)] = json.loads((out / "report.json").read_text())["objective"]
        assert call("verify", out, "--bound")[0] == 0
    assert (
        found == {False: _least_tree(graph, False), True: _least_tree(graph, True)} == {False: 16, True: 12}
    )
    assert call("map", edges, *common, "--strict", "--out", tmp_path / "no")[0] == 2
    answer = nmsolve.map(
        str(edges), "mesh:2x2", objective="multicast-hops", balance=0, multicast=True, time_limit=20
    )
    assert answer.objective == 12
    assert nmsolve.verify(str(answer.save(tmp_path / "python")))


def test_every_command_about_a_run_knows_its_table(tmp_path: Path, call: Called) -> None:
    edges = put(tmp_path, "e.csv", EDGES)
    table = put(tmp_path, "n.csv", "node,size,multicast\na,2,1\nb,1,1\nc,1,0\nd,5,0\n")
    run = tmp_path / "run"
    code, _, said = call("map", edges, "--nodes", table, "--machine", "mesh:2x2", "--balance", 0, "--time-limit", 1,
                         "--engines", "first-fit", "--out", run)  # fmt: skip
    assert code in (0, 3), said
    inputs = json.loads((run / "report.json").read_text())["inputs"]
    assert inputs["nodes"] == str(table.resolve()) and "multicast" not in inputs
    code, out, said = call("verify", run)
    assert code == 0 and "about this graph and machine" in out, said
    assert call("score", run)[0] == 0
    code, _, said = call("resume", run, "--time-limit", 1, "--out", tmp_path / "again")
    assert code in (0, 3), said
    assert call("verify", tmp_path / "again")[0] == 0
    code, _, said = call("gap", run, "--time-limit", 2, "--out", tmp_path / "gap")
    assert code in (0, 3) and call("verify", tmp_path / "gap", "--bound")[0] == 0, said
    code, _, said = call("route", run, "--time-limit", 2, "--out", tmp_path / "routes")
    assert code in (0, 3), said
    assert "d" in nmsolve.gap(str(run), time_limit=2).mapping
    code, out, _ = call("explain", edges, "--nodes", table, "--machine", "mesh:2x2", "--json")
    assert code == 0 and "feasible" in out
    code, out, _ = call("info", edges, "--nodes", table, "--json")
    assert json.loads(out)["nodes"] == 4 and json.loads(out)["multicast_messages"] == 2
    assert call("convert", edges, tmp_path / "g.json", "--nodes", table, "--multicast")[0] == 0
    assert np.all(load_graph(tmp_path / "g.json").multicast)
