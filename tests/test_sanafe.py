"""Files for SANA-FE: checked against the rules of its documentation, and read and simulated by a small model of its semantics.

``Chip`` below follows what SANA-FE's documents say: the sections each file must have, what names and addresses look like,
that tiles count down the columns, that a neuron fires when its potential exceeds its threshold (potentials are cut to
64ths), and that a firing neuron sends a message to every core that holds a target, over ``|dx| + |dy|`` hops.
"""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from nmsolve.hw.machines import load_machine
from nmsolve.hw.sanafe import export_sanafe
from nmsolve.hw.sanafe.architecture import message_and_hops
from nmsolve.hw.scores import score
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine

RANGE = re.compile(r"\w+\[0\.\.(\d+)\]")
HOPS = [f"{what}_{way}_hop" for what in ("energy", "latency") for way in ("north", "east", "south", "west")]
UNITS = {
    "axon_in": ["energy_message_in", "latency_message_in"],
    "synapse": ["model", "energy_process_spike", "latency_process_spike"],
    "dendrite": ["model", "energy_update", "latency_update"],
    "soma": [
        "model", "energy_access_neuron", "energy_update_neuron", "energy_spike_out", "latency_access_neuron",
        "latency_update_neuron", "latency_spike_out",
    ],
    "axon_out": ["energy_message_out", "latency_message_out"],
}  # fmt: skip


class Chip:
    """The files as SANA-FE reads them; assertion errors where a rule is broken."""

    def __init__(self, folder):
        arch = json.loads((folder / "arch.yaml").read_text())["architecture"]
        assert "[" not in arch["name"]
        self.attributes = arch["attributes"]
        self.width, self.height = self.attributes["width"], self.attributes["height"]
        assert self.attributes["link_buffer_size"] > 0 and self.attributes["sync_model"] == "fixed"
        (tile,) = arch["tile"]
        assert int(RANGE.fullmatch(tile["name"])[1]) + 1 == self.width * self.height
        self.hop = {name: tile["attributes"][name] for name in HOPS}
        (core,) = tile["core"]
        assert RANGE.fullmatch(core["name"])[1] == "0"
        assert core["attributes"]["buffer_position"] == "soma"
        self.units = {}
        for section, needed in UNITS.items():
            (unit,) = core[section]
            assert set(needed) <= set(unit["attributes"])
            self.units[section] = unit["attributes"]
        assert self.units["soma"]["model"] == "leaky_integrate_fire"
        self._network(
            json.loads((folder / "network.yaml").read_text()), core["attributes"]["max_neurons_supported"]
        )

    def _network(self, file, room):
        network = file["network"]
        assert "[" not in network["name"]
        self.neurons, self.tile, self.edges = {}, {}, []
        for group in network["groups"]:
            common = merged(group["attributes"])["soma"]
            ids = [one_entry(entry) for entry in group["neurons"]]
            assert [int(i) for i, _ in ids] == list(range(len(ids)))
            for i, attributes in ids:
                self.neurons[f"{group['name']}.{i}"] = common | merged(attributes)["soma"]
        for entry in network["edges"]:
            name, attributes = one_entry(entry)
            source, target = name.split(" -> ")
            assert source in self.neurons and target in self.neurons
            assert merged(attributes)["weight"] == 0.0
            self.edges.append((source, target))
        for entry in file["mappings"]:
            name, attributes = one_entry(entry)
            tile, core = merged(attributes)["core"].split(".")
            assert core == "0" and 0 <= int(tile) < self.width * self.height
            assert name in self.neurons and name not in self.tile
            self.tile[name] = int(tile)
        assert set(self.tile) == set(self.neurons)
        assert max(list(self.tile.values()).count(t) for t in set(self.tile.values())) <= room

    def fired(self, steps):
        """How often every neuron fires."""
        out = {}
        for name, n in self.neurons.items():
            assert n["leak_decay"] == 1.0 and n["reset_mode"] == "soft"
            potential, out[name] = n["potential"], 0
            for _ in range(steps):
                potential = int(potential * 64) / 64 + n["bias"]
                if potential > n["threshold"]:
                    potential, out[name] = potential - n["threshold"], out[name] + 1
        return out

    def run(self, steps):
        """Messages, hops along rows and columns, and energy of the network (J)."""
        fired, messages, across, along = self.fired(steps), 0, 0, 0
        for name in self.neurons:
            start = self.tile[name]
            for goal in {self.tile[t] for s, t in self.edges if s == name}:
                messages += fired[name]
                across += fired[name] * abs(start // self.height - goal // self.height)
                along += fired[name] * abs(start % self.height - goal % self.height)
        energy = messages * self.units["axon_out"]["energy_message_out"]
        energy += across * self.hop["energy_east_hop"] + along * self.hop["energy_south_hop"]
        return messages, across, along, energy


def merged(attributes):
    """A list of tables as one table (SANA-FE takes either)."""
    return {k: v for table in attributes for k, v in table.items()}


def one_entry(table):
    """The only key and value of a list entry."""
    ((key, value),) = table.items()
    return key, value


def net(seed, multicast=True, rate=1.0):
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, 25, 120), rng.integers(0, 25, 120)
    graph = LogicGraph.from_edges(25, source, target, rng.uniform(0.1, rate, 120))
    many = np.full(graph.rows, multicast)
    return replace(graph, multicast=many)


