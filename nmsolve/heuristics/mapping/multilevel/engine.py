"""The engine ``multilevel``: many nodes per core (and, as a plain fallback, one)."""

from __future__ import annotations

from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem

#: Work units per second of time limit. One unit is about one nanosecond on the machine this was measured on; a
#: slower machine is noticed by the clock, which then drives the schedule.
WORK_PER_SECOND = 1e9


class Multilevel:
    """Coarsening, dual recursive bisection and heat-bath annealing at every level (see the package's text).

    Net objectives (multicast) are searched through their pairwise surrogate; the incumbent rescores offers.
    """

    name = "multilevel"
    finds = "mappings"
    refuses = takes(ANY)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search with a work budget derived from the time left; offers every improvement.

        Almost half of it goes to the mapping known at the start, unless a short first start is far better.
        """
        from nmsolve.heuristics.mapping.multilevel.mapper import map_multilevel

        seconds = max(1e-3, context.time_left())
        map_multilevel(
            problem,
            context.seed,
            seconds * WORK_PER_SECOND,
            context.should_stop,
            context.offer,
            lambda: 1.0 - context.time_left() / seconds,
            context.incumbent()[0],
        )
