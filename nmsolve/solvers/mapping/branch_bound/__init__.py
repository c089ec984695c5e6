"""A dedicated branch and bound for few nodes, one or several per core."""

from nmsolve.solvers.mapping.branch_bound.engine import BranchBound

__all__ = ["BranchBound"]
