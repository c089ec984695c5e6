"""Subgraph bound: small sets of nodes solved exactly on a free grid, together with stars and metric rows."""

from nmsolve.solvers.mapping.bounds.subgraphs.free_grid import free_grid_optimum

__all__ = ["free_grid_optimum"]
