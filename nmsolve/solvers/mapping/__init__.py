"""Exact models and bounds for the mapping problem."""
