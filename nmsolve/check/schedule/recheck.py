"""Bounds of schedules re-checked: the checker of each method, and the trusted solver statuses."""

from __future__ import annotations

from nmsolve.check.rechecked import recheck
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.schedule.problem import ScheduleProblem

#: ``module:function`` below ``nmsolve`` by method; each takes the problem, the bound and seconds.
RECHECKS: dict[str, str] = {
    "critical-path": "check.schedule.counting:check",
    "prices": "check.schedule.counting:check",
    "energetic": "check.schedule.counting:check_window",
    "budgets": "check.schedule.counting:check_budgets",
}
#: Of these, what uses no ceilings: it holds under any, the others under those of the problem they are about.
FREE: tuple[str, ...] = ("energetic", "budgets")
#: Engines that leave only a solver's status.
WORDS: tuple[str, ...] = ("schedule-cpsat", "schedule-highs")


def check_schedule_bound(
    problem: ScheduleProblem, bound: Bound, seconds: float = 60.0, about: str | None = None
) -> BoundCheck:
    """Re-check a bound (:func:`nmsolve.check.rechecked.recheck`).

    Notes
    -----
    What is recomputed counts on the ceilings of ``problem``. A solver's word counts for this very problem only.
    """
    return recheck(
        problem, bound, seconds, about, checks=RECHECKS, words=WORDS, kind="schedule", solutions="schedules",
        ceilings=problem.ceilings
    )  # fmt: skip
