"""Engine ``memory``: mappings of relatives that were solved before, aligned, repaired and mended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import COLD, PLACEMENT, nominal_seconds
from nmsolve.heuristics.mapping.placement.local_search import new_local_search
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.hw.scores import objective_value
from nmsolve.learn.memory.align import align
from nmsolve.learn.memory.arcs import Arcs
from nmsolve.learn.memory.store import Solved
from nmsolve.learn.memory.transfer import transferred
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Temperature from which a transferred placement is cooled again, in units of the mean traffic times a line: it mends what has
#: changed and keeps the rest.
MENDING = 0.5
#: Part of the time left for that; the rest is for the descent afterwards.
ANNEALED = 0.9
_PLACEMENT = takes(PLACEMENT)


class Recall:
    """Every relative's mapping on the new problem; with one node per core the best of them is annealed from a low temperature.

    Parameters
    ----------
    relatives : the nearest first; :meth:`.store.Memory.relatives` finds them
    """

    name = "memory"
    finds = "mappings"
    refuses = takes(ANY)

    def __init__(self, relatives: Sequence[Solved] = ()) -> None:
        self.relatives = tuple(relatives)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer what comes out. Says in the events how much of each relative was found again, and by what."""
        graph = Arcs.of(problem.graph)
        best: IntArray | None = None
        value = np.inf
        for solved in self.relatives:
            if context.should_stop():
                return
            found = align(solved.graph, graph, context.should_stop)
            context.note(f"{solved.name}: {found.share:.0%} of the connections found again by {found.by}")
            core = repair(problem, transferred(problem, solved, graph, found.match))
            if core is None:
                continue
            context.offer(core, f"from {solved.name}")
            cost = objective_value(problem, core)
            if cost < value:
                best, value = core, cost
        if best is not None and _PLACEMENT(problem) is None:
            _mend(problem, best, context)


def _mend(problem: MappingProblem, core: IntArray, context: Context) -> None:
    """Anneal a placement from a low temperature for the time left, and offer what comes out."""
    data = placement_data(problem)
    scale = temperature_scale(data)
    seconds = nominal_seconds(context.time_left())
    if scale <= 0 or seconds <= 0 or context.should_stop():
        return
    search = new_local_search(data, context.seed)
    search.place(core)
    search.descend(context.should_stop)
    cost = placement_cost(data, search.core())
    context.offer(search.core(), "descent")
    begun, goal = context.time_left(), ANNEALED * context.time_left()

    def time_used() -> float:
        return (begun - context.time_left()) / goal if goal > 0 else 1.0

    anneal(search, ANNEALED * seconds * 1e9, MENDING * scale, COLD * scale, time_used, context.should_stop)
    search.descend(context.should_stop)
    if placement_cost(data, search.core()) < cost:
        context.offer(search.core(), "annealed from a low temperature")
