#!/usr/bin/env bash
# sanafe 2.2.9 (SANA-FE), PyYAML 6.0.4, ruamel.yaml 0.19.1: `Network.save` writes the core of a neuron as TILE.CORE without quotes.
# YAML readers take that for a decimal number, so core 10 of a tile is read as core 1 of it.
#
# Seen: neurons on cores 1 and 10 of tile 0 are written as `core: 0.1` and `core: 0.10`; both readers return 0.1 for both.
# Consequence: a program that reads such a file must ask its YAML reader for plain text, not for numbers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet sanafe==2.2.9 pyyaml==6.0.4 ruamel.yaml==0.19.1
cat > probe.py <<'PY'
import sanafe
import yaml
from ruamel.yaml import YAML


def unit(name, model, *costs):
    attributes = {"model": model} if model else {}
    return [{"name": name, "attributes": attributes | dict.fromkeys(costs, 0)}]


sides = [f"{what}_{side}_hop" for what in ("energy", "latency") for side in ("north", "east", "south", "west")]
both = [f"{what}_{step}" for step in ("access_neuron", "update_neuron", "spike_out") for what in ("energy", "latency")]
core = {
    "name": "core[0..10]",
    "attributes": {"buffer_position": "soma", "max_neurons_supported": 8},
    "axon_in": unit("in", None, "energy_message_in", "latency_message_in"),
    "synapse": unit("synapse", "current_based", "energy_process_spike", "latency_process_spike"),
    "dendrite": unit("dendrite", "accumulator", "energy_update", "latency_update"),
    "soma": unit("soma", "leaky_integrate_fire", *both),
    "axon_out": unit("out", None, "energy_message_out", "latency_message_out"),
}
tile = {"name": "tile", "attributes": dict.fromkeys(sides, 0), "core": [core]}
board = {"link_buffer_size": 1, "topology": "mesh", "width": 1, "height": 1}
with open("chip.yaml", "w") as file:
    yaml.safe_dump({"architecture": {"name": "chip", "attributes": board, "tile": [tile]}}, file)
cores = sanafe.load_arch("chip.yaml").tiles[0].cores
network = sanafe.Network()
neurons = network.create_neuron_group("pair", 2, model_attributes={"threshold": 1.0})
neurons[0].connect_to_neuron(neurons[1], {"weight": 0.5})
neurons[0].map_to_core(cores[1])
neurons[1].map_to_core(cores[10])
network.save("network.yaml")
text = open("network.yaml").read()
written = [line.split(":")[1].strip() for line in text.splitlines() if line.strip().startswith("core:")]
read = [[entry["core"] for one in found["mappings"] for entry in one.values()] for found in
        (yaml.safe_load(text), YAML(typ="safe").load(text))]
print(written, *read)
PY
seen=$(venv/bin/python probe.py)
echo "written, read by PyYAML, read by ruamel.yaml: $seen"
[ "$seen" = "['0.1', '0.10'] [0.1, 0.1] [0.1, 0.1]" ] || { echo "changed: the cores are told apart, or written otherwise"; exit 1; }
