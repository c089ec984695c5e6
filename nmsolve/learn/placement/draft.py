"""Placements of one problem by the policy: one shot, and as many draws as wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Stopped
from nmsolve.learn.placement.board import board_of
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.features import traffic_of
from nmsolve.learn.placement.network import Seen, refine
from nmsolve.learn.placement.starts import LAYOUTS, start_scores
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Deviation of the places where draws begin, in parts of the board, and of their scores, in parts of the largest one.
PLACES = 0.15
#: Up to this many nodes neighbours are summed by a dense product.
DENSE = 128


class Draft:
    """The network's view of a problem, made once.

    Parameters
    ----------
    should_stop : asked in every round, as those of large problems take long; :class:`Stopped` is raised once it says so
    """

    def __init__(
        self,
        problem: MappingProblem,
        arrays: Mapping[str, AnyArray],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._problem = problem
        self._arrays = {name: np.asarray(a, np.float64) for name, a in arrays.items()}
        self._traffic, self.board = traffic_of(problem.graph), board_of(problem)
        matrix = self._traffic.matrix.toarray() if problem.n <= DENSE else self._traffic.matrix
        b = self.board

        def near(a: AnyArray) -> AnyArray:
            if should_stop():
                raise Stopped
            return np.asarray(matrix @ a)

        self.seen = Seen(
            near, self._traffic.features, self._traffic.load[:, None], b.size[:, None], b.capacity, b.across,
            b.down, b.may_x, b.may_y,
        )  # fmt: skip

    def scores(self, number: int, rng: np.random.Generator | None = None) -> tuple[FloatArray, FloatArray]:
        """Return scores (n, cols) and (n, rows) of the draw ``number``, which decides the layout; without ``rng`` its middle."""
        found = refine(self._arrays, self.seen, *self.start(number, rng))
        return found.x, found.y

    def start(self, number: int, rng: np.random.Generator | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the scores that the rounds of a draw begin with."""
        noise = None if rng is None else rng.normal(0.0, PLACES, (2, self._problem.n))
        return start_scores(self._traffic.axes, self.board, LAYOUTS[number % len(LAYOUTS)], noise)

    def drawn(self, number: int, seed: int) -> IntArray:
        """Return (n,) cores of the draw ``number``: every layout comes once without noise, the first one first."""
        return self.placement(
            number, None if number < len(LAYOUTS) else np.random.default_rng([seed, number])
        )

    def placement(self, number: int, rng: np.random.Generator | None = None) -> IntArray:
        """Return (n,) cores of the draw ``number``; not necessarily legal with several resources, sizes or side constraints."""
        return decoded(self._problem, *self.scores(number, rng), self.board.capacity)
