#!/usr/bin/env bash
# NumPy 2.4.6, networkx 3.6, pandas 2.3.3: Python's `float` takes `1_000` as a thousand, as its source code does. Whatever calls it
# takes such text for a number, whatever parses by itself does not, inside one library too.
#
# Seen: a thousand from `numpy.array(["1_000"], float)`, `numpy.genfromtxt` and `networkx.read_weighted_edgelist`; an error from
# `numpy.loadtxt`; text from `pandas.read_csv`.
# Consequence: one file of weights is a network in one tool and refused, or a column of text, in the next.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet numpy==2.4.6 networkx==3.6 pandas==2.3.3
printf 'a b 1_000\n' > edges.txt
printf 'weight\n1_000\n' > table.csv
cat > probe.py <<'PY'
import io

import networkx
import numpy
import pandas

made = float(numpy.array(["1_000"], float)[0])
guessed = float(numpy.genfromtxt(io.StringIO("1_000")))
edge = networkx.read_weighted_edgelist("edges.txt")["a"]["b"]["weight"]
try:
    loaded = str(numpy.loadtxt(io.StringIO("1_000")))
except ValueError:
    loaded = "ValueError"
print(made, guessed, edge, loaded, pandas.read_csv("table.csv")["weight"].dtype.kind)
PY
seen=$(venv/bin/python probe.py)
echo "array, genfromtxt, read_weighted_edgelist, loadtxt, kind of the pandas column: $seen"
[ "$seen" = "1000.0 1000.0 1000.0 ValueError O" ] || { echo "changed: underscores in digits are read otherwise"; exit 1; }
