"""The split bound: spectral, Gilmore-Lawler and distance rows in one Lagrangian; one node per core (docs/bounds.md)."""

from nmsolve.solvers.mapping.bounds.split.bound import first_split_bound, refuses_split, split_bounds

__all__ = ["first_split_bound", "refuses_split", "split_bounds"]
