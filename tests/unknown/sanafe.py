"""Networks and architectures of SANA-FE, in JSON, which is YAML."""

from __future__ import annotations

import json
from typing import Any

from nmsolve.hw.sanafe.read import read_architecture
from nmsolve.model.formats import load_graph
from unknown import Row


def _architecture() -> dict[str, Any]:
    hops = {
        f"{what}_{way}_hop": 1e-12
        for what in ("energy", "latency")
        for way in ("north", "east", "south", "west")
    }
    units = {
        "axon_in": ("energy_message_in", "latency_message_in"),
        "synapse": ("energy_process_spike", "latency_process_spike"),
        "dendrite": ("energy_update", "latency_update"),
        "soma": ("energy_access_neuron", "latency_access_neuron", "energy_update_neuron", "latency_update_neuron",
                 "energy_spike_out", "latency_spike_out"),
        "axon_out": ("energy_message_out", "latency_message_out"),
    }  # fmt: skip
    core = {"name": "c", "attributes": {"max_neurons_supported": 4}}
    core |= {name: [{"name": name, "attributes": dict.fromkeys(keys, 0.0)}] for name, keys in units.items()}
    noc = {"width": 2, "height": 1, "link_buffer_size": 4}
    tile = [{"name": "t[0..1]", "attributes": hops, "core": [core]}]
    return {"architecture": {"name": "a", "attributes": noc, "tile": tile}}


def _network() -> dict[str, Any]:
    group = {"name": "g", "attributes": {"threshold": 1.0}, "neurons": ["0..1"]}
    return {
        "network": {"name": "n", "groups": [group], "edges": [{"g.0 -> g.1": {"weight": 1}}]},
        "mappings": [{"g.0..1": {"core": "0.0"}}],
    }


def _with(content: dict[str, Any], path: str, value: object = 1) -> str:
    *way, last = path.split(".")
    place: Any = content
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    return json.dumps(content)


_TILE = "architecture.tile.0"

ROWS = (
    [
        Row("hw.sanafe.read", read_architecture, "arch.yaml", _with(_architecture(), path, value), unknown)
        for path, value, unknown in (
            ("architecture.attributes.topology", "torus", "torus"),
            ("architecture.attributes.topology", "banana", "banana"),
            ("architecture.attributes.virtual_channels", 2, "virtual_channels"),
            ("architecture.chiplets", 2, "chiplets"),
            ("power", {}, "power"),
            (f"{_TILE}.router", {}, "router"),
            (f"{_TILE}.attributes.energy_up_hop", 1e-12, "energy_up_hop"),
            (f"{_TILE}.core.0.learning", [], "learning"),
            (f"{_TILE}.core.0.attributes.max_axons", 7, "max_axons"),
            (f"{_TILE}.core.0.soma.0.attributes.energy_leak", 1e-12, "energy_leak"),
        )
    ]
    + [
        Row(
            "model.formats.sanafe_text",
            load_graph,
            "net.yaml",
            json.dumps(_network() | dict.fromkeys(names, 1)),
            said,
        )
        for names, said in (("pq", "'p', 'q'"), ("abcdefghijklop", "'k', 'l' and 2 more"))
    ]
    + [
        Row("model.formats.sanafe_text", load_graph, "net.yaml", _with(_network(), path, value), unknown)
        for path, value, unknown in (
            ("stimulus", [], "stimulus"),
            ("network.delays", [], "delays"),
            ("network.groups.0.kind", "lif", "kind"),
            ("mappings", [{"g.0..1": {"core": "0.0", "priority": 3}}], "priority"),
            ("network.edges", [{"g -> g": {"type": "random"}}], "random"),
        )
    ]
)
