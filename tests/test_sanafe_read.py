"""Networks, architectures and mappings of SANA-FE: files made for the tests, and what we export, read again.

``tests/data/sanafe/README.md`` says what SANA-FE itself counts in the files.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here

from nmsolve.hw.machines import load_machine
from nmsolve.hw.sanafe import export_sanafe
from nmsolve.hw.scores import score
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import load_graph
from nmsolve.model.formats.sanafe_text import parse_yaml
from nmsolve.model.formats.spikes import with_rates
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.any_file import read_any_mapping
from nmsolve.model.tiles import core_at, tile_and_place

DATA = Path(__file__).parent / "data" / "sanafe"


def quiet_machine(path: Path) -> Machine:
    """The machine of a file, without the warning of what is not taken over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return load_machine(str(path))


def pairs(graph: LogicGraph) -> set[tuple[str, str]]:
    """Sender and receiver of every connection, by id."""
    ends = zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)
    return {(str(graph.node_id(a)), str(graph.node_id(b))) for a, b in ends}


def test_a_network_has_the_connections_that_sanafe_makes() -> None:
    graph = load_graph(DATA / "network.yaml")
    assert graph.n == 19 and graph.directed and graph.multicast.all() and (graph.weights == 1).all()
    assert graph.ids is not None and graph.ids[:2] == ("in/0", "in/1") and graph.ids[-1] == "10/1"
    windows = {
        (f"in/{3 * (y + dy) + x + dx}", f"conv/{4 * k + 2 * y + x}")
        for k in range(2) for y in range(2) for x in range(2) for dy in range(2) for dx in range(2)
    }  # fmt: skip
    rest = {
        ("conv/0", "10/0"),
        ("conv/3", "10/1"),
        ("conv/7", "10/1"),
        ("10/0", "10/1"),
        ("10/1", "10/0"),
        ("10/1", "in/8"),
    }
    assert pairs(graph) == windows | rest
    synapses = dict(zip(graph.ids, graph.sizes[:, graph.resources.index("synapses")].tolist(), strict=True))
    assert sum(synapses.values()) == 41 and synapses["in/8"] == 2 and synapses["10/0"] == 3
    assert graph.kinds is not None and graph.kinds.names == ("inputs[0]", "lif", "")


def test_the_text_of_version_1() -> None:
    graph = load_graph(DATA / "network.net")
    assert pairs(graph) == {("0/0", "1/0"), ("0/0", "1/2"), ("1/2", "1/1")} and graph.n == 5
    machine = quiet_machine(DATA / "arch.yaml")
    at = read_any_mapping(DATA / "network.net", graph, machine)
    assert [f"{t}.{k}" for t, k in zip(*tile_and_place(machine, at), strict=True)] == [
        "0.0",
        "0.2",
        "4.1",
        "4.1",
        "3.0",
    ]


def test_an_architecture_is_a_machine_of_tiles() -> None:
    with pytest.warns(
        InputWarning,
        match=r"units besides the first of a kind: sparse, inputs\[0..15\]; what dendrite energy",
    ):
        machine = load_machine(str(DATA / "arch.yaml"))
    assert (machine.chips, machine.cores, int(machine.usable.sum())) == ((2, 3), (1, 3), 14)
    room = np.where(machine.usable, machine.limits("neurons"), 0).reshape(2, 9)
    assert room.tolist() == [
        [16] * 6 + [8, 8, 0],
        [16] * 6 + [0, 0, 0],
    ]  # tiles 0, 2, 4 and 1, 3: down the columns
    graph = LogicGraph.from_edges(2, [0], [1], [1.0])
    energy = {}
    for name, (a, b) in {"same tile": (0, 2), "east": (0, 3), "south": (0, 9), "far": (2, 15)}.items():
        energy[name] = score(graph, machine, np.array([a, b]))["energy"]
    assert energy == {"same tile": 111.0, "east": 114.0, "south": 115.0, "far": 111.0 + 3 + 3 + 4}
    latency = score(graph, machine, np.array([2, 15]))["latency-max"]
    assert latency == pytest.approx(4 + 4 + 6)
    assert (
        machine.figures["latency_barrier"].value == 1500 and machine.figures["energy_spike_out"].value == 69
    )
    shown = run_here("hw", "show", DATA / "arch.yaml").stdout
    assert "cores that share a router" in shown and "Not taken over: units besides" in shown


