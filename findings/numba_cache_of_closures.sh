#!/usr/bin/env bash
# numba 0.68.1: a function with cache=True that was made by another function, and calls a second one made there, is compiled again
# in every process, and each time leaves one more file in the cache.
#
# Its key in the index holds a digest of what it took from around it. A jitted function among that is pickled for the digest, with
# an identity that is new in every process. So no process finds what an earlier one kept, nothing is said, and nothing is removed.
# The function that takes only a number is found again, from the second process on.
#
# Seen: five processes; the inner function is compiled once and its cache holds one file of code, the outer one five times and five.
# Consequence: kernels from factories must call each other as globals, or pay for compiling, and disk, in every run.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet numba==0.68.1 numpy==2.4.6
cat > kernels.py <<'PY'
from numba import njit


def make(step):
    @njit(cache=True)
    def inner(x):
        return x + step

    @njit(cache=True)
    def outer(x):
        return 10 * inner(x)

    return inner, outer
PY
cat > probe.py <<'PY'
from pathlib import Path

from kernels import make

inner, outer = make(1)
assert (inner(1), outer(1)) == (2, 20)
kept = [len(list(Path("__pycache__").glob(f"kernels.make.locals.{name}-*.nbc"))) for name in ("inner", "outer")]
print(sum(inner.stats.cache_hits.values()), sum(outer.stats.cache_hits.values()), *kept)
PY
for _ in 1 2 3 4 5; do seen=$(NUMBA_CACHE_DIR= venv/bin/python probe.py); done
echo "fifth process: hits of inner and outer, files of code of inner and outer: $seen"
[ "$seen" = "1 0 1 5" ] || { echo "changed: the outer function is found in the cache, or its files do not pile up"; exit 1; }
