"""Matrices as graphs: Matrix Market files and archives of SciPy, against SciPy's own reading of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from command_support import run_here
from formats_support import adjacency, put, refused

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import convert, load_graph, read_graph
from nmsolve.model.formats.reading import GraphReading

ROW = [[0, 5, 0, 0], [5, 0, 2, 0], [0, 2, 0, 7], [0, 0, 7, 0]]
RING = np.array([[9, 5, 0, 0], [0, 0, 2, 0], [0, 0, 0, 7], [1, 0, 0, 0]])
LAYOUTS = ("csr", "csc", "coo", "bsr", "dia")
HEAD = "%%MatrixMarket matrix coordinate "


def saved(tmp_path: Path, matrix: Any) -> Path:
    sp.save_npz(tmp_path / "m.npz", matrix)
    return tmp_path / "m.npz"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [sp.coo_array, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [float, np.int8, bool])
def test_archives_of_scipy_have_the_weights_of_the_matrix(
    tmp_path: Path, layout: str, make: Any, dtype: type
) -> None:
    """A symmetric matrix is undirected, any other directed from row to column; the diagonal is dropped."""
    row = load_graph(saved(tmp_path, make(np.array(ROW, dtype)).asformat(layout)))
    assert not row.directed and row.m == 3
    assert row.weights.tolist() == np.array([5, 2, 7], dtype).astype(float).tolist()
    ring = load_graph(saved(tmp_path, make(RING.astype(dtype)).asformat(layout)))
    assert ring.directed
    assert np.array_equal(adjacency(ring), np.where(np.eye(4), 0, RING.astype(dtype)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("option", ["pattern", "absolute"])
def test_negative_entries_of_archives_need_an_option(tmp_path: Path, layout: str, option: str) -> None:
    path = saved(tmp_path, sp.coo_array(-np.array(ROW)).asformat(layout))
    assert "m.npz: entry [0, 1] is -5" in refused(path) and "--pattern" in refused(path)
    graph = load_graph(path, **{option: True})
    assert graph.weights.tolist() == ([1, 1, 1] if option == "pattern" else [5, 2, 7]) and not graph.directed


def test_entries_of_one_place_are_added_up_before_their_sign_counts(tmp_path: Path) -> None:
    place = (np.array([0, 0, 1]), np.array([1, 1, 0]))
    path = saved(tmp_path, sp.coo_array((np.array([100, 100, -3], np.int8), place), shape=(2, 2)))
    assert adjacency(load_graph(path, absolute=True)).tolist() == [[0, 200], [3, 0]]
    assert load_graph(path, pattern=True).weights.tolist() == [1]
    assert "entry [1, 0] is -3" in refused(path)


def test_complex_archives_have_absolute_values(tmp_path: Path) -> None:
    path = saved(tmp_path, sp.csr_array(np.array([[1, 3 - 4j], [3 + 4j, 1]])))
    assert "entry [0, 1] is 3-4j" in refused(path)
    assert load_graph(path, absolute=True).weights.tolist() == [5]


def scipy_members(**changes: Any) -> dict[str, Any]:
    matrix = sp.csr_array(np.array(ROW, float))
    arrays = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data, "shape": (4, 4)}
    return {**arrays, "format": b"csr", "_is_array": True, **changes}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (scipy_members(format=b"lil"), "format: layout 'lil'"),
        (scipy_members(shape=(4, 5)), "shape: the shape is (4, 5)"),
        (scipy_members(shape=(5, 5)), "indptr: 5 values; expected 6"),
        (scipy_members(shape=(2**40, 2**40)), "shape: 1099511627776 rows"),
        (scipy_members(indices=[0, 9, 1, 2, 1, 2]), "indices[1]: found 9"),
        (scipy_members(data=[1.0]), "data: found shape (1,)"),
        (scipy_members(format=b"bsr", data=np.ones((6, 3, 3))), "blocks of 3 x 3"),
        (scipy_members(format=b"coo"), "there is no member 'row'"),
        (scipy_members(format=b"dia", offsets=[1]), "offsets"),
        ({k: v for k, v in scipy_members().items() if k != "data"}, "there is no member 'data'"),
        (scipy_members(data=["a"] * 6), "entries are of type"),
        ({"arr_0": np.array(ROW)}, "there is no member 'indices'"),
        ({"i": [0], "j": [1], "w": [5.0]}, "there is no member 'indices'"),
        ({"indptr": [0, 1, 1], "indices": [1], "data": [3.0]}, "but not the other way round"),
        ({"indptr": [0, 1, 2], "indices": [1, 0], "data": [3], "weights": [3]}, "weights and data"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::nmsolve.model.errors.InputWarning")
def test_what_is_no_archive_of_scipy_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    assert message in refused(tmp_path / "m.npz")


def test_rows_saved_by_hand_have_their_data_as_weights(tmp_path: Path) -> None:
    matrix = sp.csr_array(np.array(ROW))
    np.savez(tmp_path / "m.npz", indptr=matrix.indptr, indices=matrix.indices, data=matrix.data)
    assert load_graph(tmp_path / "m.npz").weights.tolist() == [5, 2, 7]


MARKET = {
    "real general": "2 1 -3\n1 3 2\n",
    "integer symmetric": "2 1 -3\n3 1 2\n3 3 -1\n",
    "real skew-symmetric": "2 1 -3\n3 1 2\n",
    "complex general": "2 1 3 4\n1 3 2 0\n",
    "complex hermitian": "2 1 3 4\n3 1 -2 0\n1 1 5 0\n",
    "complex symmetric": "2 1 3 4\n3 1 -2 0\n",
}


@pytest.mark.parametrize("kind", MARKET)
@pytest.mark.parametrize("dense", [False, True])
def test_signed_matrices_are_graphs_by_pattern_or_absolute_value(
    tmp_path: Path, kind: str, dense: bool
) -> None:
    """Against SciPy's reading; without an option the refusal names both."""
    text = HEAD + kind + f"\n3 3 {MARKET[kind].count(chr(10))}\n{MARKET[kind]}"
    path = put(tmp_path, "g.mtx", text)
    whole = scipy.io.mmread(path).toarray()
    if dense:
        scipy.io.mmwrite(path, whole, symmetry=kind.split()[1], field=kind.split()[0])
    np.fill_diagonal(whole, 0)
    expected = whole if kind.endswith("general") else np.triu(whole)
    message = refused(path)
    assert "--pattern" in message and "--absolute" in message
    for option, there in (("pattern", expected != 0), ("absolute", np.abs(expected))):
        graph = load_graph(path, **{option: True})
        assert np.array_equal(adjacency(graph), there.astype(float))
        assert graph.directed == kind.endswith("general")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("real general\n2 2 2\n1 2\n3 4 5 6\n", "g.mtx:3: 2 numbers; expected row, column, value"),
        ("pattern general\n2 2 2\n1\n2 1 2\n", "g.mtx:3: 1 numbers; expected row, column of one"),
        ("integer general\n2 2 1\n1 2 1.5\n", "entry 1 is 1.5; expected whole numbers"),
        ("real skew-symmetric\n2 2 1\n1 1 1\n", "entry 1 is on the diagonal"),
        ("real general\n2 2 1\n1 2 1\n% a comment too late\n", "g.mtx:4: found '%'"),
        ("quaternion general\n2 2 1\n1 2 1\n", "field 'quaternion'"),
        ("real persymmetric\n2 2 1\n1 2 1\n", "symmetry 'persymmetric'"),
    ],
)
def test_lines_that_are_no_entries_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = put(tmp_path, "g.mtx", HEAD + text)
    with pytest.raises(InputError) as error:
        load_graph(path, absolute=True)
    assert message in str(error.value)


