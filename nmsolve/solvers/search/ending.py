"""How a run ended, and why."""

from __future__ import annotations

from nmsolve.solvers.search.budget import Budget
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.portfolio import Portfolio


def say_ending(incumbent: Incumbent, budget: Budget, portfolio: Portfolio) -> tuple[str, str]:
    """Status and stop reason of a run, told as its last event."""
    status = "unknown" if incumbent.lifted is None else "optimal" if incumbent.optimal else "feasible"
    status = "infeasible" if incumbent.infeasible else status
    reason = _stop_reason(incumbent, budget, portfolio)
    incumbent.record("end", "", f"{status}, stopped by {reason}")
    return status, reason


def _stop_reason(incumbent: Incumbent, budget: Budget, portfolio: Portfolio) -> str:
    """Why the run ended, the strongest reason first."""
    kinds = {ending.kind for ending in portfolio.endings.values()}
    if incumbent.infeasible:
        return "exhausted"
    if incumbent.reached:
        return "gap"
    if budget.interrupted:
        return "interrupt"
    if budget.starved:
        return "memory"
    if budget.over() or portfolio.hurried:
        return "time"
    if "memory" in kinds:
        return "memory"
    return "error" if kinds == {"failed"} else "exhausted"
