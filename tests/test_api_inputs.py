"""What ``nmsolve.map`` takes for a graph, a machine, constraints and a mapping, and what it says of anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import nmsolve
from nmsolve.hw.machine_write import save_machine
from nmsolve.hw.machines import list_presets, load_machine
from nmsolve.kinds.python.inputs import core_of, source_of
from nmsolve.model.formats.in_memory import named_graph
from nmsolve.model.mapping.constraints import SideConstraint

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: Node 0 sends 2 to node 2, node 1 sends 1 to node 0 and 3 to node 2.
TRAFFIC = np.array([[0, 0, 2], [1, 0, 3], [0, 0, 0]])


def edges(graph: nmsolve.LogicGraph) -> set[tuple[int, int, float]]:
    columns = (graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist())
    return set(zip(*columns, strict=True))


@pytest.mark.parametrize(
    "given",
    [
        TRAFFIC,
        TRAFFIC.astype(np.float32),
        sp.csr_array(TRAFFIC),
        sp.csc_matrix(TRAFFIC),
        sp.coo_array(
            ([2, 1, 1, 2], ([0, 1, 1, 1], [2, 0, 2, 2])), shape=(3, 3)
        ),  # two entries of one place add up
        nx.from_numpy_array(TRAFFIC, create_using=nx.DiGraph),
    ],
    ids=["array", "floats", "csr", "csc", "coo", "networkx"],
)
def test_rows_send_to_columns(given: Any) -> None:
    graph, nodes, path = named_graph(given)
    assert edges(graph) == {(0, 2, 2.0), (1, 0, 1.0), (1, 2, 3.0)} and graph.directed
    assert tuple(nodes) == (0, 1, 2) and graph.ids is None and path is None


def test_a_networkx_graph_means_what_its_file_means(tmp_path: Path) -> None:
    """Sizes, multicasts, the machine and names by the rules of node-link JSON; what no file can hold is left out."""
    graph = nx.DiGraph(name="net", mesh=[2, 2], capacity={"neurons": 9}, drawn_by=object())
    graph.add_node("a", neurons=np.int64(4), multicast=True, rate=2.5, pos=(0.5, 1))
    graph.add_node("b", neurons=2)
    graph.add_edge("a", "b", weight=np.float32(2.5))
    found = named_graph(graph).graph
    del graph.graph["drawn_by"], graph.nodes["a"]["pos"]
    graph.nodes["a"]["neurons"], graph.edges["a", "b"]["weight"] = 4, 2.5
    file = tmp_path / "net.json"
    file.write_bytes(__import__("msgspec").json.encode(nx.node_link_data(graph, edges="edges")))
    assert found.hash == nmsolve.load_graph(file).hash
    assert found.name == "net" and found.sizes.tolist() == [[4], [2]] and found.meta["mesh"] == [2, 2]
    assert nmsolve.map(graph, time_limit=5).problem.machine.size == 4


def test_parallel_edges_add_up_and_any_node_keeps_its_name() -> None:
    graph = nx.MultiDiGraph([((0, 1), "b", {"weight": 2}), ((0, 1), "b", {"weight": 3}), ("b", 7)])
    result = nmsolve.map(graph, "mesh:2x2", time_limit=5, seed=1)
    assert set(result.mapping) == {(0, 1), "b", 7} and result.problem.graph.ids == ("(0, 1)", "b", 7)
    assert result.problem.graph.weights.tolist() == [5.0, 1.0]
    again = nmsolve.map(graph, "mesh:2x2", warm_start=result.mapping, engines=["first-fit"], time_limit=5)
    assert again.mapping == result.mapping


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (-TRAFFIC, r"entry \[0, 2\] is -2"),
        (sp.csr_array(-TRAFFIC), r"entry \[0, 2\] is -2"),
        (TRAFFIC * np.nan, r"entry \[0, 1\] is nan"),
        (np.where(TRAFFIC > 0, np.inf, 0), r"entry \[0, 2\] is inf"),
        (TRAFFIC * 1j, "type complex128"),
        (TRAFFIC.astype(object), "type object"),
        (np.zeros((2, 3)), r"the shape is \(2, 3\)"),
        (sp.csr_array((2, 3)), r"the shape is \(2, 3\)"),
        (np.zeros(3), r"the shape is \(3,\)"),
        (np.zeros((0, 0)), "no nodes"),
        (nx.Graph(), "no nodes"),
        (nx.Graph([(1, 2, {"weight": -1})]), "weight of edge 1 -> 2 is -1"),
        (nx.Graph([(1, 2, {"weight": float("nan")})]), "weight of edge 1 -> 2 is nan"),
        (nx.Graph([(1, 2, {"weight": "heavy"})]), "edge 1 -> 2 has weight 'heavy'"),
        (nx.Graph([(1, 2, {"weight": 1j})]), "edge 1 -> 2 has weight 1j"),
        (nx.Graph([((1,), "(1,)")]), "two nodes are written"),
        ([[0, 1], [1, 0]], "a list is no graph; expected a LogicGraph"),
        (None, "a NoneType is no graph"),
        ("nowhere.json", "nowhere.json: no such file"),
    ],
)  # fmt: skip
def test_what_is_no_graph_is_refused_in_one_line(given: Any, words: str) -> None:
    with pytest.raises(nmsolve.InputError, match=words) as caught, np.errstate(invalid="ignore"):
        nmsolve.map(given, "mesh:2x2")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [*list_presets(), "mesh:3x4,2x2", str(EXAMPLES / "board.toml")])
def test_a_machine_written_as_a_file_is_the_same_machine(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    save_machine(machine, tmp_path / "machine.toml")
    again = load_machine(str(tmp_path / "machine.toml"))
    assert again.hash == machine.hash and again.figures == machine.figures and again.name == machine.name


def test_faults_and_unlike_cores_are_written_too(tmp_path: Path) -> None:
    machine = nmsolve.Machine(
        'a "board"\n', (1, 2), (2, 2), torus=True, capacity={"neurons": 5, "odd name": 7}, crossing_weight=2.5,
        faulty_cores=(0,), taken_cores=(3,), faulty_links=((1, 2), (2, 1)),
        core_capacity={"neurons": np.array([5, 5, 1, 1, 5, 5, 5, 2])},
    )  # fmt: skip
    save_machine(machine, tmp_path / "m.toml")
    assert load_machine(str(tmp_path / "m.toml")).hash == machine.hash
    one_way = nmsolve.Machine("m", (1, 1), (2, 2), faulty_links=((0, 1),))
    matrix = nmsolve.Machine("d", (1, 1), (1, 2), distance_matrix=np.array([[0.0, 1], [1, 0]]))
    for other, words in ((one_way, "dead in one direction"), (matrix, "a distance matrix")):
        with pytest.raises(nmsolve.InputError, match=words):
            save_machine(other, tmp_path / "n.toml")
    assert not (tmp_path / "n.toml").exists()


def test_machines_that_are_missing_or_stated_twice() -> None:
    with pytest.raises(nmsolve.InputError, match="no machine given"):
        nmsolve.map(TRAFFIC)
    with pytest.raises(nmsolve.InputError, match="chips beside a machine"):
        nmsolve.map(TRAFFIC, nmsolve.machine("mesh:2x2"), chips=(1, 2))
    assert (
        source_of(TRAFFIC, "mesh:2x2", (2, 1)).board.size
        == source_of(TRAFFIC, "mesh:2x2", "2x1").board.size
        == 8
    )


def test_constraints_as_entries_as_objects_and_from_a_file(tmp_path: Path) -> None:
    """All three hold, and all of them are written to a file that means the same."""
    entries = [
        {"kind": "pin", "nodes": [1], "core": [1, 1]},
        {"kind": "region", "nodes": [0], "rectangle": [0, 0, 1, 2]},
    ]
    objects = [SideConstraint("pin 0", "pin", (1,), (3,)), SideConstraint("region 1", "region", (0,), (1, 0))]
    file = tmp_path / "c.json"
    file.write_bytes(__import__("msgspec").json.encode({"constraints": entries}))
    results = [
        nmsolve.map(TRAFFIC, "mesh:2x2", constraints=given, time_limit=5, seed=1)
        for given in (entries, objects, file)
    ]
    assert len({r.problem.hash for r in results}) == 1
    for k, result in enumerate(results):
        assert result.mapping[1] == 3 and result.mapping[0] in (0, 1)
        assert nmsolve.verify(result.save(tmp_path / str(k)))
    with pytest.raises(nmsolve.InputError, match="no node has id 9"):
        nmsolve.map(TRAFFIC, "mesh:2x2", constraints=[{"kind": "pin", "nodes": [9], "core": [0, 0]}])
    with pytest.raises(nmsolve.InputError, match="invalid constraints"):
        nmsolve.map(TRAFFIC, "mesh:2x2", constraints=[{"kind": "pin", "node": [1]}])
    corner = SideConstraint("corner", "region", (0,), (0, 1, 2))
    odd = nmsolve.map(TRAFFIC, "mesh:2x2", constraints=[corner], time_limit=5)
    assert nmsolve.verify(odd.save(tmp_path / "odd"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({0: 0, 1: 1}, "node 2 has no core"),
        ({0: 0, 1: 1, 2: 2, "x": 3}, "no node is called 'x'"),
        ({0: 0, 1: 1, 2: "core 2"}, "node 2 is on core 'core 2'"),
        ({0: 0, 1: 1, 2: (2, 0)}, r"node 2 is on core \(2, 0\)"),
        ([0, 1], "3 core numbers"),
        ([0.5, 1, 2], "3 core numbers"),
        ([0, 1, 4], "core 4"),
        ([0, 1, -1], "core -1"),
        ("nowhere.json", "no such file"),
    ],
)
def test_what_is_no_mapping_is_refused(given: Any, words: str) -> None:
    with pytest.raises(nmsolve.InputError, match=words):
        nmsolve.score(given, TRAFFIC, "mesh:2x2")


def test_mappings_in_every_form_score_the_same(tmp_path: Path) -> None:
    named, board = named_graph(TRAFFIC), load_machine("mesh:2x2")
    assert core_of({0: (0, 0), 1: (1, 1), 2: np.int64(2)}, named, board).tolist() == [0, 3, 2]
    result = nmsolve.map(TRAFFIC, "mesh:2x2", time_limit=5, seed=1)
    folder = result.save(tmp_path / "run")
    forms: list[Any] = [result, result.mapping, result.core, folder, folder / "mapping.json"]
    assert len({nmsolve.score(form, TRAFFIC, "mesh:2x2")["hops"] for form in forms}) == 1
    assert nmsolve.score(folder) == nmsolve.score(result) == dict(result.scores)
    with pytest.raises(nmsolve.InputError, match="without its graph"):
        nmsolve.score(result.mapping)