@pytest.mark.parametrize("name", ["loihi1", "tianjic", "spinnaker1"])
@pytest.mark.parametrize("rate", [1.0, 3.5])
def test_what_sanafe_counts_is_what_the_export_expects(tmp_path, name, rate):
    graph, machine = net(1, rate=rate), load_machine(name)
    core = np.random.default_rng(2).choice(np.flatnonzero(machine.usable), graph.n)
    export = export_sanafe(graph, machine, core, tmp_path / "new" / "folder")
    assert export.files == (tmp_path / "new/folder/arch.yaml", tmp_path / "new/folder/network.yaml")
    assert export.steps == np.ceil(graph.rate.max())
    chip, steps = Chip(tmp_path / "new/folder"), 400
    assert (chip.width, chip.height) == (machine.cols, machine.rows)
    got = np.array(chip.run(steps * export.steps)) / steps
    want = export.expected
    np.testing.assert_allclose(
        got, [want.messages, want.hops_x, want.hops_y, want.network_energy * 1e-12], rtol=5e-3
    )


@pytest.mark.parametrize("name", ["loihi1", "tianjic"])
def test_energy_of_edges_is_what_sanafe_counts(tmp_path, name):
    """Without multicast every edge is a message at its own weight: the objective, and messages to the own core on top."""
    rng = np.random.default_rng(4)
    pairs = rng.permutation([(u, v) for u in range(12) for v in range(12) if u != v])[:60]
    graph = LogicGraph.from_edges(12, *pairs.T, rng.choice([0.0, 0.25, 0.5, 1.0], 60))
    machine = load_machine(name)
    core = rng.choice(np.flatnonzero(machine.usable)[:6], 12)
    export = export_sanafe(graph, machine, core, tmp_path)
    each, objective = message_and_hops(machine)["message"], score(graph, machine, core)["energy"]
    inside = sum(
        float(graph.weights[k]) for u in range(12) for k in range(graph.indptr[u], graph.indptr[u + 1])
        if core[u] == core[graph.targets[k]]
    )  # fmt: skip
    assert export.energy == pytest.approx(objective)
    assert export.expected.own_core_energy == pytest.approx(inside * each) and inside > 0
    assert export.expected.network_energy - inside * each == pytest.approx(objective)
    steps = 64
    got = Chip(tmp_path).run(steps * export.steps)[3] / steps
    assert got * 1e12 - inside * each == pytest.approx(objective, rel=1e-6)
    assert any("only send" in note for note in export.notes)


