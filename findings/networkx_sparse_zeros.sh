#!/usr/bin/env bash
# networkx 3.6 with SciPy 1.17.1: a stored zero of a sparse matrix is an edge of weight 0, a zero of the same matrix as an array is none.
#
# Seen: a matrix with a stored 0 and a 2 gives two edges by `from_scipy_sparse_array` and one by `from_numpy_array` of its `toarray()`.
# Consequence: synapses that pruning has set to 0 stay edges, with neighbours, degrees and messages, unless `eliminate_zeros` came first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet networkx==3.6 scipy==1.17.1 numpy==2.4.6
cat > probe.py <<'PY'
import networkx
import scipy.sparse

matrix = scipy.sparse.csr_array(([0.0, 2.0], [1, 2], [0, 1, 2, 2]), shape=(3, 3))
sparse, dense = networkx.from_scipy_sparse_array(matrix), networkx.from_numpy_array(matrix.toarray())
matrix.eliminate_zeros()
print(sparse.number_of_edges(), dense.number_of_edges(), networkx.from_scipy_sparse_array(matrix).number_of_edges())
PY
seen=$(venv/bin/python probe.py)
echo "edges from the sparse matrix, from its array, from it after eliminate_zeros: $seen"
[ "$seen" = "2 1 1" ] || { echo "changed: stored zeros are taken otherwise"; exit 1; }
