"""Th1 and Th2 of method M3 (M3.9): when an operator is accepted by a unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from nmsolve.model.errors import InputError


@dataclass(frozen=True)
class Thresholds:
    """Least benefit and most cost of an operator on a unit, in the objective's unit; None: not asked for. At least one is stated.

    The three variants of the rule: benefit alone, cost alone, both.
    """

    benefit: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        stated = [x for x in (self.benefit, self.cost) if x is not None]
        if not stated or not all(isfinite(x) for x in stated):
            raise InputError(
                f"benefit {self.benefit}, cost {self.cost}", "threshold", "finite numbers, at least one"
            )

    def passes(self, benefit: float, cost: float) -> bool:
        """Return whether an operator is accepted."""
        return (self.benefit is None or benefit >= self.benefit) and (self.cost is None or cost <= self.cost)

    def __str__(self) -> str:
        parts = [("P >= ", self.benefit), ("C <= ", self.cost)]
        return " and ".join(f"{word}{value:.4g}" for word, value in parts if value is not None)