def test_places_that_are_listed_twice_are_added_up_with_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path, "g.mtx", HEAD + "real general\n2 2 3\n1 2 4\n2 1 5\n1 2 -1\n")
    with pytest.warns(InputWarning, match=r"entry \(1, 2\) is listed twice; added up"):
        assert adjacency(load_graph(path)).tolist() == [[0, 3], [5, 0]]


@pytest.mark.parametrize(
    ("file", "reading", "message"),
    [
        ("g.csv", GraphReading(pattern=True), "--pattern has no meaning for a .csv file"),
        ("g.npz", GraphReading(absolute=True), "--absolute has no meaning for this archive"),
        ("g.mtx", GraphReading(pattern=True, absolute=True), "--pattern and --absolute"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, file: str, reading: GraphReading, message: str
) -> None:
    path = put(tmp_path, file, "0,1,2\n")
    if file == "g.npz":
        np.savez(path, indptr=[0, 1, 2], indices=[1, 0])
    with pytest.raises(InputError) as error:
        read_graph(path, reading)
    assert message in str(error.value)
    with pytest.raises(InputError):
        convert(path, tmp_path / "out.nmz", reading=reading)


@pytest.mark.parametrize("options", [("--pattern",), ("--absolute",)])
def test_later_commands_read_the_graph_as_the_run_did(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The report states the option; verify, score, gap, resume and a run beside it take it from there."""
    text = "%%MatrixMarket matrix array real general\n4 4\n" + "\n".join(map(str, (-RING).ravel().tolist()))
    graph, run = put(tmp_path, "g.mtx", text), tmp_path / "run"
    common = ("--machine", "mesh:2x2", "--time-limit", "2", "--engines", "first-fit")
    run_here("map", graph, *common, "--out", run, code=2)
    run_here("map", graph, *options, *common, "--out", run)
    assert json.loads((run / "report.json").read_text())["inputs"][options[0][2:]] is True
    row = json.loads(run_here("info", graph, *options, "--json").stdout)
    assert row["total_traffic"] == (4 if options == ("--pattern",) else 15)
    run_here("convert", graph, tmp_path / "g.nmz", *options)
    assert load_graph(tmp_path / "g.nmz").weights.sum() == row["total_traffic"]
    for command in (
        ("verify", run),
        ("score", run),
        ("gap", run, "--time-limit", "2", "--out", tmp_path / "gap"),
        ("verify", tmp_path / "gap"),
        ("resume", run, "--time-limit", "2", "--out", tmp_path / "again"),
        ("verify", tmp_path / "again"),
        ("explain", graph, *options, "--machine", "mesh:2x2"),
        ("score", run / "mapping.json", "--graph", graph, *options, "--machine", "mesh:2x2"),
    ):
        assert run_here(*command, code=None).returncode in (0, 3), command
