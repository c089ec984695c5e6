"""Which program on which machine made a figure."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import nmsolve


def version() -> str:
    """Version with a hash of the package's source files: other code, other runs."""
    h = hashlib.sha256()
    root = Path(next(iter(nmsolve.__path__)))
    for path in sorted(root.rglob("*.py")):
        h.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{nmsolve.__version__}+{h.hexdigest()[:8]}"


def machine() -> str:
    """Processor and number of cores."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores"