def test_the_dearer_axis_carries_the_difference(tmp_path: Path) -> None:
    """Where hops along rows are dearer, the cores of a tile stand below each other."""
    text = (DATA / "arch.yaml").read_text()
    for way in ("east", "west"):
        text = text.replace(f"energy_{way}_hop: 3.0e-12", f"energy_{way}_hop: 9.0e-12")
        text = text.replace(f"latency_{way}_hop: 4.0e-9", f"latency_{way}_hop: 7.5e-9")
    (tmp_path / "a.yaml").write_text(text)
    machine = quiet_machine(tmp_path / "a.yaml")
    assert machine.cores == (3, 1)
    at = core_at(machine, np.array([0, 0, 2, 1]), np.array([0, 2, 1, 1]))
    graph = LogicGraph.from_edges(2, [0], [1], [1.0])
    got = [score(graph, machine, np.array([at[0], q]))["energy"] for q in at[1:]]
    assert got == [111.0, 120.0, 115.0]


def test_a_mapping_starts_a_search_and_is_scored() -> None:
    graph, machine = load_graph(DATA / "network.yaml"), quiet_machine(DATA / "arch.yaml")
    at = read_any_mapping(DATA / "network.yaml", graph, machine)
    tile, place = tile_and_place(machine, at)
    assert [f"{t}.{k}" for t, k in zip(tile, place, strict=True)] == ["0.0"] * 9 + ["1.2"] * 4 + [
        "3.1"
    ] * 4 + ["4.0", "4.1"]
    words = ("--graph", DATA / "network.yaml", "--machine", DATA / "arch.yaml", "--json")
    told = json.loads(run_here("score", DATA / "network.yaml", *words).stdout.splitlines()[-1])
    assert told["scores"]["energy"] == pytest.approx(score(graph, machine, at)["energy"])


@pytest.mark.parametrize("flow", (False, True))
def test_core_ten_is_not_core_one(tmp_path: Path, flow: bool) -> None:
    """SANA-FE writes cores without quotes: readers of numbers take 0.10 for 0.1 (findings/sanafe_core_numbers.sh)."""
    path = tmp_path / "n.yaml"
    if flow:
        path.write_text(
            '{"network": {"name": "n", "groups": [{"name": "g", "neurons": [{"0..1": {}}]}], "edges": []},'
            ' "mappings": [{"g.0": {"core": 0.1}}, {"g.1": {"core": 0.10}}]}'
        )
    else:
        path.write_text(
            "network:\n  name: n\n  groups:\n    - {name: g, neurons: [0..1: {}]}\n  edges: []\n"
            "mappings:\n  - g.0: {core: 0.1}\n  - g.1: {core: 0.10}\n"
        )
    assert parse_yaml(path).place.tolist() == [1, 10]


