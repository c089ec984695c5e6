#!/usr/bin/env bash
# networkx 3.6 with SciPy 1.17.1: a sparse matrix may hold an entry twice, and SciPy adds the two wherever it computes with it.
# `networkx.from_scipy_sparse_array` makes an edge of each in turn, and the last one stays.
#
# Seen: synapses of 1 and 2 between the same neurons are 3 in `toarray` of COO and in a product of CSR, and an edge of weight 2 in
# networkx for both; `sum_duplicates` on CSR first makes it 3.
# Consequence: networks with several synapses from one neuron to another lose traffic on the way through networkx.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet networkx==3.6 scipy==1.17.1 numpy==2.4.6
cat > probe.py <<'PY'
import networkx
import scipy.sparse


def weight(matrix):
    return float(networkx.from_scipy_sparse_array(matrix, create_using=networkx.DiGraph)[0][1]["weight"])


coo = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
csr = scipy.sparse.csr_array(([1.0, 2.0], [1, 1], [0, 2, 2]), shape=(2, 2))
print(coo.toarray()[0, 1], (csr @ [0, 1])[0], weight(coo), weight(csr), end=" ")
csr.sum_duplicates()
print(weight(csr))
PY
seen=$(venv/bin/python probe.py)
echo "COO as a table, CSR in a product, edges from COO, from CSR, from CSR after sum_duplicates: $seen"
[ "$seen" = "3.0 3.0 2.0 2.0 3.0" ] || { echo "changed: repeated entries are taken otherwise"; exit 1; }
