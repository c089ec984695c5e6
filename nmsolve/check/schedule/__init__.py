"""Schedules: played through, and bounds."""
