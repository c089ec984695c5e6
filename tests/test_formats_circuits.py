"""SONATA circuits as bmtk and PyNN write them become the networks they describe; wrong ones are one line."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_support import run_here
from formats_support import adjacency, put, refused

from nmsolve.model.errors import InputError, InputWarning
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
    "the edges of 'v1_v1_edges.h5' are there twice": _config(lambda c: c["networks"]["edges"].append(c["networks"]["edges"][0])),
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


# ---- as found -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base", ["${configdir}", "$configdir", ".", "${configdir}/../c", "$HERE", "${workingdir}"]
)
def test_variables_that_every_configuration_has_and_variables_in_variables(
    circuit: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``$BASE`` is not ``$BASE_DIR``; what no path of the network uses may be anything."""
    monkeypatch.chdir(circuit.parent)
    wanted = load_graph(circuit).hash
    manifest = {
        "$BASE_DIR": base,
        "$BASE": "nowhere",
        "$HERE": "${configdir}",
        "$NETWORK_DIR": "${BASE_DIR}/network",
    }
    _config(lambda c: c.update(manifest=manifest | {"$OUT": "$ELSE/${datetime}"}))(circuit)
    assert load_graph(circuit).hash == wanted
    _config(lambda c: c["networks"]["edges"][0].update(edges_file="$BASE_DIRX/e.h5"))(circuit)
    assert "'$BASE_DIRX/e.h5' becomes '$BASE_DIRX/e.h5'" in refused(circuit)


@pytest.mark.parametrize("simulation", [
    {"network": "circuit_config.json"}, {"manifest": {"$BASE": "${configdir}"}, "network": "$BASE/circuit_config.json"},
    {"run": {"tstop": 10}, "output": {}},
])  # fmt: skip
def test_a_configuration_of_a_simulation_leads_to_its_circuit(
    circuit: Path, simulation: dict, tmp_path: Path
) -> None:
    path = circuit.parent / "simulation_config.json"
    path.write_text(json.dumps(simulation))
    assert load_graph(path).hash == load_graph(circuit).hash
    assert convert(path, tmp_path / "c.nmz") == (26, load_graph(circuit).m)


@pytest.mark.parametrize(("simulation", "message"), [
    ({"network": "none.json"}, "$.network: there is no file"),
    ({"network": "a.json", "networks": {"nodes": []}}, "both networks and network are there"),
    ({"network": "simulation_config.json"}, "there are no networks; expected the circuit of simulation_config.json"),
])  # fmt: skip
def test_a_simulation_without_a_circuit_is_refused(circuit: Path, simulation: dict, message: str) -> None:
    path = circuit.parent / "simulation_config.json"
    path.write_text(json.dumps(simulation))
    assert message in refused(path)


def test_nodes_without_edges_are_read_with_a_word(circuit: Path) -> None:
    _config(lambda c: c["networks"].pop("edges"))(circuit)
    with pytest.warns(InputWarning, match=r"\$.networks.edges: there are no edges"):
        graph = load_graph(circuit)
    assert (graph.n, graph.m) == (26, 0)


def test_a_table_of_edge_types_that_is_missing_is_named(circuit: Path) -> None:
    (circuit.parent / "network" / "v1_v1_edge_types.csv").unlink()
    with (
        pytest.warns(InputWarning, match=r"edges\[0\].edge_types_file: there is no file"),
        pytest.warns(InputWarning, match="edges/v1_to_v1: there is no table of edge types"),
    ):
        load_graph(circuit)
    assert run_here("info", circuit, "--strict", code=2).stderr.startswith("error: ")


def test_data_sets_in_which_nothing_is_stored_count_as_missing(circuit: Path) -> None:
    """HDF5's null dataspace has no shape: h5py answers None."""
    wanted = load_graph(circuit).hash

    def add(file: h5py.File) -> None:
        group = file["edges/v1_to_v1"]
        group["0/note"] = group["nothing"] = h5py.Empty("f4")
        group.attrs["x"] = h5py.Empty("S1")

    _h5("v1_v1_edges.h5", add)(circuit)
    assert load_graph(circuit).hash == wanted
    _h5("v1_v1_edges.h5", lambda f: _replace(f, "edges/v1_to_v1/0/nsyns", h5py.Empty("u4")))(circuit)
    assert (
        load_graph(circuit).sizes[:, 1].sum()
        < load_graph(CIRCUITS / "bmtk" / "circuit_config.json").sizes[:, 1].sum()
    )
    _h5("v1_v1_edges.h5", lambda f: _replace(f, "edges/v1_to_v1/source_node_id", h5py.Empty("u4")))(circuit)
    assert "'source_node_id' is missing" in run_here("info", circuit, code=2).stderr


def junctions(path: Path) -> None:
    """Six nodes, three edges, of which the last is of type 7; nsyns 2, 3, 4."""
    with h5py.File(path, "w") as file:
        group = file.create_group("edges/v1_to_v1")
        columns = {"source_node_id": [0, 1, 5], "target_node_id": [1, 2, 1], "edge_type_id": [3, 3, 7]}
        columns |= {"edge_group_id": [0, 0, 0], "edge_group_index": [0, 1, 2], "0/nsyns": [2, 3, 4]}
        for name, values in columns.items():
            group[name] = values


