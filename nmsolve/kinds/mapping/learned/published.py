"""Method M1's network beside one that has learned nothing, and beside random placements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.suite import Row, Suite, placement
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.engine import ROUNDS, m1_model, placements
from nmsolve.learn.mapping.policy import first_arrays
from nmsolve.model.engine import Context, ScratchPlace

#: Nodes of a graph: as many as those of training have.
NODES = 64
#: Labels of the most probable placements, and of where they begin.
ROUND = ("start", "most probable")


class Endless:
    """A context without limits, with a seed."""

    workers, memory, scratch, pace = 1, None, ScratchPlace(), 1.0

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def should_stop(self) -> bool:
        """Return False."""
        return False


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains of the trained network and of random placements; time is that of a whole run, whatever ``suite`` says."""
    trained, size = m1_model()
    models = {"learned": trained, "untrained": Checkpoint("m1", first_arrays(size, 0), {})}
    for family, graph in suite.cases():
        problem = placement(family, NODES, graph)
        for seed in range(1, suite.seeds + 1):
            context: Context = Endless(seed)  # type: ignore[assignment]
            rng = np.random.default_rng(seed)
            costs: dict[str, list[tuple[str, float]]] = {
                name: [
                    (label, objective_value(problem, core))
                    for label, core in placements(problem, model, size, context)
                ]
                for name, model in models.items()
            }
            costs["random"] = [
                (label, objective_value(problem, rng.permutation(NODES))) for label, _ in costs["untrained"]
            ]
            for setting, labels in ((f"{ROUNDS} rounds", ROUND), ("a whole run", (*ROUND, "drawn"))):
                best = {
                    name: min(v for label, v in found if label in labels) for name, found in costs.items()
                }
                for name in ("learned", "random"):
                    gain = 1 - best[name] / best["untrained"]
                    yield Row(f"n = {NODES}, {setting}", family, graph, seed, name, gain)
