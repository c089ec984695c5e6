"""Pipelines (method M5): layers in stages, each stage on a group of cores."""
