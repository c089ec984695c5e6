"""Bounds of assignments and cost networks re-checked: the checker of each method, and the trusted solver statuses."""

from __future__ import annotations

from nmsolve.check.rechecked import recheck
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck

#: ``module:function`` below ``nmsolve`` by method; each takes the problem, the bound and seconds.
RECHECKS: dict[str, str] = {
    "counting": "check.assignment.counting:check",
    "dual": "check.assignment.dual:check",
    "tree": "check.assignment.tree:check",
    "min-cut": "check.assignment.cut:check",
}
#: Engines that leave only a solver's status.
WORDS: tuple[str, ...] = ("assign-cpsat", "assign-highs", "network-cpsat", "makespan-cpsat")


def check_assign_bound(
    problem: AssignProblem | CostNetwork, bound: Bound, seconds: float = 60.0, about: str | None = None
) -> BoundCheck:
    """Re-check a bound (:func:`nmsolve.check.rechecked.recheck`).

    Notes
    -----
    What is recomputed uses no ceilings, so it holds under any. A solver's word counts for this very problem only.
    """
    ceilings = () if isinstance(problem, CostNetwork) else problem.ceilings
    return recheck(
        problem, bound, seconds, about, checks=RECHECKS, words=WORDS, kind="assignment", solutions="assignments",
        ceilings=ceilings
    )  # fmt: skip
