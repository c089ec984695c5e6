"""Method M2, multilevel topology mapping, as its source describes it: a file per requirement."""

from nmsolve.heuristics.mapping.published.m2.engine import M2

__all__ = ["M2"]
