"""Mapping of networks of any size, in memory or on disk: annealing at market prices on every level of a coarsening.

Vertices are in memory, connections are handed out block by block (``levels.py``, ``residence.py``). For all nodes of a
batch threads propose moves from frozen state, then one thread accepts them in a fixed order, so that the answer does not
depend on the number of threads. Files named ``nets_*`` are for objectives that charge whole messages.
"""
