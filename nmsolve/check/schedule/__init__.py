"""Schedules: re-evaluation, and bounds."""
