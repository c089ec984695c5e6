"""Bounds on mappings, recomputed from their certificates."""
