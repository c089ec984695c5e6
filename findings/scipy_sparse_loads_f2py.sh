#!/usr/bin/env bash
# SciPy 1.17.1 with NumPy 2.4.6: `import scipy.sparse` loads NumPy's Fortran wrapper generator and its test helpers, with unittest,
# email, difflib and argparse behind them.
#
# NumPy keeps these submodules out of `import numpy`: they are loaded when first touched. SciPy's array layer says
# `from numpy import *`, and a star takes each name of `numpy.__all__`, the lazy submodules included, so all are touched at once.
#
# Seen: none of the four is loaded after `import numpy`; all four are after `import scipy.sparse`.
# Consequence: a program that needs one sparse matrix pays for hundreds of modules; imports of SciPy belong into the functions
# that need them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet numpy==2.4.6 scipy==1.17.1
cat > probe.py <<'PY'
import sys

import numpy

WATCHED = ("numpy.f2py", "numpy.testing", "unittest", "email")
before, count = [name in sys.modules for name in WATCHED], len(sys.modules)
import scipy.sparse

after = [name in sys.modules for name in WATCHED]
print(sum(before), sum(after), len(sys.modules) - count > 150)
PY
seen=$(venv/bin/python probe.py)
echo "loaded before, loaded after, more than 150 modules were added: $seen"
[ "$seen" = "0 4 True" ] || { echo "changed: scipy.sparse no longer loads what it does not need"; exit 1; }
