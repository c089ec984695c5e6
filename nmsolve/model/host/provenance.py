"""Which program on which machine made a figure."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

from nmsolve.model.plugins import code_of_plugins
from nmsolve.model.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
#: Of a source file with kernels.
KERNELS = re.compile(rb"^from nmsolve\.model\.compiled import", re.M)


def version() -> str:
    """Return the version with a hash of the source of the package and of all plug-ins: other code, other runs."""
    h = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        h.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    h.update(code_of_plugins())
    return f"{VERSION}+{h.hexdigest()[:8]}"


def uncompiled() -> bool:
    """Return True if many kernels are not in the cache, so that the first runs would pay for compiling them.

    A module counts as compiled if a cached kernel is younger than its source. One in ten may lack one: kernels that
    are only ever inlined are not cached.
    """
    from nmsolve.model.kernel_cache import cached_files

    count = missing = 0
    for path in ROOT.rglob("*.py"):
        if KERNELS.search(path.read_bytes()):
            cached = cached_files(path, f"{path.stem}.*.nbi")
            changed = path.stat().st_mtime
            count += 1
            missing += not any(c.stat().st_mtime >= changed for c in cached)
    return missing > count / 10


def machine() -> str:
    """Return processor and number of cores."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores"
