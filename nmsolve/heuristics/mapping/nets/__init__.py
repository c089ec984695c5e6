"""Mapping for messages with many destinations: search on the net objectives themselves, in memory or from disk.

``search`` has the schedule: a start, levels of clusters (``levels``, ``clusters``, ``whole``), annealing of each. A level is
the lists of messages that reach each vertex (``incidence``) and tables of whom each message reaches and what one more core
would cost it (``state``, ``moves``, ``axons``); ``sweep`` visits all vertices with any number of threads.
"""

from nmsolve.heuristics.mapping.nets.engine import Nets

__all__ = ["Nets"]
