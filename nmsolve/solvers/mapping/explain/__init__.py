"""Whether a problem has any mapping at all, and if not, a smallest set of limits that forbids one."""

from nmsolve.solvers.mapping.explain.conflict import MappingLimits, explain, recheck_conflict

__all__ = ["MappingLimits", "explain", "recheck_conflict"]
