"""Files of large networks: edge lists and AxonCUDA's binaries; streamed and in memory, whole and damaged."""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from formats_support import put, refused
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmsolve.model.errors import InputError
from nmsolve.model.formats import convert, load_graph, save_graph
from nmsolve.model.formats.edge_text import BLANK, POWERS, parse
from nmsolve.model.graph import LogicGraph

Edge = tuple[int, list[int], float]


def snn(nodes: int, edges: list[Edge], claimed: int | None = None) -> bytes:
    """The bytes of a ``.snn`` file, written from its description."""
    out = struct.pack("<II", nodes, len(edges) if claimed is None else claimed)
    for source, targets, rate in edges:
        out += struct.pack(f"<II{len(targets)}If", len(targets), source, *targets, rate)
    return out


def same(a: LogicGraph, b: LogicGraph) -> None:
    """Everything but the name is equal."""
    for key in ("indptr", "targets", "weights", "source", "multicast", "rate", "sizes"):
        assert np.array_equal(getattr(a, key), getattr(b, key)), key
    assert (a.n, a.ids, a.directed, a.resources) == (b.n, b.ids, b.directed, b.resources)


def messages(graph: LogicGraph) -> list[Edge]:
    """Source, targets and rate of every row."""
    rows = zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    return [
        (int(graph.source[i]), graph.targets[a:b].tolist(), float(graph.rate[i]))
        for i, (a, b) in enumerate(rows)
    ]


# ---- AxonCUDA -----------------------------------------------------------------------------------------------

EDGES = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(
                st.integers(0, n - 1),
                st.lists(st.integers(0, n - 1), max_size=5),
                st.sampled_from([0.0, 0.25, 3.0]),
            ),
            max_size=8,
        ),
    )
)


@settings(max_examples=40, deadline=None)
@example((2, [(0, [1], 2.0**60)]))  # a whole number that a store keeps as a float
@given(EDGES)
def test_snn_is_read_as_described(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[int, list[Edge]]
) -> None:
    n, edges = case
    folder = tmp_path_factory.mktemp("snn")
    path = put(folder, "g.snn", snn(n, edges))
    graph = load_graph(path)
    sources = [e[0] for e in edges]
    wanted = [(s, sorted(set(t) - {s}), r) for s, t, r in sorted(edges, key=lambda e: e[0])]
    if len(set(sources)) == len(sources):  # an ordinary graph: nodes that send nothing have a row, too
        silent = [(u, [], 0.0) for u in range(n) if u not in sources]
        wanted = sorted(wanted + silent, key=lambda e: e[0])
    assert messages(graph) == wanted
    assert (graph.weights == np.repeat(graph.rate, np.diff(graph.indptr))).all() and graph.multicast.all()
    received = np.zeros(n, int)
    for _, targets, _ in edges:
        np.add.at(received, targets, 1)
    assert (graph.sizes[:, 1] == received).all()
    assert convert(path, folder / "g.nmz", 2) == (n, graph.m)
    same(load_graph(folder / "g.nmz"), graph)
    same(load_graph(put(folder, "g.hgr", path.read_bytes())), graph)


def test_axh_sends_from_the_first_source_to_all_other_pins(tmp_path: Path) -> None:
    words = struct.pack("<II", 4, 2) + struct.pack("<II3If", 3, 2, 1, 3, 0, 2.0)
    words += struct.pack("<II1If", 1, 1, 2, 1.0)
    graph = load_graph(put(tmp_path, "g.axh", words))
    assert messages(graph) == [(0, [], 0.0), (1, [0, 3], 2.0), (2, [], 1.0), (3, [], 0.0)]


@pytest.mark.parametrize("extension", [".snn", ".axh"])
def test_messages_survive_writing(tmp_path: Path, extension: str) -> None:
    graph = LogicGraph.from_edges(
        4, [0, 0, 1, 1, 3], [1, 2, 2, 3, 0], [2.5, 2.5, 7, 4, 1],
        multicast=np.array([True, False, False, True]), rate=np.array([2.5, 0, 0, 1]),
    )  # fmt: skip
    save_graph(graph, tmp_path / f"g{extension}")
    back = load_graph(tmp_path / f"g{extension}")
    assert messages(back) == [(0, [1, 2], 2.5), (1, [2], 7.0), (1, [3], 4.0), (3, [0], 1.0)]


