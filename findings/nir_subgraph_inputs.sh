#!/usr/bin/env bash
# nir 1.0.8: nir.read(path, type_check=False) does not reach nested graphs.
# A nested graph is checked and changed all the same: a node in it with nothing before it gets an Input node of its own and an
# edge from that. The same graph, outermost in its file, is read as it was written.
# Seen: edges of the nested graph in the file 3, after reading 4 (input_b -> b is new); of the same graph alone 3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "nir==1.0.8" "numpy<3" "h5py<4"
cd "$folder"
venv/bin/python - <<'PY'
import sys

import h5py
import nir
import numpy as np


def lif():
    one = np.ones(3)
    return nir.LIF(tau=one, r=one, v_leak=one, v_threshold=one)


def port(kind):
    return kind(np.array([3]))


inner = nir.NIRGraph(
    nodes={"input": port(nir.Input), "a": lif(), "b": lif(), "output": port(nir.Output)},
    edges=[("input", "a"), ("a", "output"), ("b", "a")],
    type_check=False,
)
outer = nir.NIRGraph(
    nodes={"input": port(nir.Input), "sub": inner, "output": port(nir.Output)},
    edges=[("input", "sub"), ("sub", "output")],
    type_check=False,
)
nir.write("outer.nir", outer)
nir.write("inner.nir", inner)
with h5py.File("outer.nir") as file:
    written = len(file["node/nodes/sub/edges"])
nested = nir.read("outer.nir", type_check=False).nodes["sub"]
alone = nir.read("inner.nir", type_check=False)
print("in the file", written, "nested", len(nested.edges), "alone", len(alone.edges), sorted(nested.nodes))
if (written, len(nested.edges), len(alone.edges)) != (3, 4, 3):
    sys.exit("changed: the nested graph was read with other edges than before")
PY