def test_neurons_fire_exactly_at_their_rates(tmp_path):
    graph = LogicGraph.from_edges(4, [0, 1, 2], [3, 3, 3], [1.0, 0.25, 2**-10])
    export_sanafe(graph, load_machine("loihi1"), [0, 1, 2, 3], tmp_path)
    fired = Chip(tmp_path).fired(4096)
    assert fired == {"nodes.0": 4096, "nodes.1": 1024, "nodes.2": 4, "nodes.3": 0}


def test_energies_of_loihi_are_written_in_joules(tmp_path):
    export_sanafe(net(3), load_machine("loihi1"), np.zeros(25, int), tmp_path)
    chip = Chip(tmp_path)
    assert chip.hop["energy_east_hop"] == pytest.approx(3.0e-12)
    assert chip.hop["energy_north_hop"] == pytest.approx(4.2e-12)
    assert chip.hop["latency_south_hop"] == pytest.approx(6.5e-9)
    assert chip.units["axon_out"] == pytest.approx(
        {"energy_message_out": 111e-12, "latency_message_out": 5.1e-9}
    )
    assert chip.units["soma"]["energy_access_neuron"] == pytest.approx(51.2e-12)
    assert chip.units["soma"]["energy_spike_out"] == pytest.approx(69.3e-12)
    assert chip.units["synapse"]["energy_process_spike"] == pytest.approx(35.5e-12)


def test_a_node_that_sends_several_messages_gets_neurons_of_its_own_on_its_core(tmp_path):
    graph = LogicGraph(
        n=3, indptr=np.array([0, 2, 3]), targets=np.int32([1, 2, 1]), weights=np.ones(3), source=np.int32([0, 0]),
        multicast=np.array([True, True]), rate=np.array([0.5, 0.25]), resources=(), sizes=np.zeros((3, 0), np.int64),
    )  # fmt: skip
    export = export_sanafe(graph, load_machine("loihi1"), [5, 6, 7], tmp_path)
    chip = Chip(tmp_path)
    assert set(chip.neurons) == {"nodes.0", "nodes.1", "nodes.2", "more.0"}
    assert chip.tile["more.0"] == chip.tile["nodes.0"]
    assert chip.edges == [("nodes.0", "nodes.1"), ("nodes.0", "nodes.2"), ("more.0", "nodes.1")]
    assert export.expected.messages == 0.5 * 2 + 0.25


def test_notes_say_what_the_files_cannot(tmp_path):
    loihi = load_machine("loihi1")

    def notes(machine, graph):
        return " | ".join(export_sanafe(graph, machine, np.zeros(graph.n, int), tmp_path).notes)

    assert "dead links" not in notes(loihi, net(1)) and "units are used" not in notes(loihi, net(1))
    board = replace(loihi, chips=(1, 2), faulty_links=((0, 1), (1, 0)))
    assert "2 dead links are used" in notes(board, net(1))
    assert "links between chips" in notes(board, net(1))
    plain = notes(load_machine("mesh:4x4"), net(1, multicast=False, rate=2.5))
    for words in (
        "Jin et al.'s units",
        "no energy is known of synapses, neurons, spikes",
        "steps of SANA-FE",
        "only send",
    ):
        assert words in plain


@pytest.mark.parametrize(
    ("machine", "core", "words"),
    [
        (load_machine("wormhole"), np.zeros(25, int), "SANA-FE cannot simulate a torus; expected a mesh"),
        (Machine("d", (1, 1), (1, 2), distance_matrix=np.ones((2, 2))), np.zeros(25, int), "a distance matrix"),
        (load_machine("mesh:2x2"), np.full(25, 4), "unknown core"),
        (replace(load_machine("mesh:2x2"), figures={"latency_axon_in": Figure(1.0, "us")}), np.zeros(25, int), "expected ns"),
    ],
)  # fmt: skip
def test_refusals_leave_no_file(tmp_path, machine, core, words):
    with pytest.raises(InputError, match=re.escape(words)):
        export_sanafe(net(1), machine, core, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        export_sanafe(net(1), load_machine("loihi1"), np.zeros(25, int), tmp_path / "file" / "below")
