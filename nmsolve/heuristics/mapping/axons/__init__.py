"""Axon tables while nodes move: entries per core kept exact, and mappings that need too many repaired.

``state`` holds the counts, ``moves`` changes them, ``repair`` brings a mapping within the limits.
"""
