"""Heuristics of operator assignment."""
