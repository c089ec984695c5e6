"""Engines that place nodes by a trained policy: offers are repaired; without a usable model a first fit runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.first_fit import FirstFit
from nmsolve.heuristics.mapping.published.m2.topology import Stopped
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class Placer(ABC):
    """Offers the placements of a policy, each better than those before; what breaks a rule is repaired."""

    finds = "mappings"

    def __init__(self) -> None:
        self._said = False

    @abstractmethod
    def wishes(self, problem: MappingProblem, context: Context) -> Iterator[tuple[str, IntArray]]:
        """Return what the policy wishes, (n,) cores, not necessarily legal, and where each is from; ends with :class:`Stopped`.

        Raises
        ------
        InputError : the model is missing or damaged; at once, not when the first is asked for
        """

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Place; without a usable model file say so, once, and offer a first fit instead."""
        try:
            wishes = self.wishes(problem, context)
        except InputError as error:
            if not self._said:
                self._said = True
                context.note(f"no policy, a first fit instead: {error}")
                FirstFit().run(problem, context)
            return
        best = float("inf")
        try:
            for label, wish in wishes:
                legal = repair(problem, wish)
                if legal is None:
                    continue
                value = objective_value(problem, legal)
                if value < best:
                    best = value
                    context.offer(legal, label + ("" if np.array_equal(legal, wish) else ", repaired"))
                if context.should_stop():
                    return
        except Stopped:
            return
