#!/usr/bin/env bash
# networkx 3.3 and 3.6.1: neither release reads the node-link JSON that the other one writes.
#
# The list of edges is called "links" up to 3.3 and "edges" in 3.6, both when it is written and when it is read, and neither
# release looks for the other name.
#
# Seen: node_link_graph raises KeyError: 'edges' for a file of 3.3, and KeyError: 'links' for a file of 3.6.1.
# Consequence: a program that takes such files has to accept both names; node_link_graph(data, edges="links") reads old ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > write.py <<'PY'
import json
import sys

import networkx as nx

graph = nx.Graph([("a", "b", {"weight": 2.0})])
with open(sys.argv[1], "w") as file:
    json.dump(nx.node_link_data(graph), file)
PY
cat > read.py <<'PY'
import json
import sys

import networkx as nx

with open(sys.argv[1]) as file:
    data = json.load(file)
try:
    said = f"{nx.node_link_graph(data).number_of_edges()} edge"
except KeyError as error:
    said = f"KeyError {error}"
print(nx.__version__, "reads", sys.argv[1], said)
PY
for release in 3.3 3.6.1; do
  python3 -m venv "$release"
  "$release"/bin/pip install --quiet "networkx==$release"
  "$release"/bin/python -W ignore write.py "of-$release.json"
done
for release in 3.3 3.6.1; do
  for file in of-3.3.json of-3.6.1.json; do
    "$release"/bin/python -W ignore read.py "$file"
  done
done | tee seen
cat > expected <<'SAID'
3.3 reads of-3.3.json 1 edge
3.3 reads of-3.6.1.json KeyError 'links'
3.6.1 reads of-3.3.json KeyError 'edges'
3.6.1 reads of-3.6.1.json 1 edge
SAID
diff expected seen || { echo "changed: see the lines above"; exit 1; }
