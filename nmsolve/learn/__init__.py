"""Learned policies; see README.md."""
