"""Exact models, bounds, and the search that races every engine over one incumbent."""
