"""Files of other tools (METIS, hMETIS, Matrix Market, QAPLIB): read as their makers mean them, refused in one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from formats_support import adjacency, nets, put, refused, rich_graph

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import load_graph, load_instance, save_graph
from nmsolve.model.graph import LogicGraph

# ---- METIS and hMETIS ---------------------------------------------------------------------------------------


def test_metis_manual_example(tmp_path: Path) -> None:
    """Vertex weights with two constraints, edge weights, comments, blank-padded lines, no final line end."""
    text = "% a comment\n3 2 011 2\n 5 6 2 4 \n% inside\n1 1 1 4 3 7\n2 2 2 7"
    graph = load_graph(put(tmp_path, "g.graph", text))
    assert not graph.directed and graph.resources == ("neurons", "weight2")
    assert graph.sizes.tolist() == [[5, 6], [1, 1], [2, 2]]
    assert adjacency(graph).tolist() == [[0, 4, 0], [0, 0, 7], [0, 0, 0]]


def test_metis_isolated_vertices_are_empty_lines(tmp_path: Path) -> None:
    for text in ("4 1\n\n4\n\n2\n", "4 1\r\n\r\n4\r\n\r\n2\r\n\r\n", "4 1\n3\n\n1\n\n", "4 1\n3\n\n1\n"):
        assert load_graph(put(tmp_path, "g.graph", text)).m == 1
    assert load_graph(put(tmp_path, "g.graph", "1 0\n")).n == 1
    with pytest.warns(InputWarning, match=r"g.graph:1: vertex sizes are not used"):
        sizes = load_graph(put(tmp_path, "g.graph", "2 1 100\n9 2\n9 1\n"))
    assert sizes.m == 1 and sizes.sizes.tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("text", "line", "weights"),
    [
        (
            "4 1\n0\n3\n2\n0\n",
            "g.graph:2: vertex 1 has neighbour 0; taken as isolated, as are 1 more like it",
            [1],
        ),
        (
            "3 1 1\n0\n3 7\n2 7\n",
            "g.graph:2: vertex 1 has neighbour 0; taken as isolated; expected an empty line",
            [7],
        ),
        ("3 1 010\n5 0\n5 3\n5 2\n", "g.graph:2: vertex 1 has neighbour 0", [1]),
        ("2 2\n2\n1\n", "g.graph:1: the header promises 2 edges, the lines hold 1; the lines count", [1]),
        ("3 1\n2\n1 3\n2\n", "g.graph:1: the header promises 1 edges, the lines hold 2", [1, 1]),
    ],
)
def test_metis_that_can_mean_only_one_thing_is_read_with_a_warning(
    tmp_path: Path, text: str, line: str, weights: list[int]
) -> None:
    path = put(tmp_path, "g.graph", text)
    with pytest.warns(InputWarning) as told:
        graph = load_graph(path)
    assert len(told) == 1 and line in str(told[0].message)
    assert graph.n == int(text[0]) and graph.weights.tolist() == weights
    here = run_here("info", path)
    assert here.stderr.count("warning: ") == 1 and line in here.stderr
    strict = run_here("info", path, "--strict", code=2)
    assert strict.stderr.startswith("error: ") and line in strict.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g.graph:1: the header has 0 numbers"),
        ("3\n", "g.graph:1: the header has 1 numbers"),
        ("10 1000000000000\n2\n1\n", "g.graph:1: the header promises 10 vertices and 1000000000000 edges"),
        ("1000000000000 1\n2\n1\n", "promises 1000000000000 vertices"),
        ("2 1 2\n2\n1\n", "format is 2"),
        ("2 1 010 5\n2\n1\n", "promises"),
        ("3 2\n2 3\n1\n1 x\n", "g.graph:4: found 'x'"),
        ("3 2\n2 3\n1\n-1\n", "g.graph:4: found '-1'"),
        ("3 2\n2 3\n1\n1.5\n", "g.graph:4: found '1.5'"),
        ("2 1\n2\n99999999999999999999999\n", "g.graph:3: found '9999"),
        ("4 3\n2 3 4\n1\n", "g.graph:3: the file ends after 2 of 4 vertices"),
        ("% c\n3 2\n2 3\n1\n4\n", "g.graph:5: vertex 3 has neighbour 4"),
        ("3 2\n2 3\n1\n0 0\n", "g.graph:4: vertex 3 has neighbour 0"),
        ("3 2\n1 2\n1 3\n2\n", "g.graph:2: vertex 1 has an edge to itself"),
        ("3 2\n2\n1 3 3\n2 2\n", "g.graph:3: edge 2-3 is listed twice"),
        ("3 1\n2 3\n1\n\n", "g.graph:2: vertex 1 lists neighbour 3, but not the other way round"),
        ("3 0\n2 3\n1\n1\n", "g.graph:1: the header promises 0 edges, the lines hold 2"),
        ("2 1 111 2\n1 1 2 1\n1 1 1 1 1\n", "g.graph:2: vertex 1 has 4 numbers; expected 3 vertex weights"),
        ("2 1 1 2\n2 5\n1 5\n", "g.graph:1: the header promises 2 weights per vertex"),
        ("2 1 1000\n2\n1\n", "g.graph:1: the header's format is 1000"),
        ("2 1 10 1 7\n2\n1\n", "g.graph:1: the header has 5 numbers"),
        ("3 2\n2 3\n1\n2\n", "g.graph:2: vertex 1 lists neighbour 3, but not the other way round"),
        ("2 1 1\n2 5\n1 6\n", "g.graph:2: edge 1-2 has weight 5 at one end and 6 at the other"),
        ("2 1 1\n2 5 1\n1 5\n", "g.graph:2: vertex 1 has 3 numbers"),
        ("2 2\n2 2\n1 1\n", "edge 1-2 is listed twice"),
        ("2 1\n1\n2\n", "vertex 1 has an edge to itself"),
        ("4 3\n2\n1\n\n\n\n\n\n\n", "promises 3 edges, the lines hold 1"),
        ("2 1\n2\n1\n3\n", "g.graph:4: there is a line after the last vertex"),
        (b"2 1\n2\x00\n1\n", "g.graph:2"),
        (b"\x7fELF\x00\x01", "g.graph:1: found"),
        ("2 1\n2\n0x1\n", "g.graph:3: found '0x1'"),
    ],
)
def test_bad_metis_names_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in refused(put(tmp_path, "g.graph", text))


def test_metis_refuses_what_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whole edge weights"):
        save_graph(rich_graph(), tmp_path / "g.graph")
    with pytest.raises(InputError, match="has nets"):
        save_graph(nets(), tmp_path / "g.graph")
    assert not (tmp_path / "g.graph").exists()


def test_hmetis(tmp_path: Path) -> None:
    graph = load_graph(put(tmp_path, "g.hgr", "% c\n3 4 11\n2 1 2 3\n1 4 2\n5 3\n1\n2\n3\n4\n"))
    assert graph.rows == 3 and graph.source.tolist() == [0, 3, 2] and graph.rate.tolist() == [2, 1, 5]
    assert graph.targets.tolist() == [1, 2, 1] and graph.sizes.ravel().tolist() == [1, 2, 3, 4]
    save_graph(graph, tmp_path / "h.hgr")
    with pytest.warns(
        InputWarning, match=r"g.hgr:3: net 2 has pin 1 twice, and 1 more like it; it counts once"
    ):
        twice = load_graph(put(tmp_path, "g.hgr", "2 4 1\n1 2 3\n7 1 4 4 2 1\n"))
    assert twice.targets.tolist() == [2, 1, 3] and twice.weights.tolist() == [1, 7, 7]
    back = load_graph(tmp_path / "h.hgr")  # the net without a target is gone
    assert back.rows == 2 and back.targets.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 1000000000000\n1 2\n1\n", "promises 2 nets of 1000000000000 nodes"),
        ("1000000000000 2\n1 2\n1\n", "promises 1000000000000 nets"),
        ("2 3\n1 2\n", "g.hgr:2: there are 1 lines after the header"),
        ("1 2\n\n", "g.hgr:2: net 1 has no pin"),
        ("1 2 1\n7\n", "net 1 has no pin"),
        ("1 2\n1 3\n", "g.hgr:2: net 1 has pin 3"),
        ("1 2 5\n1 2\n", "format is 5"),
        ("1 2 10\n1 2\n1\n", "there are 2 lines"),
        ("1 2\n1 2\n\n2 1\n", "g.hgr:4: there is another line; expected 1 nets"),
        ("1 2 10\n1 2\n1 1\n1\n", "g.hgr:3: node 1 has 2 weights"),
    ],
)
def test_bad_hmetis_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(put(tmp_path, "g.hgr", text))


# ---- Matrix Market ------------------------------------------------------------------------------------------


def test_matrix_market(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate "
    general = load_graph(put(tmp_path, "g.mtx", head + "real general\n% c\n3 3 3\n1 2 1.5\n2 1 2\n3 3 9\n"))
    assert general.directed and adjacency(general).tolist() == [[0, 1.5, 0], [2, 0, 0], [0, 0, 0]]
    symmetric = load_graph(put(tmp_path, "s.mtx", head + "pattern symmetric\n3 3 2\n2 1\n3 1\n"))
    assert not symmetric.directed and symmetric.weights.tolist() == [1, 1]
    dense = load_graph(put(tmp_path, "d.mtx", "%%MatrixMarket matrix array real general\n2 2\n0\n3\n0\n0\n"))
    assert adjacency(dense).tolist() == [[0, 0], [3, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g.mtx:1: no Matrix Market banner"),
        (
            "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 0 1\n",
            "entry (1, 2) is 0+1j; expected",
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 0\n",
            "g.mtx:1: the matrix is skew-symmetric",
        ),
        ("%%MatrixMarket matrix coordinate real general\n% only\n", "no size line"),
        ("%%MatrixMarket matrix coordinate real general\n2 2\n", "g.mtx:2: malformed size line"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "the matrix is 2 x 3"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1000000000000\n1 2 1\n", "promises"),
        ("%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 2 1\n", "promises"),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n",
            "3 numbers after the size line; expected 6",
        ),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", "entry 1 is at (1, 3)"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 x\n", "g.mtx:3: found 'x'"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", "above the diagonal"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -1\n", "entry (1, 2) is -1"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 nan\n", "found 'nan'"),
        ("%%MatrixMarket matrix array real general\n999999 999999\n1\n", "promises"),
    ],
)
def test_bad_matrix_market(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(put(tmp_path, "g.mtx", text))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_matrix_market_reads_what_scipy_writes(tmp_path: Path, symmetric: bool, dense: bool) -> None:
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    rng = np.random.default_rng(4)
    matrix = rng.random((6, 6)) * (rng.random((6, 6)) < 0.5)
    if symmetric:
        matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    path = tmp_path / "g.mtx"
    kind = "symmetric" if symmetric else "general"
    mmwrite(path, matrix if dense else coo_array(matrix), symmetry=kind, precision=17)
    assert np.array_equal(adjacency(load_graph(path)), np.triu(matrix) if symmetric else matrix)


# ---- QAPLIB -------------------------------------------------------------------------------------------------


def qaplib(first: object, second: object) -> str:
    rows = [" ".join(map(str, row)) for m in (first, second) for row in np.asarray(m).tolist()]
    return f"{len(np.asarray(first))}\n\n" + "\n".join(rows) + "\n"


def mesh_distance(rows: int, cols: int) -> np.ndarray:
    r, c = np.divmod(np.arange(rows * cols), cols)
    return np.abs(r[:, None] - r) + np.abs(c[:, None] - c)


def cost(graph: LogicGraph, distance: np.ndarray, place: np.ndarray) -> float:
    return float((graph.weights * distance[place[graph.edge_source], place[graph.targets]]).sum())


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 6), (2, 2), (1, 1)])
@pytest.mark.parametrize("mesh_first", [True, False])
def test_qaplib_mesh_is_recognised(tmp_path: Path, shape: tuple[int, int], mesh_first: bool) -> None:
    distance = mesh_distance(*shape)
    traffic = np.random.default_rng(1).integers(2, 9, distance.shape)
    np.fill_diagonal(traffic, 0)
    pair = (distance, traffic) if mesh_first else (traffic, distance)
    graph, machine = load_instance(put(tmp_path, "g.dat", qaplib(*pair)))
    assert machine is not None and machine.distance_matrix is None
    if shape != (1, 1):
        assert machine.cores == shape and np.array_equal(adjacency(graph), traffic)


def test_qaplib_cost_is_hops_whichever_matrix_is_asymmetric(tmp_path: Path) -> None:
    """The formula of the format, against the graph and machine that are read, for all permutations tried."""
    rng = np.random.default_rng(2)
    for symmetric in ((), (0,), (1,), (0, 1)):
        pair = [rng.integers(0, 9, (5, 5)) for _ in range(2)]
        for k in symmetric:
            pair[k] += pair[k].T
        np.fill_diagonal(pair[0], 0)
        graph, machine = load_instance(put(tmp_path, "g.dat", qaplib(*pair)))
        assert machine is not None and machine.distance_matrix is not None
        for _ in range(5):
            p = rng.permutation(5)
            wanted = (pair[0] * pair[1][np.ix_(p, p)]).sum()
            place = p if np.array_equal(adjacency(graph), pair[0]) else np.argsort(p)
            assert cost(graph, machine.distance_matrix, place) == wanted
        save_graph(graph, tmp_path / "h.dat")
        again, same = load_instance(tmp_path / "h.dat")
        assert same is not None and (again.hash, same.hash) == (graph.hash, machine.hash)


def test_qaplib_constant_diagonals_are_a_constant(tmp_path: Path) -> None:
    first, second = np.ones((3, 3), int), np.array([[4, 1, 1], [1, 5, 2], [1, 2, 6]])
    graph, _ = load_instance(put(tmp_path, "g.dat", qaplib(first, second)))
    assert graph.meta["constant"] == 15


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with a size"),
        ("x", "does not begin with a size"),
        ("1000000000000\n1", "does not begin with a size"),
        ("2\n0 1\n1 0\n0 1\n1", "7 numbers after the size, the file ends in row 2 of matrix 2; expected 8"),
        ("2\n0 1\n1", "3 numbers after the size, the file ends in row 2 of matrix 1; expected 8"),
        ("2\n0 1\n1 0\n0 1\n1 0 7", "9 numbers after the size, there is more after the second matrix"),
        ("2\n0 1\n1 0\n0 1\n1 x", "not a number"),
        ("2\n0 1\n1 0\n0 -1\n1 0", "entry (1, 2) of matrix 2 is -1"),
        ("2\n0 1\n1 0\n0 nan\n1 0", "entry (1, 2) of matrix 2 is nan"),
        ("2\n1 1\n1 2\n3 1\n1 4", "both diagonals are non-zero"),
    ],
)
def test_bad_qaplib(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(put(tmp_path, "g.dat", text))


def test_qaplib_needs_a_machine_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not describe its machine"):
        save_graph(nets(), tmp_path / "g.dat")
