"""A net state with what a kernel call needs."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.nets.anneal import STRICT, anneal
from nmsolve.heuristics.mapping.nets.changes import new_ramps
from nmsolve.heuristics.mapping.nets.model import build
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class Search:
    """A state with everything a kernel call needs."""

    def __init__(self, problem: MappingProblem, core: IntArray, seed: int) -> None:
        self.state, self.rng = build(problem, core), new_rng(seed)
        self.ramps, self.change = new_ramps(self.state), np.zeros(problem.cores)
        self.tally = np.zeros(3, np.int64)

    def anneal(self, heat: float, work: int, price: float = STRICT) -> float:
        """One kernel call; the change of the objective."""
        change: float = anneal(self.state, self.ramps, self.change, heat, work, self.rng, self.tally, price)
        return change

    @property
    def excess(self) -> int:
        """Entries of axon tables that are too many."""
        return int(self.state.axons.excess[0]) if self.state.axons.on else 0
