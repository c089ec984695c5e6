"""The engine ``reward``: annealing on the reward of method M1."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.metropolis import Slices, cooled
from nmsolve.heuristics.mapping.common.start import start
from nmsolve.heuristics.mapping.reward.moves import changes, reset, search, value
from nmsolve.heuristics.mapping.reward.state import build
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem

#: First and last temperature, as parts of the typical change (drawn as an exponential).
HOT, COLD = 0.3, 0.01
#: Moves that tell what a typical change is.
SAMPLES = 300


class Reward:
    """Moves and swaps of nodes on the true objective, from the best mapping so far."""

    name = "reward"
    finds = "mappings"
    refuses = takes("reward kinds")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Run one cooling schedule over the time left; offers improvements slice by slice."""
        core = start(problem, context)
        if core is None or context.should_stop() or problem.cores == 1 or problem.graph.m == 0:
            return
        state = build(problem, core)
        reset(state)
        slices, seconds = Slices(context, core, value(state)), max(1e-3, context.time_left())
        found = changes(state, SAMPLES, slices.rng)
        typical = float(np.median(found[found > 0])) if (found > 0).any() else 0.0
        while not context.should_stop():
            begun = context.time_left()
            reset(state)
            slices.run(search, state, cooled(typical * HOT, COLD / HOT, 1.0 - begun / seconds), begun)
