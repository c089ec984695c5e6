"""Multipliers of bounds, predicted from the graph: where an ascent begins (docs/learning.md)."""
