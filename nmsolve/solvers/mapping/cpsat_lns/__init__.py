"""Exact repair of a few nodes at a time by CP-SAT, for problems that the dedicated moves do not support."""
