"""Schedules: processes on units over time."""
