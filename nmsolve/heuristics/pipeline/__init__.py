"""Stages of pipelines: exact for chains and for graphs with few downsets, searches for the rest."""
