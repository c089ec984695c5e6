"""Objects that tables refer to by name instead of importing them, so that rooms import in one direction."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def named(path: str) -> Any:
    """Import and return ``module:name`` below ``nmsolve``."""
    module, _, name = path.partition(":")
    return getattr(import_module("nmsolve." + module), name)
