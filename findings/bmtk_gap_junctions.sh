#!/usr/bin/env bash
# bmtk 1.2.0: an HDF5 file of SONATA edges does not say which edges are gap junctions.
#
# NetworkBuilder.add_gap_junctions stores them as ordinary edges. Only a column of bmtk's own in the table of types beside the
# file, is_gap_junction, tells them apart; SONATA's guide does not have it, and libsonata, which reads the HDF5 file alone, counts
# them among the synapses. A gap junction, which acts in both directions, is one edge, in one direction.
#
# Seen: 2 x 2 chemical edges and 1 gap junction are 5 edges with the single attribute nsyns.
# Consequence: whoever takes edges as spikes must read the table of types, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet bmtk==1.2.0 libsonata==0.2.2 h5py==3.16.0
cat > probe.py <<'PY'
import csv

import libsonata
from bmtk.builder.networks import NetworkBuilder

net = NetworkBuilder("v1")
for name in ("e", "i"):
    net.add_nodes(N=2, pop_name=name, model_type="point_process")
net.add_edges(source={"pop_name": "e"}, target={"pop_name": "i"}, connection_rule=1, syn_weight=1.0)
net.add_gap_junctions(
    source={"pop_name": "i"}, target={"pop_name": "i"}, resistance=10.0,
    target_sections=["somatic"], distance_range=[0.0, 300.0],
    connection_rule=lambda s, t: int(s["node_id"] < t["node_id"]),
)
net.build()
net.save(output_dir="net")
edges = libsonata.EdgeStorage("net/v1_v1_edges.h5").open_population("v1_to_v1")
with open("net/v1_v1_edge_types.csv") as table:
    types = list(csv.DictReader(table, delimiter=" "))
seen = edges.size, sorted(edges.attribute_names), [t["is_gap_junction"] for t in types]
print("edges, attributes in HDF5, is_gap_junction of the types:", *seen)
if seen != (5, ["nsyns"], ["NULL", "True"]):
    raise SystemExit("changed: the file of edges tells gap junctions apart, or has none")
PY
venv/bin/python probe.py
