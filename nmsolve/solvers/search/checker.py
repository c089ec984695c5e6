"""All that the search needs to know of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nmsolve.model.bound import Ceilings
from nmsolve.model.types import IntArray


class Checker(Protocol):
    """Checks and scores solutions of one problem. Solutions are (size,) int64 arrays in the engines' terms.

    A pickled copy goes to every child process, so that an engine there knows at once what its offer is worth. The parent
    checks every offer again.
    """

    @property
    def problem(self) -> Any:
        """What engines get, often a reduction of the problem the user stated."""

    @property
    def size(self) -> int:
        """Length of a solution of ``problem``."""

    @property
    def lattice(self) -> float:
        """All objective values are multiples of it; 0 where they are not."""

    def lift(self, solution: IntArray) -> IntArray:
        """Return the solution (lifted size,) of the problem as the user stated it, from a ``solution`` (size,) of ``problem``."""

    def complaint(self, lifted: IntArray) -> str | None:
        """Say why a solution (lifted size,) is infeasible, or None. Must accept wrong shapes and values."""

    def score(self, lifted: IntArray) -> float:
        """Return the objective of a feasible solution (lifted size,), recomputed by the evaluator; never below 0."""


class AsStated:
    """Part of a checker: engines get the problem as the user stated it, and all values of its objective are whole numbers."""

    lattice: float = 1.0

    def lift(self, solution: IntArray) -> IntArray:
        """Return ``solution`` (size,) as it is."""
        return solution


def over_ceiling(ceilings: Ceilings, values: Callable[[], Mapping[str, float]]) -> str | None:
    """Return which ceiling on another objective a solution with these ``values`` exceeds, or None."""
    known = values() if ceilings else {}
    return next(
        (f"{k} is {known[k]:,}, the limit is {most:,.0f}" for k, most in ceilings if known[k] > most), None
    )
