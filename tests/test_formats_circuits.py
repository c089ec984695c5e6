"""SONATA circuits as bmtk and PyNN write them become the networks they describe; wrong ones are one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_support import run_here
from formats_support import adjacency, refused

from nmsolve.model.formats import convert, load_graph

CIRCUITS = Path(__file__).parent / "data" / "circuits"


@pytest.fixture
def circuit(tmp_path: Path) -> Path:
    """A copy of bmtk's circuit: its configuration."""
    shutil.copytree(CIRCUITS / "bmtk", tmp_path / "c")
    return tmp_path / "c" / "circuit_config.json"


def stated(folder: Path, population: str) -> np.ndarray:
    """(edges, 3): source, target and synapses as an edges file has them."""
    with h5py.File(folder / f"{population}_edges.h5") as file:
        (group,) = file["edges"].values()
        return np.stack([group["source_node_id"][:], group["target_node_id"][:], group["0/nsyns"][:]], axis=1)


def test_a_circuit_of_bmtk_has_its_nodes_kinds_and_all_edges(circuit: Path, tmp_path: Path) -> None:
    graph = load_graph(circuit)
    assert graph.ids == (*(f"v1/{k}" for k in range(20)), *(f"lgn/{k}" for k in range(6)))
    assert graph.kinds is not None and graph.kinds.names == ("exc", "inh", "tON")
    assert graph.kinds.of.tolist() == [0] * 16 + [1] * 4 + [2] * 6
    wanted, synapses = np.zeros((26, 26)), np.zeros(26, np.int64)
    for population, first in (("v1_v1", 0), ("lgn_v1", 20)):
        for source, target, count in stated(circuit.parent / "network", population).tolist():
            wanted[source + first, target] = 1
            synapses[target] += count
    assert np.array_equal(adjacency(graph), wanted) and np.array_equal(graph.sizes[:, 1], synapses)
    assert graph.multicast.all() and (graph.rate == 1).all() and graph.name == "circuit_config"
    assert convert(circuit, tmp_path / "c.nmz") == (graph.n, graph.m)
    assert load_graph(tmp_path / "c.nmz").hash == graph.hash


