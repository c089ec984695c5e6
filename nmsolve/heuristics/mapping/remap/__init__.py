"""Re-mapping: making an old mapping legal again, and improving it under a migration budget."""

from nmsolve.heuristics.mapping.remap.engine import Remap

__all__ = ["Remap"]
