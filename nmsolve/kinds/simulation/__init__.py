"""Simulated time and traffic of a mapping."""