GOOD = snn(3, [(0, [1, 2], 1.0), (2, [0], 2.0)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the header promises 0 hyperedges over 0 nodes, the file has 0 bytes"),
        (GOOD[:7], "the header promises"),
        (GOOD[:-4], "the file ends in hyperedge 1; expected 2 complete ones"),
        (GOOD[:-3], "it ends inside a 32-bit word"),
        (GOOD + b"\0\0\0\0", "hyperedge 2 is one too many; expected at most 2"),
        (snn(3, [(0, [1, 2], 1.0)], claimed=2), "the header promises 2 hyperedges"),
        (snn(3, [(0, [1, 2, 1], 1.0)], claimed=2), "the file ends in hyperedge 1"),
        (snn(3, [(0, [1, 3], 1.0)]), "hyperedge 0 names the node 3; expected at most 1 hyperedges over the nodes 0..2"),
        (snn(3, [(9, [1], 1.0)]), "hyperedge 0 names the node 9"),
        (snn(3, [(0, [1], float("nan"))]), "hyperedge 0 has rate nan"),
        (snn(3, [(0, [1], -1.0)]), "hyperedge 0 has rate -1.0"),
        (snn(0, []), "0 hyperedges over 0 nodes"),
        (snn(2**32 - 1, []), "0 hyperedges over 4294967295 nodes"),
        (struct.pack("<II", 3, 2**32 - 1) + GOOD[8:], "4294967295 hyperedges"),
        (struct.pack("<IIIIf", 3, 1, 2**32 - 1, 0, 0.0), "the file ends in hyperedge 0"),
    ],
)  # fmt: skip
def test_damaged_snn_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    text = refused(put(tmp_path, "g.snn", data))
    assert message in text and text.startswith("g.snn")
    with pytest.raises(InputError):
        convert(tmp_path / "g.snn", tmp_path / "g.nmz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.snn"]


def test_axh_with_impossible_sources_is_refused(tmp_path: Path) -> None:
    for count in (0, 3):
        data = struct.pack("<IIII2If", 3, 1, 2, count, 0, 1, 1.0)
        assert f"hyperedge 0 has {count} sources" in refused(put(tmp_path, "g.axh", data))


# ---- edge lists ---------------------------------------------------------------------------------------------

#: A point after which three digits come: in German tables a thousand, if others have none.
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(\.[0-9]{3})+")

LINES = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 5),
        st.one_of(st.integers(0, 10**6), st.floats(0, 1e300), st.decimals(0, 10, places=3)),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@example([(0, 1, 2**51 + 1)], " ", "\n", 1)  # a whole number that a store keeps as a float
@given(
    LINES,
    st.sampled_from([" ", "\t", ",", " ; "]),
    st.sampled_from(["\n", "\r\n", "\n# a\n"]),
    st.sampled_from([1, 7]),
)
def test_edge_list_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[int, int, object]],
    comma: str,
    end: str,
    step: int,
) -> None:
    text = "% made up\n" + end.join(f"{u * step}{comma}{v * step}{comma}{w}" for u, v, w in lines)
    folder = tmp_path_factory.mktemp("edges")
    weights = [str(w) for _, _, w in lines]
    marked = [text for text in weights if "." in text]
    if ";" in comma and 0 < len(marked) < len(weights) and all(map(THOUSANDS.fullmatch, marked)):
        assert "may be a thousand" in refused(put(folder, "g.txt", text))
        return
    graph = load_graph(put(folder, "g.txt", text))
    nodes = sorted({u for u, _, _ in lines} | {v for _, v, _ in lines})
    number = {u: i for i, u in enumerate(nodes)}
    wanted = np.zeros((len(nodes), len(nodes)))
    for u, v, w in lines:
        if u != v:
            wanted[number[u], number[v]] += float(str(w))
    found = np.zeros_like(wanted)
    found[graph.edge_source, graph.targets] = graph.weights
    assert np.array_equal(found, wanted)
    assert [graph.node_id(i) for i in range(graph.n)] == [u * step for u in nodes]
    assert graph.directed and not graph.multicast.any()
    packed = put(folder, "h.txt.gz", gzip.compress(text.encode()))
    same(load_graph(packed), graph)
    assert convert(packed, folder / "h.nmz") == (graph.n, graph.m)
    same(load_graph(folder / "h.nmz"), graph)


DECIMALS = st.one_of(
    st.floats(0, allow_infinity=False).map(repr),
    st.from_regex(r"[0-9]{1,17}(\.[0-9]{0,9})?(e[+-]?[0-9]{1,3})?", fullmatch=True),
)


