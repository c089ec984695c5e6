#!/usr/bin/env bash
# SciPy 1.17: mmwrite decides by the numbers whether a Matrix Market file is "symmetric", and then leaves out half of them.
#
# The header says "symmetric" whenever the values happen to be, whatever the matrix stands for; symmetry="general" has to be asked
# for. The same matrix with one value changed is written as "general" with all its entries.
#
# Seen: a directed ring of three cells with equal weights both ways, six connections, is written with three entries.
# Consequence: programs that read "symmetric" as "undirected" see three connections, and sums over directed ones are halved.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet scipy==1.17.1 numpy==2.4.0
cat > probe.py <<'PY'
from io import BytesIO

import numpy as np
from scipy.io import mmwrite
from scipy.sparse import coo_array

ring = np.ones((3, 3)) - np.eye(3)
uneven = ring.copy()
uneven[0, 1] = 2.0
for name, matrix, more in (
    ("equal both ways", ring, {}), ("one value changed", uneven, {}), ("asked for", ring, {"symmetry": "general"}),
):  # fmt: skip
    file = BytesIO()
    mmwrite(file, coo_array(matrix), **more)
    lines = file.getvalue().decode().splitlines()
    print(f"{name}: {lines[0].split()[-1]}, {sum(not line.startswith('%') for line in lines[1:]) - 1} entries")
PY
venv/bin/python probe.py | tee seen
cat > expected <<'SAID'
equal both ways: symmetric, 3 entries
one value changed: general, 6 entries
asked for: general, 6 entries
SAID
diff expected seen || { echo "changed: see the lines above"; exit 1; }
