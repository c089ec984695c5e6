"""Schedules solved: exact models, bounds, their re-checks, and the run of all engines."""
