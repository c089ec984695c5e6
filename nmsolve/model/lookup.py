"""What a table names instead of importing it, so that tables stay light and rooms import in one direction."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def named(path: str) -> Any:
    """Import and return ``module:name`` below ``nmsolve``."""
    module, _, name = path.partition(":")
    return getattr(import_module("nmsolve." + module), name)
