"""No compiled kernel of schedules reads or writes beyond an array (:mod:`kernels_in_python`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_kernels_stay_within_their_arrays() -> None:
    python = [sys.executable, str(HERE / "kernels_in_python.py")]
    done = subprocess.run(
        python, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert done.returncode == 0 and "every index was within" in done.stdout, done.stderr[-2000:]
