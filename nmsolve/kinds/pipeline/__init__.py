"""Pipelines: layers in stages on groups of cores."""
