"""Operators on processors: times and bounds."""
