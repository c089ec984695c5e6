"""The slots bound: any objective as a sum over pairs, every core as many places as it holds nodes, one node to a place."""

from nmsolve.solvers.mapping.bounds.partition.bound import refuses_slots, slots_bounds

__all__ = ["refuses_slots", "slots_bounds"]
