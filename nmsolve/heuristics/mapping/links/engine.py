"""The engine ``links``: annealing on link loads, or on a sum under ceilings on other objectives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.common.metropolis import SLICE, Slices, cooled
from nmsolve.heuristics.mapping.common.start import start
from nmsolve.heuristics.mapping.links.moves import search, value
from nmsolve.heuristics.mapping.links.state import build, reset
from nmsolve.heuristics.mapping.nets.search import refine
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: First and last temperature, as parts of the value (drawn as an exponential); then improvements only.
HOT, COLD, GREEDY = 0.01, 0.0002, 0.15
#: Loads count by their 2^power-norm: first the wider one, from this part of the run on the sharper one.
WIDE, SHARP, SHARPEN = 3.0, 5.0, 0.5
#: Where messages are multicast, part of the time for their total load first: it spreads far better than edges do.
TOTAL = 0.6
#: Price of an entry too many in a router's table, as part of what all cost per entry, and how it grows while there are any.
FIRST_PRICE, DEARER = 1.0, 1.1


#: Where annealing the multicast hops is a start.
_total = takes(f"trees {LIMITS} -torus -matrix -dead")


def _two_routes(problem: MappingProblem) -> str | None:
    names, machine = {problem.objective, *(name for name, _ in problem.ceilings)}, problem.machine
    if "energy" in names and (machine.torus or machine.faulty_links):
        return "routes of least energy may differ from those of least weight on a torus or with dead links"
    return None


class Links:
    """Moves and swaps of nodes on the true objective, from the best mapping so far.

    For ``max-link`` it lowers a norm of all loads instead of the largest one alone: most moves leave the hottest link as
    it is, and the norm still sees them.
    """

    name = "links"
    finds = "mappings"
    refuses = takes(
        "load ceilings kinds tables -matrix | pairs trees reach +ceilings kinds tables -matrix"
        " | pairs trees reach kinds +tables -matrix",
        _two_routes,
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements slice by slice."""
        core = _start(problem, context)
        if core is None or context.should_stop() or problem.cores == 1 or problem.graph.m == 0:
            return
        state, seconds, sharp = build(problem, core), max(1e-3, context.time_left()), False
        state.heat[1:3] = max(float(state.loads.max()), 1e-300), WIDE
        reset(state)
        slices = Slices(context, core, value(state) if state.tables[1] <= 0.0 else np.inf)
        state.tables[2] = FIRST_PRICE * value(state) / max(1, int(state.entries.sum()))
        while not context.should_stop():
            left = context.time_left()
            share = 1.0 - left / seconds
            if state.by_load and share > SHARPEN and not sharp:
                sharp = True
                state.heat[2] = SHARP
                known, _ = context.incumbent()
                if known is not None:  # there is none while every mapping so far broke a ceiling
                    state.room.core[:] = slices.best[:] = known
            reset(state)
            begun = context.time_left()
            if state.tables[1] > 0.0:
                state.tables[2] *= DEARER
            elif state.heat[2] == SHARP and slices.low > 0:
                slices.low = min(slices.low, value(state))
            wanted = max(SLICE, left - begun)  # where the sums take long, as long again to search
            slices.run(search, state, cooled(HOT, COLD / HOT, share, GREEDY), begun, wanted)


def _start(problem: MappingProblem, context: Context) -> IntArray | None:
    """Return the best mapping so far or any legal one; for link loads of multicast messages after annealing their sum."""
    core = start(problem, context)
    total = replace(problem, objective="multicast-hops", ceilings=())
    if core is None or not problem.uses_links or problem.ceilings or _total(total) is not None:
        return core
    seconds = TOTAL * context.time_left()
    if seconds <= 0:
        return core
    context.offer(refine(total, core, context, seconds), "total load")
    return context.incumbent()[0]
