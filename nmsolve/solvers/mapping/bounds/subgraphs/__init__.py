"""Subgraph bound: small sets of nodes solved exactly on a free grid, together with stars and metric rows."""