def test_node_numbers_that_go_on_from_one_population_to_the_next_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyNN numbers all cells of a network in one row: 16 + 4 + 6 neurons are 26 nodes, not 62 + 68 + 58."""
    graph = load_graph(CIRCUITS / "pynn" / "circuit_config.json")
    assert graph.n == 26 and graph.ids is not None
    assert [graph.ids[k] for k in (0, 3, 4, 9, 10, 25)] == [
        "inh/58",
        "inh/61",
        "ext/62",
        "ext/67",
        "exc/42",
        "exc/57",
    ]
    assert graph.kinds is not None and graph.kinds.names == ("inh", "ext", "exc")
    with h5py.File(CIRCUITS / "pynn" / "network" / "edges_ext-exc.h5") as file:
        group = file["edges/ext-exc"]
        edges = set(
            zip(group["source_node_id"][:].tolist(), group["target_node_id"][:].tolist(), strict=True)
        )
    found = {
        (graph.ids[a], graph.ids[b])
        for a, b in zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)
        if graph.ids[a].startswith("ext")
    }
    assert found == {(f"ext/{a}", f"exc/{b}") for a, b in edges}
    alone = load_graph(CIRCUITS / "pynn" / "network" / "edges_ext-exc.h5")
    assert alone.n <= 22 and alone.m == len(edges)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("v1", "v1"), (b"v1", "v1"), (np.array([b"v1"]), "v1"), ("/nodes/v1", "v1"), ("v1\0\0", np.array(["v1"], object)),
        (None, "v1"), (None, None),
    ],
)  # fmt: skip
def test_a_population_is_the_same_at_both_ends_however_its_name_is_written(
    tmp_path: Path, source: object, target: object
) -> None:
    """250 neurons are 250 nodes, wherever their numbers begin."""
    path = tmp_path / "e.h5"
    numbers = np.arange(17, 267)
    with h5py.File(path, "w") as file:
        group = file.create_group("edges/v1_to_v1")
        for end, name, data in (("source", source, numbers), ("target", target, np.roll(numbers, 1))):
            values = group.create_dataset(f"{end}_node_id", data=data)
            if isinstance(name, np.ndarray) and name.dtype == object:
                values.attrs.create("node_population", name, dtype=h5py.string_dtype())
            elif name is not None:
                values.attrs["node_population"] = (
                    np.bytes_(name) if isinstance(name, str) and "\0" in name else name
                )
    graph = load_graph(path)
    assert graph.n == graph.m == 250 and graph.ids == tuple(range(17, 267))


def test_a_circuit_is_mapped(circuit: Path, tmp_path: Path) -> None:
    run_here("map", circuit, "--machine", "mesh:3x3", "--time-limit", 2, "--out", tmp_path / "o")
    run_here("verify", tmp_path / "o")


def _config(change: Callable[[dict], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return edit


def _h5(name: str, change: Callable[[h5py.File], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        with h5py.File(path.parent / "network" / name, "a") as file:
            change(file)

    return edit


def _text(name: str, text: str) -> Callable[[Path], None]:
    return lambda path: (path.parent / "network" / name).write_text(text) and None


def _replace(file: h5py.File, key: str, values: object) -> None:
    del file[key]
    file[key] = values


WRONG = {
    "$.networks.edges[1].edges_file: there is no file": _config(lambda c: c["networks"]["edges"][1].update(edges_file="x.h5")),
    "becomes '$ELSE/x.h5'; expected variables that": _config(lambda c: c["networks"]["edges"][1].update(edges_file="$ELSE/x.h5")),
    "variables that $.manifest has": _config(lambda c: c["manifest"].update({"$NETWORK_DIR": "$NETWORK_DIR/$NETWORK_DIR"})),
    "found int; expected str": _config(lambda c: c["networks"]["nodes"][0].update(nodes_file=7)),
    "there are no nodes": _config(lambda c: c["networks"].update(nodes=[])),
    "population 'v1' is there twice": _config(lambda c: c["networks"]["nodes"].append(c["networks"]["nodes"][0])),
    "there is no population 'lgn'; expected v1": _config(lambda c: c["networks"]["nodes"].pop()),
    "no table has node type 101": _text("v1_node_types.csv", "node_type_id model_type\n100 virtual\n"),
    "there is no column node_type_id": _text("v1_node_types.csv", "model_type\nvirtual\n"),
    "found node_type_id 'x'": _text("v1_node_types.csv", "node_type_id model_type\nx virtual\n"),
    "node type 100 is there twice": _text("v1_node_types.csv", "node_type_id a\n100 virtual\n101 b\n100 b\n"),
    "'node_type_id' is missing": _h5("v1_nodes.h5", lambda f: _replace(f, "nodes/v1/node_type_id", [0.5] * 20)),
    "node_id 3 is negative or there twice": _h5("v1_nodes.h5", lambda f: _replace(f, "nodes/v1/node_id", [3] * 20)),
    "node_id is no list of 20 whole numbers": _h5("v1_nodes.h5", lambda f: _replace(f, "nodes/v1/node_id", [1, 2])),
    "found node 19; expected a node of 'v1', 0..18": _h5("v1_nodes.h5", lambda f: [
        _replace(f, "nodes/v1/node_id", range(19)), _replace(f, "nodes/v1/node_type_id", [100] * 19)]),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_wrong_circuits_are_refused_in_one_line(circuit: Path, message: str) -> None:
    WRONG[message](circuit)
    here = run_here("info", circuit, code=2)
    assert message in here.stderr and here.stderr.count("\n") == 1


def test_damaged_circuits_are_refused_or_harmless(circuit: Path) -> None:
    (circuit.parent / "network" / "v1_nodes.h5").write_bytes(b"no HDF5")
    assert "cannot be read" in run_here("info", circuit, code=2).stderr
    circuit.write_text('{"networks": {"nodes": 3}}')
    assert "$.networks.nodes" in refused(circuit)
