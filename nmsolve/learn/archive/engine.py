"""Engine ``memory``: mappings of relatives that were solved before, aligned, repaired and mended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.heuristics.mapping.multilevel.mapper import WORK_PER_SECOND, mend_multilevel
from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import COLD, PLACEMENT, nominal_seconds
from nmsolve.heuristics.mapping.placement.local_search import new_local_search
from nmsolve.heuristics.mapping.placement.schedule import anneal, extra_heat, temperature_scale
from nmsolve.learn.archive.align import align
from nmsolve.learn.archive.arcs import Arcs
from nmsolve.learn.archive.effort import Effort
from nmsolve.learn.archive.packing import Solved
from nmsolve.learn.archive.transfer import transferred
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Temperature from which a transferred placement is cooled again, in units of the mean traffic times a line: it mends what has
#: changed and keeps the rest (the best of 0.05 to 0.8 at a fifth, a twentieth and a hundredth of the time of scratch).
MENDING = 0.5
#: Shares of the time left at which the annealings end: a short one for an early answer, each from the best so far.
STAGES = (0.06, 0.3, 0.97)
#: Most of the slice for the search of counterparts. No further relative is looked at once one has this share of connections.
SEARCH, ENOUGH = 0.5, 0.7
_PLACEMENT = takes(PLACEMENT)


class Recall:
    """Every relative's mapping on the new problem; the best of them is mended for the time left.

    With one node per core it is annealed from a low temperature, with many it goes through V-cycles. All work is counted, so
    that equal runs do the same, unless the machine is far slower than the counts say.

    Parameters
    ----------
    relatives : the nearest first; :meth:`.store.Archive.relatives` finds them
    seconds : most that it may take, also where every engine has a least turn that is longer
    mends : False leaves what comes out of the repair as it is, to measure what mending is worth

    Attributes
    ----------
    used : the relative whose mapping was the best, or None
    """

    name = "memory"
    finds = "mappings"
    refuses = takes(ANY)

    def __init__(self, relatives: Sequence[Solved] = (), seconds: float = np.inf, mends: bool = True) -> None:
        self.relatives, self.seconds, self.mends = tuple(relatives), seconds, mends
        self.used: Solved | None = None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer what comes out. Says in the events how similar each relative is and what its mapping is worth."""
        work = nominal_seconds(min(self.seconds, context.time_left())) * 1e9
        effort = Effort(SEARCH * work, context.should_stop)
        graph = Arcs.of(problem.graph)
        best: IntArray | None = None
        value = np.inf
        for solved in self.relatives:
            if effort.over():
                break
            found = align(solved.graph, graph, effort)
            core, cost = transferred(problem, solved, graph, found.match)
            worth = "no legal mapping" if core is None else f"{cost:.10g} after repair"
            context.note(
                f"relative {solved.name!r} (distance {solved.apart:.2g}, {solved.value:.10g} in its own run): "
                f"{found.share:.0%} of the connections found again by {found.by}, {worth}"
            )
            if core is not None and cost < value:
                best, value, self.used = core, cost, solved
                context.offer(core, f"from {solved.name}")
            if found.share >= ENOUGH:
                break
        if best is None or not self.mends or context.should_stop():
            return
        if _PLACEMENT(problem) is None:
            _anneal(problem, best, context, work - effort.spent)
        else:
            seconds = max(1e-3, context.time_left())
            mend_multilevel(
                problem, best, context.seed, max(1e6, (work - effort.spent) * WORK_PER_SECOND / 1e9), context.should_stop,
                context.offer, lambda: 1.0 - context.time_left() / seconds,
            )  # fmt: skip


def _anneal(problem: MappingProblem, core: IntArray, context: Context, work: float) -> None:
    """Anneal a placement from a low temperature, several times and longer each time; offer what comes out.

    ``work`` : nominal ns for all of it
    """
    data = placement_data(problem)
    scale = temperature_scale(data)
    if scale <= 0 or work <= 0:
        return
    search = new_local_search(data, context.seed)
    search.place(core)
    search.descend(context.should_stop)
    best, cost = search.core(), placement_cost(data, search.core())
    context.offer(best, "descent")
    begun, before, hot = context.time_left(), 0.0, MENDING * extra_heat(data)[0] * scale
    for until in STAGES:
        if context.should_stop():
            return
        goal = begun * until - (begun - context.time_left())
        lead = context.time_left()

        def time_used(lead: float = lead, goal: float = goal) -> float:
            return (lead - context.time_left()) / goal if goal > 0 else 1.0

        search.place(best)
        stage = (until - before) * work
        anneal(search, stage, hot, COLD * scale, time_used, context.should_stop)
        search.descend(context.should_stop)
        found = placement_cost(data, search.core())
        if found < cost:
            best, cost = search.core(), found
            context.offer(best, "annealed from a low temperature")
        before = until