@settings(max_examples=300, deadline=None)
@given(DECIMALS)
def test_weights_are_read_as_python_reads_them(word: str) -> None:
    """What the compiled parser does not leave to Python, it reads exactly as Python."""
    line = np.frombuffer(f"0 1 {word}\n".encode(), np.uint8)
    u, v, w, late = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1), np.empty((1, 3), np.int64)
    status, edges, slow, _ = parse(line, BLANK, 3, np.array([0, 1, 2]), POWERS, u, v, w, late)
    assert (status, edges) == (0, 1)
    assert bool(slow) or w[0] == float(word)


def test_edge_list_with_titles_and_without_weights(tmp_path: Path) -> None:
    graph = load_graph(put(tmp_path, "g.csv", "# by hand\npre,post,weight\n10,20,2.5\n20,10,0.5\n"))
    assert graph.ids == (10, 20) and graph.weights.tolist() == [2.5, 0.5]
    assert load_graph(put(tmp_path, "g.edges", "0 1\n0 1\n2 2\n")).weights.tolist() == [2.0]
    save_graph(graph, tmp_path / "back.csv.gz")
    same(load_graph(tmp_path / "back.csv.gz"), graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no edges"),
        ("# nothing\n\n", "there are no edges"),
        ("0 1\n0\n", "g.txt:2: found '0'; expected source target; nodes are whole numbers"),
        ("0 1 2\n# x\n0 1\n", "g.txt:3: found '0 1'; expected source target weight"),
        ("0 1 2 3\n", "g.txt:1: found '0 1 2 3', 4 columns without names; expected source target [weight]"),
        ("0 -1\n", "g.txt:1: found '0 -1'"),
        ("0 1.5\n", "g.txt:1: found '0 1.5'"),
        ("0 9999999999999999999\n", "g.txt:1: found"),
        ("0 1 -2\n", "g.txt:1: found '0 1 -2'"),
        ("0 1 2\n0 1 nan\n", "g.txt:2: found '0 1 nan'"),
        ("0 1 1e999\n", "g.txt:1: found"),
        ("0 1 1_0\n", "g.txt:1: found"),
        ("u v\nu v\n", "g.txt:2: found 'u v'"),
        ("0 1\n\0\n", "g.txt:2: found"),
        ("9" * 5_000_000, "g.txt:1: the line is too long"),
    ],
)
def test_wrong_edge_lists_are_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(put(tmp_path, "g.txt", text))


def test_line_numbers_are_right_beyond_the_first_piece(tmp_path: Path) -> None:
    assert "g.txt:800002: found '0 x'" in refused(
        put(tmp_path, "g.txt", "u v w\n" + "0 1 7\n" * 800_000 + "0 x\n")
    )


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"0 1\n" * 1000)
    assert "damaged gzip data" in refused(put(tmp_path, "a.txt.gz", whole[:-9]))
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0x55
    assert "a.txt.gz" in refused(put(tmp_path, "a.txt.gz", bytes(broken)))
    assert "unknown extension '.gz'" in refused(put(tmp_path, "a.npz.gz", whole))


def test_converting_a_large_edge_list_needs_little_memory(tmp_path: Path) -> None:
    """2 M edges, 24 MB of text, sorted in 32 MiB: less than 120 MiB more than a file of one edge takes."""
    rng = np.random.default_rng(3)
    number = rng.integers(0, 10**5, 2 * 10**6).astype("S5")
    text = b"\n".join(np.char.add(np.char.add(number[::2], b" "), number[1::2]))
    put(tmp_path, "small.txt", b"0 1\n")
    put(tmp_path, "large.txt", b"\n".join([text] * 2))
    code = (
        "import sys\nfrom nmsolve.model import network\nfrom nmsolve.model.formats import convert\nnetwork.MEMORY = 2**25\n"
        "convert(sys.argv[1], sys.argv[2])\n"
        "print(next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    peak = [
        int(subprocess.run([sys.executable, "-c", code, str(tmp_path / f"{name}.txt"), str(tmp_path / f"{name}.nmz")],
                           capture_output=True, text=True, check=True).stdout)
        for name in ("small", "large")
    ]  # fmt: skip
    assert peak[1] - peak[0] < 120
    assert load_graph(tmp_path / "large.nmz").weights.sum() == 2 * (number[::2] != number[1::2]).sum()
