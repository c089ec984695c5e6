"""Engine ``anneal``: long hot annealing of moves and swaps for one node per core."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.heuristics.mapping.placement.walker import new_walker
from nmsolve.hw.cost import uses_nets
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem

#: Temperatures of a full run in units of :func:`temperature_scale`.
HOT, COLD = 2.0, 0.01
#: Shares of the time: a quick first answer, then one long run; the rest is for polishing.
QUICK, LONG = 0.04, 0.8


class Anneal:
    """Anneal one placement from hot to frozen, offer it, then keep improving it while time is left."""

    name = "anneal"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes one node per core and objectives that charge every edge on its own."""
        return refuse_placement(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until time is up; the budget of work is fixed by the time left at the start."""
        seconds = nominal_seconds(context.time_left())
        data = placement_data(problem)
        start = first_fit(problem, context.seed, context.should_stop)
        if start is None:
            return
        context.offer(start, "first fit")
        if len(data.indices) == 0 or context.should_stop():
            return
        walker = new_walker(data, context.seed)
        walker.place(start)
        scale = temperature_scale(data)
        began, total = context.time_left(), seconds * 1e9
        for name, share, until in (("quick annealing", QUICK, QUICK), ("annealing", LONG, QUICK + LONG)):
            lead = context.time_left()

            def time_used(lead: float = lead, until: float = until) -> float:
                goal = lead - began * (1 - until)
                return (lead - context.time_left()) / goal if goal > 0 else 1.0

            anneal(walker, share * total, HOT * scale, COLD * scale, time_used, context.should_stop)
            walker.descend(context.should_stop)
            context.offer(walker.core(), name)


def refuse_placement(problem: MappingProblem) -> str | None:
    """Why a placement engine cannot take ``problem``, or None."""
    if not problem.one_per_core:
        return "a core may hold several nodes"
    if uses_nets(problem):
        return "the objective charges messages by their route tree"
    return None


def nominal_seconds(time_left: float) -> float:
    """The time a run plans with: ``time_left`` rounded down to 1, 2 or 5 in its second digit, so that small
    differences at the start of two runs do not change the plan."""
    if time_left <= 0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(time_left) - 1)
    return float(np.floor(time_left / unit + 1e-9) * unit)
