"""CP-SAT on one model in turns: each turn with other settings and with what all engines know by then.

Which settings prove most depends on the problem, and CP-SAT takes no news of other engines while it runs. So a turn is short at
first; after all settings had theirs, turns are twice as long, and no more than half of the time is lost by beginning again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import ScheduleProblem

#: Seconds of the first turns, and of the very first one where a better answer would make the model smaller.
FIRST_TURN, SHORT_TURN = 4.0, 1.0


class Setting(NamedTuple):
    """How CP-SAT runs: how much its linear relaxation holds, other parameters, and how much longer than others its turns are."""

    level: int
    flags: dict[str, Any]
    longer: float = 1.0


#: Which of two comes first becomes a variable, and there is no linear relaxation. It finds good answers soon and proves small
#: problems: j30_13_1 in 2 CPU seconds, where CP-SAT's own settings take more than 8.
ORDERS = Setting(
    0,
    {
        "use_strong_propagation_in_disjunctive": True,
        "use_dynamic_precedence_in_disjunctive": True,
        "use_disjunctive_constraint_in_cumulative": True,
        "use_dual_scheduling_heuristics": True,
    },
)
_CUMULATIVE = {
    "use_objective_lb_search": True,
    "use_timetable_edge_finding_in_cumulative": True,
    "use_overload_checker_in_cumulative": True,
    "use_hard_precedences_in_cumulative": True,
}
#: For resources: bounds first, and what is known of cumulative resources; with orders as variables, and with a relaxation.
RESOURCE_ORDERS = Setting(0, {**ORDERS.flags, **_CUMULATIVE})
RESOURCES = Setting(1, _CUMULATIVE)
#: Bounds first, and nothing else: best where units share work by choice.
BOUNDS = Setting(1, {"use_objective_lb_search": True})
#: For sums: bounds first, with clauses in the linear relaxation. In 7 CPU seconds on three networks of five processes with gaps
#: the bound of the energy is 156,715, without bounds first 155,098, by orders 148,096, which find the best answer (158,389).
SUMS = Setting(2, {"use_objective_lb_search": True})

#: For sums where units are on for few power-on intervals (:mod:`.power_intervals`): orders as variables and a relaxation. From
#: answers near the best, energies of three networks of five processes are proved in 0.4 to 7 CPU seconds; orders alone, with
#: circles, take 1 to more than 8.
POWER_INTERVALS = Setting(1, ORDERS.flags, 4.0)
#: For makespans of few processes on several units at once: orders prove three networks of five processes in 1 to 6 CPU seconds or
#: in more than 12; bounds first prove none of them in 6.
GANGS = Setting(0, ORDERS.flags, 2.0)
#: Processes up to which that is so.
FEW = 40


def settings_of(problem: ScheduleProblem, few: bool = False) -> tuple[Setting, ...]:
    """Return the settings of turns that suit a problem, the best first; ``few``: units are on for few power-on intervals."""
    if few:
        return (POWER_INTERVALS,)
    if problem.resources and not problem.sets.count:
        return ORDERS, RESOURCE_ORDERS, RESOURCES
    if problem.objective != "makespan":
        return ORDERS, SUMS
    gangs = bool((np.diff(problem.sets.indptr) > 1).any())
    return (GANGS if gangs and problem.count <= FEW else ORDERS), BOUNDS


class Turn:
    """A context that ends after some seconds; the rest is that of the run."""

    def __init__(self, context: Context, seconds: float) -> None:
        self._context = context
        self._until = context.worked() + seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def time_left(self) -> float:
        """Wall seconds of this turn."""
        return max(0.0, min(self._context.time_left(), self._until - self._context.worked()))

    def should_stop(self) -> bool:
        """Whether the turn or the run is over."""
        return self._context.should_stop() or self._context.worked() >= self._until


def seconds_of(number: int, settings: tuple[Setting, ...], left: float, short: bool = False) -> float:
    """Return the seconds of a turn: all that is left where not much more would be left for the next; ``short``: the next turn may
    have a smaller model."""
    longer = settings[number % len(settings)].longer
    seconds = SHORT_TURN if short else longer * FIRST_TURN * float(2 ** (number // len(settings)))
    return left if left < 1.6 * seconds else seconds
