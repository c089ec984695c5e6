"""A dedicated branch and bound for few nodes, one per core: Gilmore-Lawler bounds, depth first."""

from nmsolve.solvers.mapping.branch_bound.engine import BranchBound

__all__ = ["BranchBound"]
