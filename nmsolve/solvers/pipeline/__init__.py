"""Exact models of the pipeline problem and the search over all its engines."""
