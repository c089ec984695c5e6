"""Solvers of operator assignment: engines, bounds and their re-checks."""
