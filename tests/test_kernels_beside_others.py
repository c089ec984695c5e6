"""Kernels are made in a way of our own (``model/kernel_library.py``); what others compile in the same process is made as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OURS = """
@kernel
def ours(x):
    out = np.empty(len(x))
    out[:] = x
    order = np.argsort(out)
    return np.cumsum(out[order])[-1] + np.zeros(3).sum()

assert abs(ours(x) - x.sum()) < 1e-9
"""
THEIRS = """
@njit(cache=True)
def arrays(x):
    copied = np.empty(len(x))
    copied[:] = x
    return np.cumsum(copied[np.argsort(copied)])[-1] + np.unique(x).sum()

@njit(parallel=True, cache=True)
def beside(x):
    out = np.zeros(len(x))
    for i in prange(len(x)):
        out[i] = np.sort(x[i : i + 3].copy())[0]
    return out

@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", nopython=True)
def each(a, out):
    copied = np.empty(len(a))
    copied[:] = a
    copied.sort()
    out[:] = copied

@vectorize([float64(float64)])
def plus(a):
    return a + np.ones(3).sum()

@cfunc("float64(float64)")
def for_c(v):
    return np.ones(3).sum() * v

@njit
def down(n):
    return 0 if n == 0 else down(n - 1)

@njit
def calls_ours(x):
    return stable_order(x)

assert abs(arrays(x) - 2 * x.sum()) < 1e-9
assert (beside(x) == [np.sort(x[i : i + 3])[0] for i in range(len(x))]).all()
assert (each(x) == np.sort(x)).all() and (plus(x) == x + 3).all() and for_c.ctypes(2.0) == 6 and down(9) == 0
assert calls_ours(np.array([3, 1, 2])).tolist() == [1, 2, 0]
"""
HEAD = """
import numpy as np
from numba import cfunc, float64, guvectorize, njit, prange, vectorize
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel
x = np.random.default_rng(0).random(100)
"""


def test_what_others_compile_works_beside_ours(tmp_path: Path) -> None:
    """Functions, parallel loops, ufuncs and callbacks, with functions of NumPy that ours call, too; and again from the cache."""
    script = tmp_path / "both.py"
    script.write_text(HEAD + OURS + THEIRS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


CALLED = """
import sys
import numpy as np
from nmsolve.model.compiled import kernel

@kernel
def inner(n):
    return np.arange(n), np.zeros(n, np.bool_)

@kernel
def outer(n):
    numbers, flags = inner(n)
    return numbers[::2].copy(), float(numbers.sum()) + flags.sum()

for name in sys.argv[1:]:
    if name == "inner":
        numbers, flags = inner(4)
        assert numbers.tolist() == [0, 1, 2, 3] and flags.tolist() == [False] * 4
    else:
        numbers, total = outer(5)
        assert numbers.tolist() == [0, 2, 4] and total == 10.0
"""


def test_a_kernel_is_called_by_kernels_and_by_python_in_any_order(tmp_path: Path) -> None:
    """What one process keeps of it for a kernel, another adds Python's entry to, and a third takes both."""
    script = tmp_path / "called.py"
    script.write_text(CALLED)
    for k, first in enumerate((("outer", "inner"), ("inner", "outer"))):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / f"cache{k}")}
        for names in (*first, "outer inner", "inner outer"):
            command = [sys.executable, script, *names.split()]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, (k, names, done.stderr[-2000:])
