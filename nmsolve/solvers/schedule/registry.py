"""Every engine for schedules, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Sequence

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.solvers.search.entries import Entry, steps_for
from nmsolve.solvers.search.portfolio import Step

#: Rules of the literature and of the method's own description, which a report compares every answer with.
RULES = ("m4", "heft", "peft")

#: Every engine; those that refuse a problem are left out of its run.
REGISTRY: dict[str, Entry] = {
    "m4": Entry(
        "heuristics.schedule.rules:PublishedRule", "the published choice of units", share=0.02, quick=True
    ),
    "heft": Entry(
        "heuristics.schedule.rules:Heft", "earliest finish times, with insertion", share=0.02, quick=True
    ),
    "peft": Entry(
        "heuristics.schedule.rules:Peft", "predicted finish times, with insertion", share=0.02, quick=True
    ),
    "schedule-counting": Entry(
        "solvers.schedule.bounds:ScheduleCounting", "longest paths, and prices of units and loads", share=0.2
    ),
    "activity-lists": Entry(
        "heuristics.schedule.genetic:ActivityLists",
        "genetic search over lists of processes that share resources",
        repeat=True,
    ),
    "tabu-blocks": Entry(
        "heuristics.schedule.tabu:TabuBlocks",
        "tabu search on critical processes, each on one of several units",
        repeat=True,
    ),
    "schedule-search": Entry(
        "heuristics.schedule.search:ScheduleSearch",
        "annealing of orders and modes, for every objective",
        repeat=True,
    ),
}


def plan_of(problem: ScheduleProblem, names: Sequence[str] | None) -> tuple[list[Step], dict[str, str]]:
    """Return the plan of a run, and why other engines are left out (:func:`nmsolve.solvers.search.entries.steps_for`)."""
    return steps_for(REGISTRY, problem, names, " for schedules")
