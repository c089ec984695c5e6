"""Every engine for schedules, and the order in which a run uses them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nmsolve.model.engine import Engine
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.solvers.search.entries import Entry, plug_ins, steps_for
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
    "schedule-cpsat": Entry(
        "solvers.schedule.exact:ScheduleCpSat", "exact model, CP-SAT", share=0.6, child=True
    ),
    "schedule-highs": Entry(
        "solvers.schedule.exact:ScheduleHighs",
        "exact model by ticks, HiGHS",
        share=0.6,
        child=True,
        unasked=False,
    ),
}
REGISTRY |= plug_ins(REGISTRY, "schedule")

#: Engines for what most of the field's own instances are, with parts of the time, each where its search takes the problem:
#: projects with limited resources, flexible job shops. Two workers let CP-SAT and the search run side by side.
SPECIAL = {
    "activity-lists": {"schedule-counting": 0.05, "activity-lists": 0.35, "schedule-cpsat": 0.6},
    "tabu-blocks": {"heft": 0.02, "schedule-counting": 0.05, "tabu-blocks": 0.35, "schedule-cpsat": 0.6},
}
#: Engines for all other problems.
GENERAL = {
    "m4": 0.02, "heft": 0.02, "peft": 0.02, "schedule-counting": 0.1, "schedule-search": 0.4, "schedule-cpsat": 0.5,
}  # fmt: skip

#: Where CP-SAT runs, and CPU seconds per variable in which its model is stated: no answer comes before.
CPSAT, STATING = "schedule-cpsat", 6e-5


def plan_of(
    problem: ScheduleProblem, names: Sequence[str | Engine] | None, seconds: float = math.inf
) -> tuple[list[Step], dict[str, str]]:
    """Return the plan of a run, and why other engines are left out (:func:`nmsolve.solvers.search.entries.steps_for`).

    Parameters
    ----------
    seconds : the time limit; unasked, CP-SAT does not begin what it could not even state in its part
    """
    shares = shares_for(problem) if names is None or "auto" in names else None
    steps, refusals = steps_for(REGISTRY, problem, names, " for schedules", shares=shares)
    late = None if shares is None or CPSAT in (names or ()) else _too_slow(problem, shares[CPSAT] * seconds)
    if late is not None and CPSAT not in refusals:
        steps, refusals = [step for step in steps if step.engine.name != CPSAT], {**refusals, CPSAT: late}
    return steps, refusals


def _too_slow(problem: ScheduleProblem, seconds: float) -> str | None:
    """Return why CP-SAT does not pay within ``seconds``, or None."""
    from nmsolve.solvers.schedule.data import schedule_data

    least = STATING * schedule_data(problem).size
    return (
        None
        if least <= seconds
        else f"to state the model would take about {least:.1f} s, its part is {seconds:.1f} s"
    )


def shares_for(problem: ScheduleProblem) -> Mapping[str, float]:
    """Return the engines of a run without ``--engines``, in order, with their parts of the time."""
    for name, shares in SPECIAL.items():
        if REGISTRY[name].make().refuses(problem) is None:
            return shares
    return GENERAL
