"""Answers of other tools: QAPLIB ``.sln``, METIS ``.part``, plain core numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_instance
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.any_file import read_any_mapping
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.sln import qaplib_cost, read_sln, write_sln

INSTANCES = Path(__file__).resolve().parent.parent / "nmsolve" / "benchmarks" / "instances"


def mesh_distance(rows: int, cols: int) -> np.ndarray:
    """Manhattan distances of a row-major mesh."""
    r, c = np.divmod(np.arange(rows * cols), cols)
    return np.abs(r[:, None] - r) + np.abs(c[:, None] - c)


def instance(folder: Path, first: np.ndarray, second: np.ndarray) -> tuple[LogicGraph, Machine]:
    """The pair of matrices through a file."""
    rows = [" ".join(map(str, row)) for m in (first, second) for row in m.tolist()]
    path = folder / "g.dat"
    path.write_text(f"{len(first)}\n" + "\n".join(rows) + "\n")
    graph, machine = load_instance(path)
    assert machine is not None
    return graph, machine


def put(folder: Path, text: str, name: str = "g.sln") -> Path:
    """A file in ``folder``."""
    path = folder / name
    path.write_text(text)
    return path


def test_an_answer_has_its_cost_in_whichever_direction_it_is_written(tmp_path: Path) -> None:
    """QAPLIB's formula on the matrices themselves, for every role the matrices can have, 60 random permutations."""
    rng = np.random.default_rng(5)
    mesh = mesh_distance(2, 3)
    for case in range(60):
        kinds = [rng.integers(0, 9, (6, 6)), rng.integers(0, 9, (6, 6))]
        if case % 2:
            kinds[1] = kinds[1] + kinds[1].T
        if case % 3:
            kinds[0] = mesh
        np.fill_diagonal(kinds[0], 0)
        first, second = kinds if case % 4 < 2 else kinds[::-1]
        graph, machine = instance(tmp_path, first, second)
        p = rng.permutation(6)
        cost = int((first * second[np.ix_(p, p)]).sum())
        for permutation in (p, np.argsort(p)):
            path = put(tmp_path, f"6 {cost}\n" + ",".join(str(v + 1) for v in permutation) + "\n")
            core = read_sln(path, graph, machine)
            assert qaplib_cost(graph, machine, core) == cost
            assert objective_value(MappingProblem(graph, machine), core) == cost - graph.meta.get(
                "constant", 0
            )
        write_sln(tmp_path / "own.sln", graph, machine, core)
        n, value, *q = map(int, (tmp_path / "own.sln").read_text().split())
        back = np.array(q) - 1
        assert (n, value) == (6, cost) and (first * second[np.ix_(back, back)]).sum() == cost
        assert (read_sln(tmp_path / "own.sln", graph, machine) == core).all()


def test_a_published_answer_is_read(tmp_path: Path) -> None:
    """QAPLIB's answer to nug12, cost 578."""
    graph, machine = load_instance(INSTANCES / "nug12.dat")
    assert machine is not None
    path = put(tmp_path, "12 578\n12 7 9 3 4 8 11 1 5 6 10 2\n")
    assert qaplib_cost(graph, machine, read_any_mapping(path, graph, machine)) == 578


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with a size"),
        ("9" * 5000, "does not begin with a size"),
        ("3 5\n1 2 3", "an answer of size 3 for 2 nodes; expected size 2"),
        ("2 5\n1", "2 numbers after the size; expected 3: the cost and 2 places"),
        ("2 5\n1 1", "place 1 is taken twice; expected every number from 1 to 2 once"),
        ("2 5\n0 1", "0 is no place"),
        ("2 nan\n1 2", "the cost is nan"),
        ("2 5\n1 x", "an entry is not a number"),
        ("2 5\n1 2", "the stated cost is 5, the permutation costs 7, its inverse 7"),
    ],
)
def test_a_bad_answer_is_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    """Cut short, no permutation, an answer to something else."""
    graph, machine = instance(tmp_path, np.array([[0, 3], [4, 0]]), np.array([[0, 1], [1, 0]]))
    with pytest.raises(InputError) as caught:
        read_sln(put(tmp_path, text), graph, machine)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_answer_needs_its_instance(tmp_path: Path) -> None:
    """A graph of another format, or another machine, has no QAPLIB cost."""
    ring = LogicGraph.from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0], name="ring")
    _, machine = instance(tmp_path, mesh_distance(2, 2), np.ones((4, 4), int))
    with pytest.raises(InputError, match="needs the instance it answers"):
        read_sln(put(tmp_path, "4 4\n1 2 3 4"), ring, machine)
    with pytest.raises(InputError, match="not an answer to a QAPLIB instance"):
        write_sln(tmp_path / "out.sln", ring, machine, np.arange(4))


