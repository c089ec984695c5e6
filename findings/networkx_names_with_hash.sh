#!/usr/bin/env bash
# networkx 3.6: `write_edgelist` writes names of nodes as they are, and `read_edgelist` takes `#` anywhere in a line for a comment.
# What is left of the line has one name only, and lines with less than two names are passed over without a word.
#
# Seen: the file of the edges core#1 - core#2 and a - b has a line for each; reading it back gives one edge, with no error or warning.
# Consequence: graphs whose names hold `#` (instances of a netlist, layers numbered by a compiler) lose edges on a round trip;
# another `comments` on reading keeps them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet networkx==3.6
cat > probe.py <<'PY'
import warnings
from pathlib import Path

import networkx

warnings.simplefilter("error")
networkx.write_edgelist(networkx.Graph([("core#1", "core#2"), ("a", "b")]), "g.txt", data=False)
print(len(Path("g.txt").read_text().splitlines()), *(len(networkx.read_edgelist("g.txt", comments=c).edges) for c in ("#", "%")))
PY
seen=$(venv/bin/python probe.py)
echo "lines written, edges read by default, edges read with another sign for comments: $seen"
[ "$seen" = "2 1 2" ] || { echo "changed: names with # are read back"; exit 1; }