def own(seed: int, nets: bool) -> LogicGraph:
    """A graph with everything that the export has to bring back."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 30, (2, 150))
    graph = LogicGraph.from_edges(
        30, *ends, rng.uniform(0.1, 3.0, 150), multicast=rng.random(30) < 0.5, resources=("neurons", "synapses"),
        sizes=rng.integers(1, 5, (30, 2)), ids=(*range(10), *(f"p/{i}" for i in range(20))), name="own graph",
        kinds=node_kinds(["a", 3] * 15),
    )  # fmt: skip
    if not nets:
        return graph
    order = rng.permutation(np.flatnonzero(np.diff(graph.indptr) > 0))
    twice = np.concatenate([order, order[:7]])  # some nodes send two messages
    rows = [
        (graph.targets[a:b], graph.weights[a:b])
        for a, b in zip(graph.indptr[twice], graph.indptr[twice + 1], strict=True)
    ]
    return replace(
        graph, indptr=np.concatenate([[0], np.cumsum([len(t) for t, _ in rows])]), targets=np.concatenate([t for t, _ in rows]),
        weights=np.concatenate([w for _, w in rows]), source=twice.astype(np.int32), multicast=np.ones(len(twice), bool),
        rate=rng.uniform(0.1, 2.0, len(twice)),
    )  # fmt: skip


@pytest.mark.parametrize("nets", [False, True])
@pytest.mark.parametrize("board", ["loihi1", "tiles"])
def test_what_we_export_is_read_again(tmp_path: Path, nets: bool, board: str) -> None:
    graph = own(5, nets)
    machine = quiet_machine(DATA / "arch.yaml") if board == "tiles" else load_machine(board)
    core = np.random.default_rng(6).choice(np.flatnonzero(machine.usable), graph.n)
    export_sanafe(graph, machine, core, tmp_path)
    again, board_again = load_graph(tmp_path / "network.yaml"), load_machine(str(tmp_path / "arch.yaml"))
    assert again.hash == graph.hash and again.kinds is not None and graph.kinds is not None
    assert (again.ids, again.name, again.resources) == (graph.ids, graph.name, graph.resources)
    assert again.kinds.names == graph.kinds.names and np.array_equal(again.sizes, graph.sizes)
    np.testing.assert_array_equal(again.rate[again.multicast], graph.rate[graph.multicast])
    at = read_any_mapping(tmp_path / "network.yaml", again, board_again)
    assert np.array_equal(at, core)
    same = ("hops", "energy", "multicast-hops", "latency-max")
    before, after = score(graph, machine, core), score(again, board_again, at)
    assert [before[k] for k in same] == pytest.approx([after[k] for k in same])


def test_an_undirected_graph_comes_back_undirected(tmp_path: Path) -> None:
    graph = LogicGraph.from_edges(5, [0, 1, 4], [1, 2, 3], [1.0, 2.5, 4.0], directed=False)
    export_sanafe(graph, load_machine("mesh:2x2"), [0, 1, 2, 3, 0], tmp_path)
    assert load_graph(tmp_path / "network.yaml").hash == graph.hash


def test_recorded_spikes_name_neurons_with_a_point(tmp_path: Path) -> None:
    (tmp_path / "spikes.csv").write_text("neuron,timestep\nin.0,1\nin.0,2\nconv.3,2\n10.1,7\n")
    with pytest.warns(InputWarning, match="count as silent: 16 of 19"):
        graph = with_rates(load_graph(DATA / "network.yaml"), tmp_path / "spikes.csv", seconds=10)
    assert graph.ids is not None
    assert {v: r for v, r in zip(graph.ids, graph.rate.tolist(), strict=True) if r} == {
        "in/0": 0.2, "conv/3": 0.1, "10/1": 0.1,
    }  # fmt: skip


NETWORK, ARCH = (DATA / "network.yaml").read_text(), (DATA / "arch.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        (NETWORK, "10.1 -> in.8: {weight: -1}", "10.1 -> in.9: {weight: -1}", "network.edges[3]: neuron 'in.9'; expected 0..8"),
        (NETWORK, "10 -> 10: [type: dense", "10 -> 10: [type: thick", "edges of type 'thick'; expected one of dense, conv2d"),
        (NETWORK, "kernel_width: 2", "kernel_width: 4", "a kernel of 2 x 4; expected at most 3 x 3"),
        (NETWORK, "kernel_count: 2", "kernel_count: 3", "the target group has 8 neurons; expected 12"),
        (NETWORK, "[7, 1]]", "[7, 2]]", "source_target_pairs[2]: neuron 2 of a group of 2"),
        (NETWORK, "- 8: {spikes", "- 9: {spikes", "groups[0].neurons[1]: neuron 9 of 9; expected 0..8"),
        (NETWORK, "0..7: [spikes", "0..99999999999: [spikes", "neurons; expected at most"),
        (NETWORK, "name: conv", "name: in", "a second group 'in'"),
        (NETWORK, "conv -> 10:", "conv -> 10.1:", "'conv -> 10.1' joins a neuron and a group"),
        (NETWORK, "name: 10", "name: 11", "there is no group '10'"),
        (NETWORK, "- in: [core: 0.0]", "- in: [tile: 0.0]", "mappings[0]: there is no core"),
        (NETWORK, "network:", "architecture:", "there is no network (`--machine` reads this one)"),
        (NETWORK, "  edges:", "  edges: *these", "expected YAML"),
        (NETWORK, "name: made up", "name: [made up", "not YAML"),
        (NETWORK, "network:", "network: {}\nnetwork:", "'network' is there twice"),
    ],
)  # fmt: skip
def test_a_wrong_network_is_refused_in_one_line(
    tmp_path: Path, text: str, old: str, new: str, words: str
) -> None:
    assert text.count(old)
    path = tmp_path / "n.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_graph(path)
    assert words in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("width: 4", "width: 2", "5 tiles; expected at most 4, 2 x 2"),
        ("energy_east_hop: 3.0e-12", "energy_east_hop: -3", "attributes.energy_east_hop: found '-3'; expected a number >= 0"),
        ("large[0..3]", "large[0..99999999]", "cores; expected at most 1,048,576"),
        ("max_neurons_supported: 16", "neurons: 16", "there is no max_neurons_supported"),
        ("energy_process_spike: 35.5e-12", "energy: 1", "there is no energy_process_spike"),
        ("architecture:", "network:", "there is no architecture (this is a network)"),
        ("latency_sync: { 1: 0.5e-6, 5: 1.5e-6 }", "latency_sync: []", "no time of the barrier"),
    ],
)  # fmt: skip
def test_a_wrong_architecture_is_refused_in_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert ARCH.count(old)
    path = tmp_path / "a.yaml"
    path.write_text(ARCH.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_machine(str(path))
    assert words in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("e 0.0->1.0", "e 0.0-1.0", ":8: found '0.0-1.0'; expected e GROUP.NEURON->GROUP.NEURON"),
        ("e 0.0->1.0", "e 0.0->1.3", ":8: neuron '1.3'"),
        ("& 0.0@0.0", "& 0.0", ":12: found '0.0'; expected & GROUP.NEURON@TILE.CORE"),
        ("g 2", "*Vertices 2", ":2: found '*Vertices 2"),
        ("g 3", "g -3", ":3: found '-3'; expected a whole number >= 0"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_refused_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (DATA / "network.net").read_text()
    assert text.count(old)
    path = tmp_path / "n.net"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_graph(path)
    assert words in str(error.value)


def test_wrong_mappings_are_refused(tmp_path: Path) -> None:
    graph, machine = load_graph(DATA / "network.yaml"), quiet_machine(DATA / "arch.yaml")

    def told(old: str, new: str, other: LogicGraph = graph) -> str:
        assert NETWORK.count(old)
        (tmp_path / "n.yaml").write_text(NETWORK.replace(old, new, 1))
        with pytest.raises(InputError) as error:
            read_any_mapping(tmp_path / "n.yaml", other, machine)
        return str(error.value)

    assert "neuron 'conv/4' has no core" in told("  - conv.4..7: [core: 3.1]\n", "")
    assert "node '10/1' is on core 4.3" in told("core: 4.1", "core: 4.3")
    assert "node '10/1' is on core 7.0; expected a core of made_up, which has 3 x 2 tiles" in told(
        "core: 4.1", "core: 7.0"
    )
    renamed = replace(graph, ids=tuple(range(19)))
    assert "no neuron 0; expected the 19 nodes of made up" in told("core: 4.1", "core: 4.0", renamed)


def test_a_damaged_section_of_ours_is_refused(tmp_path: Path) -> None:
    export_sanafe(own(1, False), load_machine("loihi1"), np.zeros(30, int), tmp_path)
    content = json.loads((tmp_path / "network.yaml").read_text())
    path = tmp_path / "n.yaml"

    def told(**changed: object) -> str:
        path.write_text(json.dumps(content | {"nmsolve": content["nmsolve"] | changed}))
        with pytest.raises(InputError) as error:
            load_graph(path)
        return str(error.value)

    assert "nmsolve.rates: 1 entries" in told(rates=[1.0])
    assert "version 2" in told(version=2)
    assert "nmsolve.sizes[1]: 1 entries; expected 30" in told(sizes=[[1] * 30, [1]])
    assert "out of range" in told(more=[40] * len(content["nmsolve"]["more"]))
    assert "not as it was written" in told(multicast="yes")
    moved = json.loads((tmp_path / "network.yaml").read_text())
    moved["mappings"][-1] = {next(iter(moved["mappings"][-1])): [{"core": "5.0"}]}
    path.write_text(json.dumps(moved))
    with pytest.raises(InputError, match="is on another core than the node"):
        read_any_mapping(path, load_graph(path), load_machine("loihi1"))
