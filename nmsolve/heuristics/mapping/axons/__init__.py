"""Axon tables while nodes move: entries per core kept exact, and repair of mappings that need too many.

``state`` holds the counts, ``moves`` changes them, ``repair`` brings a mapping within the limits.
"""
