"""Nonrenewable resources: budgets that the modes chosen share, whenever they run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nmsolve.model.types import AnyArray, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Budgets:
    """B nonrenewable resources (money, material): all modes chosen together take no more of each than there is.

    Attributes
    ----------
    names : (B,)
    amount : (B,) what there is of each
    use : (M, B) what each mode takes; (0, 0) where there are no budgets
    """

    names: tuple[str, ...] = ()
    amount: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    use: IntArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    @property
    def count(self) -> int:
        """B."""
        return len(self.names)

    def spent(self, mode: IntArray) -> IntArray:
        """(B,) what the modes (P,) take together."""
        spent: IntArray = self.use[mode].sum(axis=0) if self.count else self.amount
        return spent

    def affordable(self, first: IntArray) -> BoolArray:
        """(M,) whether a mode leaves enough for all other processes, each in the modes that take least of every budget.

        ``first`` : (P + 1,) process ``p`` has modes ``first[p] .. first[p + 1] - 1``
        """
        if not self.count:
            return np.ones(int(first[-1]), bool)
        least = np.minimum.reduceat(self.use, first[:-1], axis=0)
        rest = least.sum(axis=0) - np.repeat(least, np.diff(first), axis=0)
        fine: BoolArray = (self.use + rest <= self.amount).all(axis=1)
        return fine

    def of_modes(self, chosen: AnyArray) -> Budgets:
        """Return the same budgets for other modes: those with these numbers."""
        return replace(self, use=self.use[chosen]) if self.count else self

    def fit(self, modes: int) -> bool:
        """Return whether the arrays are those of ``modes`` modes, and hold numbers >= 0 whose sums stay within 64 bits."""
        if not self.count:
            return not self.amount.size and not self.use.size
        fine = self.amount.shape == (self.count,) and self.use.shape == (modes, self.count)
        fine = fine and len(set(self.names)) == self.count and bool((self.amount >= 0).all())
        return fine and bool((self.use >= 0).all()) and float(self.use.sum(dtype=float)) < 2.0**60
