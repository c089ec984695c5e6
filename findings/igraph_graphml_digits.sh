#!/usr/bin/env bash
# igraph 1.0: `write_graphml` writes every number as a double with 15 digits, whole ones too. Python's floats need 17.
#
# Seen: of 0.1 + 0.2, 1/3, 2**53 - 1 and 12 only 12 comes back as it was, and as 12.0; no error, no warning.
# Consequence: weights change in the last places by a round trip, and numbers of neurons from 10^15 on become those of others;
# a figure computed from such a file cannot be compared for equality with one computed from the graph in memory.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet igraph==1.0.0
cat > probe.py <<'PY'
import warnings

import igraph

warnings.simplefilter("error")
graph, figures = igraph.Graph(4), [0.1 + 0.2, 1 / 3, 2**53 - 1, 12]
graph.vs["figure"] = figures
graph.write_graphml("g.graphml")
print([repr(x) for x, y in zip(igraph.Graph.Read_GraphML("g.graphml").vs["figure"], figures) if x == y])
PY
seen=$(venv/bin/python probe.py)
echo "figures that come back equal: $seen"
[ "$seen" = "['12.0']" ] || { echo "changed: figures come back as they were"; exit 1; }
