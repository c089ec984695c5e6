"""Metaheuristics that the sources name as prior art (M1.10), in their published form, for comparison."""
