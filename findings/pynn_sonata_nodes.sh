#!/usr/bin/env bash
# PyNN 0.13.0: the node ids that export_to_sonata writes do not begin at 0.
#
# All cells of a simulator are numbered in one row, and these numbers become node_id of every population. libsonata numbers the
# nodes of a population by their place, 0 to size - 1: it opens both files, and gives targets that its population of nodes does
# not have, without a word.
#
# Seen: population exc has 6 nodes, its edges end at 46 to 51.
# Consequence: ends of edges must be looked up in node_id, never taken as places.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pynn==0.13.0 libsonata==0.2.2 h5py==3.16.0
cat > probe.py <<'PY'
from pathlib import Path

import libsonata
import pyNN.mock as sim
from pyNN.network import Network
from pyNN.serialization import export_to_sonata

sim.setup()
inh = sim.Population(4, sim.IF_cond_exp(), label="inh")
exc = sim.Population(6, sim.IF_cond_exp(), label="exc")
synapse = sim.StaticSynapse(weight=0.1, delay=1.0)
projection = sim.Projection(inh, exc, sim.AllToAllConnector(), synapse, label="inh-exc")
export_to_sonata(Network(inh, exc, projection), "out")
(path,) = Path("out").rglob("edges_*.h5")
edges = libsonata.EdgeStorage(str(path)).open_population("inh-exc")
targets = edges.target_nodes(libsonata.Selection([(0, edges.size)]))
nodes = libsonata.NodeStorage("out/networks/nodes_exc.h5").open_population("exc")
print(f"targets {targets.min()} to {targets.max()} of {nodes.size} nodes")
if targets.max() < nodes.size:
    raise SystemExit("changed: node ids begin at 0")
PY
venv/bin/python probe.py
