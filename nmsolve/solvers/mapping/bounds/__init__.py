"""Lower bounds that need no solver, each with a certificate: see docs/bounds.md."""

from nmsolve.solvers.mapping.bounds.placement import placement_bound

__all__ = ["placement_bound"]
