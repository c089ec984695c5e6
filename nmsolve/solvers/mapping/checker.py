"""How the search judges mappings: lift, check, rescore."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nmsolve.hw.cost import core_distance, whole_costs
from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.graph import MOST_EDGES
from nmsolve.model.lookup import named
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import TogetherReduction
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.pairs import pair_form


class MappingChecker:
    """Implements :class:`nmsolve.solvers.search.checker.Checker`: engines see the problem without ``together``."""

    def __init__(self, reduction: TogetherReduction) -> None:
        self.reduction = reduction
        self.problem: MappingProblem = reduction.reduced
        self.size = self.problem.n

    @cached_property
    def lattice(self) -> float:
        """All objective values are multiples of it: 0 where weights or distances are not whole numbers."""
        aim = self.problem.aim
        if aim.formula:
            return float(named(aim.lattice)(self.problem)) if aim.lattice else 0.0
        graph = self.problem.graph
        if not self.problem.uses_nets and not graph.on_disk and graph.m <= MOST_EDGES:
            return pair_form(self.problem).lattice
        whole = whole_costs(self.problem, core_distance(self.problem))
        return 1.0 if whole else 0.0

    def lift(self, solution: IntArray) -> IntArray:
        """Return the core of every node (n,) from the core of every merged node."""
        return self.reduction.lift(solution)

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first rule that the mapping (n,) breaks, and how many more; None if legal."""
        broken = check_mapping(self.reduction.original, lifted)
        if not broken:
            return broken_ceiling(self.reduction.original, lifted)
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return broken[0].text + more

    def score(self, lifted: IntArray) -> float:
        """Return the objective of the mapping (n,), by the evaluator."""
        return objective_value(self.reduction.original, np.ascontiguousarray(lifted))