@pytest.mark.parametrize(("columns", "row"), [
    ("is_gap_junction", "True"), ("is_gap_junction", "1"), ("model_template", "nest:gap_junction"),
    ("model_template", "gap_junction"),
    ("target_sections is_gap_junction", '"[a, b]" TRUE '), ("model_template", "rate_connection_delayed"),
])  # fmt: skip
@pytest.mark.parametrize(
    "names", [("v1_edges.h5", "v1_edge_types.csv"), ("edges_v1.h5", "edge_types_v1.csv")]
)
def test_types_of_edges_say_which_are_gap_junctions(
    tmp_path: Path, names: tuple[str, str], columns: str, row: str
) -> None:
    """bmtk's ``add_gap_junctions`` says it in the table beside the file; synapses of such edges are none."""
    junctions(tmp_path / names[0])
    blank = " ".join(["NULL"] * len(columns.split()))
    put(tmp_path, names[1], f"edge_type_id {columns}\n3 {blank}\n7 {row}\n")
    with pytest.warns(InputWarning, match="edges/v1_to_v1: 1 connection is left out: they are gap junctions"):
        graph = load_graph(tmp_path / names[0])
    assert graph.m == 2 and graph.sizes[:, 1].tolist() == [0, 2, 3, 0, 0, 0]
    line = run_here("convert", tmp_path / names[0], tmp_path / "o.nmz", "--strict", code=2).stderr
    assert "1 connection is left out" in line and not (tmp_path / "o.nmz").exists()


@pytest.mark.parametrize(("name", "values", "left"), [
    ("is_gap_junction", [False, False, True], [0, 1]), ("is_gap_junction", np.array([1, 0, 0], np.uint8), [1, 2]),
    ("efferent_junction_id", [0, 1, 2], []), ("is_gap_junction", [0, 0, 0], [0, 1, 2]),
])  # fmt: skip
def test_attributes_of_edges_say_which_are_gap_junctions(
    tmp_path: Path, name: str, values: object, left: list[int]
) -> None:
    path = tmp_path / "e.h5"
    junctions(path)
    with h5py.File(path, "a") as file:
        file[f"edges/v1_to_v1/0/{name}"] = values
        del file["edges/v1_to_v1/edge_type_id"]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        graph = load_graph(path)
    assert graph.sizes[:, 1].sum() == sum((2, 3, 4)[k] for k in left) and graph.m == len(left)
    assert [f"{3 - len(left)} connection" in str(w.message) for w in seen] == [True] * (len(left) < 3)


def test_an_attribute_beside_the_groups_of_edges_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.h5"
    junctions(path)
    with h5py.File(path, "a") as file:
        file["edges/v1_to_v1/is_gap_junction"] = [True, True, True]
        del file["edges/v1_to_v1/edge_type_id"]
    with pytest.warns(InputWarning, match="edges/v1_to_v1: data set 'is_gap_junction' is not read"):
        assert load_graph(path).m == 3


def test_edges_without_a_table_of_their_types_are_named(tmp_path: Path) -> None:
    junctions(tmp_path / "v1_edges.h5")
    with pytest.warns(InputWarning, match="no table of edge types: all edges count as chemical synapses"):
        assert load_graph(tmp_path / "v1_edges.h5").m == 3


def test_electrical_populations_are_left_out(circuit: Path) -> None:
    """Types of populations as Blue Brain's circuits have them."""
    populations = {"lgn_to_v1": {"type": "electrical"}}
    _config(lambda c: c["networks"]["edges"][1].update(populations=populations))(circuit)
    with pytest.warns(
        InputWarning, match=r"46 connections are left out: the population is of type 'electrical'"
    ):
        graph = load_graph(circuit)
    assert graph.m == len(
        {(a, b) for a, b, _ in stated(circuit.parent / "network", "v1_v1").tolist() if a != b}
    )


def test_populations_that_an_entry_does_not_describe_are_left_out(circuit: Path) -> None:
    with h5py.File(circuit.parent / "network" / "v1_nodes.h5", "a") as file:
        file.copy("nodes/v1", "nodes/other")
    _config(lambda c: c["networks"]["nodes"][0].update(populations={"v1": {"type": "point_neuron"}}))(circuit)
    with pytest.warns(InputWarning, match="population 'other' is left out"):
        assert load_graph(circuit).n == 26
    _config(lambda c: c["networks"]["nodes"][0].update(populations={"v2": {}}))(circuit)
    line = run_here("info", circuit, code=2).stderr
    assert "nodes/v2: there is no such population; expected other, v1" in line


@pytest.mark.parametrize("damage", [
    lambda f: _replace(f, "edges", [1, 2]), lambda f: _replace(f, "edges/v1_to_v1", [1, 2]),
    lambda f: _replace(f, "edges/v1_to_v1/0", [1.0]), lambda f: _replace(f, "edges/v1_to_v1/0/nsyns", np.bytes_(b"x")),
    lambda f: _replace(f, "edges/v1_to_v1/edge_group_id", np.array(["a"], "S1")),
    lambda f: f["edges/v1_to_v1/source_node_id"].attrs.update(node_population=b"\xff"),
])  # fmt: skip
def test_content_of_another_kind_is_refused_without_words_of_python(
    circuit: Path, damage: Callable[[h5py.File], object]
) -> None:
    """``Dataset object has no attribute get`` and the like say nothing about the file."""
    _h5("v1_v1_edges.h5", damage)(circuit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        try:
            load_graph(circuit)
        except InputError as error:
            text = str(error)
            assert not any(word in text for word in ("object has", "NoneType", "operand", "Error", "codec"))
