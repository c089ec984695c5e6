"""Schedules: which process of which network runs on which units, and when (M4)."""
