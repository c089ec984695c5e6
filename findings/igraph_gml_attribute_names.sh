#!/usr/bin/env bash
# igraph 1.0: `write_gml` leaves every character out of an attribute's name that is neither letter nor digit. Two names may become
# one; both are written, and `Read_GML` keeps the last of them. No error, no warning.
#
# Seen: a graph whose nodes have core_id 5, 6 and coreid 1, 2 comes back with coreid 1, 2 only; read by NetworkX 3.6.1 its nodes
# have coreid [5, 1], [6, 2]. rate_hz of the edge comes back as ratehz.
# Consequence: figures of nodes and edges that a tool finds by name are missing, or those of another name, after a round trip by GML.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet igraph==1.0.0 networkx==3.6.1
cat > probe.py <<'PY'
import warnings

import igraph
import networkx

warnings.simplefilter("error")
graph = igraph.Graph([(0, 1)], directed=True)
graph.vs["core_id"], graph.vs["coreid"], graph.es["rate_hz"] = [5, 6], [1, 2], [0.5]
graph.write_gml("g.gml")
back, other = igraph.Graph.Read_GML("g.gml"), networkx.read_gml("g.gml", label="id")
print(back.vs.attributes(), back.vs["coreid"], back.es.attributes(), [data for _, data in other.nodes(data=True)])
PY
seen=$(venv/bin/python probe.py)
echo "names and figures read back by igraph, nodes read by NetworkX: $seen"
[ "$seen" = "['id', 'coreid'] [1.0, 2.0] ['ratehz'] [{'coreid': [5, 1]}, {'coreid': [6, 2]}]" ] || { echo "changed: names of attributes are kept"; exit 1; }
