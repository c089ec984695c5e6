#!/usr/bin/env bash
# networkx 3.6 with pydot 4.0.1: in the DOT language `add:out` is port `out` of node `add`. networkx takes it for the name of a node.
#
# Seen: `digraph { add:out -> mul:in0; add -> relu; }` has the nodes add, mul and relu; `read_dot` returns add:out, mul:in0, add and
# relu, with no warning, and so two parts without a link between them.
# Consequence: operator graphs with ports fall apart on the way through networkx; their ports have to be cut off first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet networkx==3.6 pydot==4.0.1 pyparsing==3.3.2
cat > probe.py <<'PY'
import warnings
from pathlib import Path

import networkx
import pydot.dot_parser  # warns when it is loaded

warnings.simplefilter("error")
Path("g.dot").write_text("digraph { add:out -> mul:in0; add -> relu; }")
graph = networkx.nx_pydot.read_dot("g.dot")
print(*sorted(graph.nodes), networkx.number_weakly_connected_components(graph))
PY
seen=$(venv/bin/python probe.py)
echo "nodes and parts: $seen"
[ "$seen" = "add add:out mul:in0 relu 2" ] || { echo "changed: ports are read otherwise"; exit 1; }
