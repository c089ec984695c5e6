"""Mappings: which node on which core."""
