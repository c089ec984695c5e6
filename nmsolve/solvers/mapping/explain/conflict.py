"""The limits of a mapping problem, for the loop that looks for a smallest conflict (:mod:`nmsolve.solvers.search.conflict`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.explain.limits import limits_of
from nmsolve.solvers.mapping.explain.model import has_mapping
from nmsolve.solvers.mapping.explain.words import reason
from nmsolve.solvers.mapping.recheck.conflict import broken_limit, impossible
from nmsolve.solvers.search import conflict
from nmsolve.solvers.search.conflict import Answer, Explanation, Limit, Limits


class MappingLimits(Limits[IntArray]):
    """Solutions are (n,) core numbers. A migration budget is no limit here."""

    def __init__(self, problem: MappingProblem) -> None:
        self.problem, self.every = problem, limits_of(problem)

    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[IntArray]:
        """First fit, then CP-SAT, which is given every limit as an assumption and names some that suffice for its proof."""
        return has_mapping(self.problem, limits, seconds, seed, should_stop)

    def reason(self, limits: tuple[Limit, ...]) -> str:
        """Places or capacity against what needs them."""
        return reason(self.problem, limits)

    def written(self, solution: IntArray) -> dict[str, Any]:
        """The core of every node."""
        return {"core": solution.tolist()}

    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """By :func:`nmsolve.model.mapping.solution.check_mapping`."""
        return broken_limit(self.problem, limits, entry)

    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """By a model with one Boolean per node and core."""
        return impossible(self.problem, limits, seconds)


def explain(problem: MappingProblem, seconds: float = 60.0, seed: int = 0) -> Explanation[IntArray]:
    """:func:`nmsolve.solvers.search.conflict.smallest_conflict` of a mapping problem."""
    return conflict.smallest_conflict(MappingLimits(problem), seconds, seed)


def recheck_conflict(problem: MappingProblem, certificate: Mapping[str, Any], seconds: float = 30.0) -> bool:
    """:func:`nmsolve.solvers.search.conflict.recheck_conflict` of a mapping problem."""
    return conflict.recheck_conflict(MappingLimits(problem), certificate, seconds)