def test_parts_go_where_the_placement_says(tmp_path: Path) -> None:
    """METIS parts with and without placement; plain core numbers are parts placed as they are."""
    graph, machine = instance(tmp_path, mesh_distance(2, 2), np.ones((4, 4), int))
    parts = put(tmp_path, "0\n1\n1\n0\n", "g.part.2")
    assert read_any_mapping(parts, graph, machine).tolist() == [0, 1, 1, 0]
    placement = put(tmp_path, "3\n2\n", "place.txt")
    assert read_any_mapping(parts, graph, machine, placement).tolist() == [3, 2, 2, 3]


@pytest.mark.parametrize(
    ("parts", "placement", "message"),
    [
        ("0\n1\n1\n", None, "3 numbers; expected 4, one per node of g"),
        ("0\n1\n1\n4\n", None, "number 3 is 4; expected a core from 0 to 3"),
        ("0\n1\n-1\n0\n", None, "found '-1'"),
        ("0 1\n1\n0\n", None, "g.part.2:1: 2 numbers; expected one number per line"),
        ("0\n1\n2\n0\n", "0\n1\n", "2 cores for parts up to 2"),
        ("0\n1\n1\n0\n", "0\n7\n", "place.txt: number 1 is 7"),
    ],
)
def test_bad_parts_are_refused_in_words(
    tmp_path: Path, parts: str, placement: str | None, message: str
) -> None:
    """Too few lines, cores that do not exist, a placement for fewer parts."""
    graph, machine = instance(tmp_path, mesh_distance(2, 2), np.ones((4, 4), int))
    place = None if placement is None else put(tmp_path, placement, "place.txt")
    with pytest.raises(InputError) as caught:
        read_any_mapping(put(tmp_path, parts, "g.part.2"), graph, machine, place)
    assert message in str(caught.value)


#: What ``coords_to_file`` of AxonCUDA (20881cc, compiled) writes for (0, 0), (2, 1), (1, 0), (2, 2).
AXON = bytes.fromhex("0400000000000000 0000000000000000 0200000001000000 0100000000000000 0200000002000000")


def test_a_placement_of_axoncuda_gives_column_and_row(tmp_path: Path) -> None:
    graph, machine = instance(tmp_path, mesh_distance(3, 3), np.ones((9, 9), int))
    parts = put(tmp_path, "0\n1\n2\n3\n0\n1\n2\n3\n3\n", "g.part.4")
    place = tmp_path / "place.bin"
    place.write_bytes(AXON)
    assert read_any_mapping(parts, graph, machine, place).tolist() == [0, 5, 1, 8, 0, 5, 1, 8, 8]
    for data, message in (
        (AXON[:-1], "it promises 4 places and has 39 bytes; expected 40 bytes"),
        (AXON[:-4] + b"\3\0\0\0", "part 3 is at 2, 3; expected x, y within 3 x 3"),
        (b"\xff" * 7 + b"\0", "places and has 8 bytes"),
        (b"\1" + bytes(15), "1 cores for parts up to 3"),
    ):
        place.write_bytes(data)
        with pytest.raises(InputError, match=message):
            read_any_mapping(parts, graph, machine, place)


def test_a_placement_with_a_finished_mapping_is_a_mistake(tmp_path: Path) -> None:
    """mapping.json already says the cores."""
    graph, machine = instance(tmp_path, mesh_distance(2, 2), np.ones((4, 4), int))
    with pytest.raises(InputError, match="gives the core of every node"):
        read_any_mapping(tmp_path / "mapping.json", graph, machine, tmp_path / "p.txt")
