"""Operator assignment (method M3): which processor runs which operator, what is fused, and in which order."""
