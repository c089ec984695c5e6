"""Multilevel mapping, many nodes per core.

The graph is coarsened to about a hundred nodes. On the way back regions of cores are halved as soon as they hold enough nodes, so
that every level is refined on a board as coarse as itself (Gottesbüren et al., Deep Multilevel Graph Partitioning, 2021).

Where a network falls into halves with few edges between them, moves are made in two phases, as in Jet (Gilbert et al. 2023), then
in localised FM searches by regions of cores. What time is left goes to V-cycles and to combinations of two mappings (Sanders and
Schulz 2012), one per thread; each is the same on any number of them (``combining.py``, ``cycle.py``). On all others, and
after a part of the time where there is much, single nodes are annealed on every level, by what they would pay in every row and
column (``annealing.py``).
"""
