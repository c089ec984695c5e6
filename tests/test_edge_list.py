"""Edge lists as people have them: columns by name, names as ids, other tools' files; what is not used is said."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats_support import put, refused

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import convert, load_graph, save_graph
from nmsolve.model.formats.edge_columns import plain_name
from nmsolve.model.graph import LogicGraph


def read(path: Path, **more: Any) -> tuple[LogicGraph, list[str]]:
    """The graph of a file, and what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        graph = load_graph(path, **more)
    return graph, [str(w.message).replace(str(path.parent) + "/", "") for w in seen]


def edges(graph: LogicGraph) -> dict[tuple[object, object], float]:
    """Weights by the ids of both ends."""
    ends = zip(graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    return {(graph.node_id(u), graph.node_id(v)): w for u, v, w in ends}


CHAIN = {(0, 1): 3.0, (1, 2): 4.0}
ONES = {(0, 1): 1.0, (1, 2): 1.0}
NAMED = {("camera", "edges"): 3.0, ("edges", "class"): 4.0}
#: The text of files, what is in them, and words of the warnings; none: there is no warning.
FILES: dict[str, tuple[str, dict[Any, float], tuple[str, ...]]] = {
    "plain.txt": ("0 1 3\n1 2 4\n", CHAIN, ()),
    "order.csv": ("weight,source,target\n3,0,1\n4,1,2\n", CHAIN, ()),
    "reversed.csv": ("target,source,weight\n1,0,3\n2,1,4\n", CHAIN, ()),
    "padded.txt": ("00 01 3\n01 02 4\n", CHAIN, ()),
    "owned.csv": ("pre_pop,pre,post_pop,post\nE,0,I,1\nI,1,I,2\n", ONES, ("columns 'pre_pop', 'post_pop' are not read",)),
    "delay.csv": ("source,target,delay\n0,1,1.5\n1,2,0.1\n", ONES, (":1: column 'delay' is not read",)),
    "eid.tsv": ("edge_id\tpre\tpost\n0\t0\t1\n1\t1\t2\n", ONES, ("'edge_id'",)),
    "times.csv": ("u,v,timestamp\n0,1,1577836800\n1,2,1577836900\n", ONES, ("'timestamp'",)),
    "pandas.csv": (",source,target,weight\n0,0,1,3\n1,1,2,4\n", CHAIN, ("without a name",)),
    "names.csv": ("source,target,weight\ncamera,edges,3\nedges,class,4\n", NAMED, ()),
    "untitled_names.txt": ("camera edges 3\nedges class 4\n", NAMED, ()),
    "untitled_pairs.txt": ("a b\nb c\n", {("a", "b"): 1.0, ("b", "c"): 1.0}, ()),
    "quoted.csv": ('Source,Target\n"a, b",c d\nc d,"e ""f"""\n', {("a, b", "c d"): 1.0, ("c d", 'e "f"'): 1.0}, ()),
    "gephi.csv": (
        "Source,Target,Type,Id,Label,timeset,Weight\n0,1,Directed,0,,,3.0\n1,2,Directed,1,,,4.0\n", CHAIN,
        ("'Id', 'Label', 'timeset'",),
    ),
    "floats.csv": ("0.0,1.0,3\n1.0,2.0,4\n", CHAIN, ()),
    "savetxt.txt": ("0.000000000000000000e+00 1.000000000000000000e+00 3.000000000000000000e+00\n1e0 2.0 4.0\n", CHAIN, ()),
    "pynn.txt": (
        "# columns = ['i', 'j', 'weight', 'delay']\n0.0e+00\t1.0e+00\t3.0e+00\t1.0e+00\n1.0e+00\t2.0e+00\t4.0e+00\t1.0e+00\n",
        CHAIN, ("numbered by population", "'delay'"),
    ),
    "networkx.edges": ("0 1 {}\n1 2 {}\n", ONES, ()),
    "networkx_weights.edges": ("0 1 {'weight': 3}\n1 2 {'weight': 4.0}\n", CHAIN, ()),
    "networkx_more.csv": ("0,1,{'weight': 3, 'colour': 'red'}\n1,2,{'weight': 4}\n", CHAIN, ("'colour'",)),
    "snap.txt": ("# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n", ONES, ()),
    "backwards.txt": ("# target source weight\n1 0 3\n2 1 4\n", CHAIN, ()),
    "german.csv": ("source;target;weight\n0;1;3,0\n1;2;4,0\n", CHAIN, ()),
    "rate.csv": ("pre,post,rate\n0,1,3\n1,2,4\n", CHAIN, ("column 'rate' is taken as the weight",)),
    "both.csv": ("pre,post,rate,weight\n0,1,9,3\n1,2,9,4\n", CHAIN, ("column 'rate' is not read",)),
    "unit.csv": ("pre,post,weight [nA]\n0,1,3\n1,2,4\n", CHAIN, ("unit 'nA'",)),
    "mark.csv": ("\ufeffsource,target,weight\n0,1,3\n1,2,4\n", CHAIN, ()),
    "windows.csv": ("source,target,weight\r\n0,1,3\r\n1,2,4\r\n", CHAIN, ()),
    "trailing.csv": ("source,target,weight\n0,1,3,\n1,2,4,\n", CHAIN, ()),
    "twice.csv": ("source,target,weight\n0,1,1\n0,1,2\n1,2,4\n", CHAIN, ("lines that repeat an edge: 1 added up",)),
    "unit_above.txt": ("# post pre weight (nS)\n1.000e+00 0.000e+00 3.000e+00\n2 1 4\n", CHAIN, ("unit 'nS'",)),
    "words_above.csv": ("# target node, source node, weight\n1,0,3\n2,1,4\n", CHAIN, ()),
    "columns_above.txt": ("# columns: target source\n1 0\n2 1\n", ONES, ()),
    "delay_above.txt": ("# source target delay (ms)\n0 1 2.5\n1 2 7\n", ONES, ("'delay(ms)' is not read",)),
    "more_above.txt": ("# pre post weight delay\n0 1 3\n1 2 4\n", CHAIN, ("names no 3 columns",)),
    "prose_above.txt": ("# Directed graph from source to target\n0 1\n1 2\n", ONES, ()),
    "weight_id.csv": ("source,target,weight_id\n0,1,17\n1,2,18\n", ONES, ("'weight_id' is not read",)),
    "konect.txt": ("% sym unweighted\n% 2 3 3\n0 1\n1 2\n", ONES, ("says undirected",)),
    "directed.txt": ("# directed: False\n0 1\n1 2\n", ONES, ("says undirected",)),
    "hash.csv": ("source,target\na,#love\n#love,bob\n# a, comment\nb,a\n", {("a", "#love"): 1.0, ("b", "a"): 1.0},
                 (":3: 1 line that begins with # or % and could be a row",)),
    "missing_word.csv": ('"from","to"\n"a","b"\n"b",NA\n', {("a", "b"): 1.0, ("b", "NA"): 1.0}, ("'NA' is the name of a node",)),
    "excel.csv": ("pre,post\n7.20576E+17,7.20577E+17\n", {(720576 * 10**12, 720577 * 10**12): 1.0},
                  ("'7.20576E+17' has fewer digits",)),
    "pandas_unnamed.csv": ("0,1,2\n5,6,3\n6,7,4\n", {(0, 1): 2.0, (5, 6): 3.0, (6, 7): 4.0},
                           ("the first line '0,1,2' is read as an edge",)),
    "fractions.csv": ("from;to;weight\n0;1;3\n1;2;4,000\n2;3;2,5\n", CHAIN | {(2, 3): 2.5}, ()),
    "loops.txt": ("0 1 3\n1 2 4\n2 2 7\n1 1 0\n", CHAIN, ("to itself, which cross no link: 1 dropped",)),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_edge_lists_of_many_tools_are_read(tmp_path: Path, name: str, packed: bool) -> None:
    text, wanted, words = FILES[name]
    data = text.encode()
    path = put(tmp_path, name + ".gz" if packed else name, gzip.compress(data) if packed else data)
    graph, said = read(path)
    assert edges(graph) == wanted and graph.directed and graph.name == name.split(".")[0]
    assert len(said) == len(words) and all(any(word in line for line in said) for word in words), said
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        convert(path, tmp_path / "g.nmz")
    assert load_graph(tmp_path / "g.nmz").hash == graph.hash


REFUSED = {
    "utf16.csv": ("source,target\n0,1\n".encode("utf-16"), "the text is UTF-16"),
    "utf16-no-mark.csv": ("source,target\n0,1\n".encode("utf-16-le"), "the text is UTF-16"),
    "latin1.csv": ("source,target\nM\xfcller,x\n".encode("latin-1"), "latin1.csv:2: byte 0xfc is not UTF-8"),
    "mac.csv": (b"source,target\r0,1\r", "a carriage return alone"),
    "who.csv": (b"who,whom,weight\n0,1,3\n", "who.csv:1: no column is the source in 'who', 'whom', 'weight'"),
    "frame.csv": (b",0,1\n0,0,1\n1,1,2\n", "no column is the source in '', '0', '1'"),
    "half.csv": (b"source,other\n0,1\n", "no column is the target"),
    "two.csv": (b"source,pre,target\n0,0,1\n", "two columns are the source"),
    "pairs.csv": (b"alice,bob\ncarol,dave\n", "no column is the source in 'alice', 'bob'"),
    "four.txt": (b"0 1 3 4\n", "4 columns without names"),
    "owners.csv": (
        b"source_population,source,target_population,target\nE,0,I,0\n",
        "owners.csv:2: found 'E,0,I,0' with node '0' of 'I'; expected a node of 'E', as before",
    ),
    "chips.csv": (b"chip_from,pre_id,chip_to,post_id\n0,1,0,2\n1,1,1,3\n", "chips.csv:3"),
    "zeros.csv": (b"source,target\n007,1\n2,7\n", "zeros.csv:3: found '2,7' with node '7', which is '007', too"),
    "zeros.txt": (b"7 1\n2 007\n", "zeros.txt:2: found '2 007' with node '007', which is '7', too"),
    "untyped.csv": (b"Source,Target,Type\n0,1,\n1,2,Undirected\n", "untyped.csv:2: found '0,1,' with type ''"),
    "short.txt": (b"# target source\n1 0 3\n", "short.txt:1: 2 names for 3 columns"),
    "adjacency.txt": (b"0 1 2\n1 2\n2\n", "adjacency.txt:2: found '1 2'; expected source target weight"),
    "regular.txt": (b"#x.py\n# GMT Sat\n# g\n0 1 2\n1 2 0\n2 0 1\n", "adjacency list of NetworkX"),
    "bip.txt": (b"% bip unweighted\n1 1\n2 1\n", "bipartite"),
    "mixed.csv": (b"source,target\n0,1\nsoma,1\n", "mixed.csv:3: found 'soma,1' with node 'soma'"),
    "again.csv": (b"source,target\na,b\nsource,target\n", "again.csv:3: found 'source,target' with the names of the columns"),
    "negative.csv": (b"source,target,weight\na,b,-1\n", "negative.csv:2: found 'a,b,-1' with weight -1"),
    "missing.csv": (b"source,target,weight\na,,1\n", "node ''"),
    "thousands.csv": (b"source;target;weight\n0;1;1.234,5\n", "with weight '1.234,5'"),
    "points.csv": (b"from;to;weight\n1;2;999\n2;3;1.200\n", "points.csv:3: found '1.200', which may be a thousand or a fraction"),
    "commas.tsv": (b"source\ttarget\tweight\n1\t2\t1,200\n2\t3\t980\n", "commas.tsv:2: found '1,200', which may be a thousand"),
    "nodes.tsv": (b"source\ttarget\n1\t2\n1,000\t3\n", "with node '1,000'; expected names, or whole numbers without marks"),
    "matrix.txt": (b"%%MatrixMarket matrix coordinate real general\n5 5 1\n1 2 5.0\n", "this is a Matrix Market file"),
    "marks.csv": (b"source;target;weight\n0;1;1,5\n0;2;1.5\n", "marks.csv:3: found '0;2;1.5'; expected fractions with points"),
    "type.csv": (b"source,target,type\n0,1,Directed\n1,2,Undirected\n", "type 'Undirected'"),
    "dict.edges": (b"0 1 {'weight': -3}\n", "with weight -3"),
    "code.edges": (b"0 1 {'weight': open('x')}\n", "attributes as a dict of plain values"),
    "quote.csv": (b'source,target\n"a"b,c\n', "quote.csv:2"),
    "exponent.csv": (b"source,target\n0,2e0777777777777777777777\n", "at most 18 digits"),
    "big.csv": (b"source,target\n0,1234567890123456789\n", "at most 18 digits"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_edge_lists_that_could_be_read_wrongly_are_refused(tmp_path: Path, name: str) -> None:
    data, words = REFUSED[name]
    assert words in refused(put(tmp_path, name, data))


def test_undirected_edges_of_gephi_make_an_undirected_graph(tmp_path: Path) -> None:
    graph, _ = read(put(tmp_path, "g.csv", "Source,Target,Type\nb,a,Undirected\na,c,undirected\n"))
    assert not graph.directed and edges(graph) == {("b", "a"): 1.0, ("a", "c"): 1.0}


def test_names_are_found_late_and_far_into_a_file(tmp_path: Path) -> None:
    """Numbers are read by compiled code; a quoted one in the second piece of the file sends all of it the other way."""
    lines = [f"{k % 1000},{k % 997},1" for k in range(450_000)]
    lines[449_000] = '"12","13","1"'
    one, _ = read(put(tmp_path, "a.csv", "\n".join(lines)))
    other, _ = read(put(tmp_path, "b.csv", "\n".join(lines).replace('"', "")))
    assert one.hash == other.hash


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Source_Node_ID", "source"),
        ("preIdx", "pre"),
        ("toNodeId", "to"),
        ("delay [ms]", "delay"),
        ("uid", "uid"),
        ("Id", "id"),
    ],
)
def test_names_of_columns_without_what_means_nothing(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    "name", ["g.json", "g.graph", "g.mtx", "g.dat", "g.txt", "g.csv", "g.tsv", "g.edges", "g.hgr"]
)
def test_text_of_every_format_may_be_packed(tmp_path: Path, name: str) -> None:
    graph = LogicGraph.from_edges(4, [0, 0, 2], [1, 2, 3], [1.0, 2.0, 3.0], directed=name != "g.graph")
    if name == "g.hgr":
        graph = LogicGraph.from_nets(4, np.array([0, 3, 5]), np.array([0, 1, 2, 2, 3]))
    if name == "g.dat":
        graph = LogicGraph.from_edges(4, [0, 1], [1, 0], meta={"mesh": [2, 2]})
    save_graph(graph, tmp_path / name)
    save_graph(graph, tmp_path / f"{name}.gz")
    packed = (tmp_path / f"{name}.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / name).read_bytes()
    one, other = load_graph(tmp_path / name), load_graph(tmp_path / f"{name}.gz")
    assert one.hash == other.hash and one.name == other.name


def test_packed_bombs_and_packed_binaries_are_refused(tmp_path: Path) -> None:
    assert "unpack to more" in refused(put(tmp_path, "g.mtx.gz", gzip.compress(b" " * 2**27)))
    assert "damaged gzip data" in refused(put(tmp_path, "h.json.gz", gzip.compress(b"{}")[:-6]))
    assert "unknown extension" in refused(put(tmp_path, "g.npz.gz", gzip.compress(b"x")))


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


@pytest.mark.parametrize(
    ("first", "weight", "named"),
    [
        ("5 5", "", True), ("4 5", "", True), ("5 5 5", " 2", True), ("5 6", "", False), ("3 5", "", False), ("4 1", "", False),
        ("5 5 4", " 2", False),
    ],
)  # fmt: skip
def test_a_first_line_that_counts_is_named(tmp_path: Path, first: str, weight: str, named: bool) -> None:
    """Contests and Matrix Market without its first line begin with the numbers of nodes and edges."""
    text = "\n".join([first, *(f"{u} {v}{weight}" for u, v in RING)])
    for name, content in (("g.txt", text), ("h.csv", text.replace(" ", ";"))):
        said = read(put(tmp_path, name, content))[1]
        assert (
            any("the first edge has the numbers of nodes and of edges (5)" in line for line in said) == named
        )
    assert not read(put(tmp_path, "two.txt", "2 1\n0 1\n"))[1]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("directed", [True, False])
def test_names_and_direction_are_written(tmp_path: Path, ending: str, directed: bool) -> None:
    """As they are read again; what no edge list can say is named, and names that would be something else are refused."""
    names = ("Smith, J", 'a "b"', "é", "alone", "x#y")
    graph = LogicGraph.from_edges(5, [0, 1, 2], [1, 2, 4], [2, 2.5, 1], ids=names, directed=directed)
    save_graph(graph, tmp_path / f"g{ending}")
    again, said = read(tmp_path / f"g{ending}")
    assert edges(again) == edges(graph) and again.directed == directed and not said
    assert set(again.ids or ()) == set(names)
    sized = LogicGraph.from_edges(
        2, [0], [1], multicast=np.ones(2, bool), sizes=np.array([[2], [1]]), resources=("neurons",)
    )
    with pytest.warns(InputWarning, match="sizes, multicast of nodes are not written"):
        save_graph(sized, tmp_path / f"s{ending}")
    for wrong in ("12", "#x", "nan", "a\tb", " a", ""):
        with pytest.raises(InputError, match="names that are none of numbers"):
            save_graph(LogicGraph.from_edges(2, [0], [1], ids=("a", wrong)), tmp_path / f"w{ending}")
    assert not (tmp_path / f"w{ending}").exists()
