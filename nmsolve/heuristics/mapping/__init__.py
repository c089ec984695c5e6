"""Heuristics for the mapping problem."""
