"""Method M1's network beside one that has learned nothing, and beside random placements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.suite import Row, Suite, placement
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.engine import SAMPLES, m1_model, placements
from nmsolve.learn.mapping.policy import first_arrays
from nmsolve.model.engine import Context, ScratchPlace

#: Nodes of a graph: as many as the processor that the model was trained for has cores.
NODES = 64


class Endless:
    """A context without limits, with a seed."""

    workers, memory, scratch, pace = 1, None, ScratchPlace(), 1.0

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def should_stop(self) -> bool:
        """Return False."""
        return False


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains of the trained network and of random placements; time is that of 256 placements, whatever ``suite`` says."""
    trained, size = m1_model()
    untrained = Checkpoint("m1", first_arrays(size, 0), {})
    for family, graph in suite.cases():
        problem = placement(family, NODES, graph)
        for seed in range(1, suite.seeds + 1):
            context: Context = Endless(seed)  # type: ignore[assignment]
            rng = np.random.default_rng(seed)
            costs = {
                name: [
                    objective_value(problem, core) for _, core in placements(problem, model, size, context)
                ]
                for name, model in (("learned", trained), ("untrained", untrained))
            }
            costs["random"] = [objective_value(problem, rng.permutation(NODES)) for _ in range(SAMPLES)]
            for name in ("learned", "random"):
                for setting, value, base in (
                    ("one shot", costs[name][0], costs["untrained"][0]),
                    (f"best of {SAMPLES}", min(costs[name]), min(costs["untrained"])),
                ):
                    yield Row(f"n = {NODES}, {setting}", family, graph, seed, name, 1 - value / base)
