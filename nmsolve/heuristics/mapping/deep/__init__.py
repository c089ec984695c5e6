"""Deep multilevel mapping on the machine's own tree of halves, for networks with few neighbours per node.

The graph is coarsened to about a hundred nodes. On the way back regions of cores are halved as soon as they hold enough nodes, so
that every level is refined on a board as coarse as itself (Gottesbüren et al., Deep Multilevel Graph Partitioning, 2021). Moves
are made in two phases, as in Jet (Gilbert et al. 2023), then in localised FM searches by regions of cores. What time is left goes
to V-cycles and to combinations of two mappings (Sanders and Schulz 2012), one per thread. Each is the same on any number of them.
"""
