"""The host that this process runs on."""

from __future__ import annotations

import os
import sys


def cores() -> int:
    """Return cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
