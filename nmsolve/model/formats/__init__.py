"""Readers and writers of graph files, one format per module, registered by extension."""
