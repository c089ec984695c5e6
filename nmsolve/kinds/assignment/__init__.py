"""Assignments: operators on unlike processors."""
