"""Mapping for messages with many destinations: exact local search on the net objectives.

``model`` states the messages and their tables, ``tables`` keeps them, ``moves`` changes them, ``changes``
weighs all cores for a node at once, ``anneal`` is the search kernel, ``search`` a state with what it needs and
``engine`` its schedule, and how a mapping is brought within limited axon tables.
"""

from nmsolve.heuristics.mapping.nets.engine import Nets

__all__ = ["Nets"]
