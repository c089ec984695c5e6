"""Whether a problem has any mapping at all, and if not, a smallest set of limits that forbids one."""

from nmsolve.solvers.mapping.explain.conflict import Conflict, Explanation, explain

__all__ = ["Conflict", "Explanation", "explain"]
