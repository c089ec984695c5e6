"""Mappings together with their routes: both in turns, and what faults do to them."""
