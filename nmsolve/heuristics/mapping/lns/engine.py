"""Engine ``lns``: large-neighbourhood search from the best mapping so far, one node per core."""

from __future__ import annotations

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.lns.search import Neighbourhoods
from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import (
    COLD,
    HOT,
    REHEAT,
    WARM,
    nominal_seconds,
    refuse_placement,
)
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.heuristics.mapping.placement.walker import Walker, new_walker, walker_cost
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Share of the time for annealing where there is no mapping to begin with.
FIRST = 0.4


class Lns:
    """Improve the incumbent (a warm start, or what other engines found) by moves that a bandit chooses."""

    name = "lns"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes one node per core and objectives that charge every edge on its own."""
        return refuse_placement(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop."""
        seconds = nominal_seconds(context.time_left())
        data = placement_data(problem)
        core, _ = context.incumbent()
        fresh = core is None
        if core is None:
            core = first_fit(problem, context.seed, context.should_stop)
            if core is None:
                return
            context.offer(core, "first fit")
        scale = temperature_scale(data)
        if scale == 0 or context.should_stop():
            return
        walker = new_walker(data, context.seed)
        walker.place(core)
        if fresh:
            core = _annealed(walker, core, context, scale, FIRST * seconds)
        work = REHEAT * seconds * 1e9
        Neighbourhoods(walker, core, context, WARM * scale, COLD * scale, work).run()


def _annealed(walker: Walker, core: IntArray, context: Context, scale: float, seconds: float) -> IntArray:
    """``core``, or what one annealing run of so many seconds makes of it if that is better."""
    cost, lead = placement_cost(walker.data, core), context.time_left()

    def used() -> float:
        return (lead - context.time_left()) / max(1e-9, seconds)

    walker.scramble()
    anneal(walker, seconds * 1e9, HOT * scale, COLD * scale, used, context.should_stop)
    walker.descend(lambda: context.should_stop() or used() > 1.2)
    if walker_cost(walker) < cost:
        core = walker.core()
        context.offer(core, "annealing")
    return core
