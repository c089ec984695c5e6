"""Engine ``policy-lns``: exact repairs of nodes that the placement policy would put elsewhere, beside the other choices.

The rounds of the policy begin at the incumbent. Nodes whose expected column and row end far from where they are, and their
neighbours, are set free together. The bandit of ``cpsat-lns`` decides how often.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Stopped
from nmsolve.hw.deltas import arcs
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.placement.draft import Draft
from nmsolve.learn.placement.engine import policy_model
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.cpsat_lns.engine import CpSatLns, Suggests
from nmsolve.solvers.mapping.exact.size import refuses_exact

#: Lines that every node counts as moved at least, so that all have a chance.
LEAST = 0.05
#: Chance that the next node is drawn from all nodes and not the neighbour that moves farthest.
ANYWHERE = 0.3


class PolicyLns(CpSatLns):
    """``cpsat-lns`` with one more way to choose nodes; without a usable model the same as that."""

    name = "policy-lns"
    refuses = takes("pairs axons -single -matrix | trees reach axons -matrix", refuses_exact)

    def suggests(self, problem: MappingProblem, context: Context) -> Suggests | None:
        """Return the policy's choice, or None, with a note, if its file is missing or damaged."""
        try:
            return Moved(problem, policy_model()[0], context)
        except InputError as error:
            context.note(f"no policy, other choices only: {error}")
            return None


class Moved:
    """Nodes that the policy would move, with their neighbours."""

    def __init__(self, problem: MappingProblem, model: Checkpoint, context: Context) -> None:
        self._draft = Draft(problem, model.arrays, context.should_stop)
        self._indptr, self._other = arcs(problem.graph)[:2]
        self._of: IntArray | None = None
        self._far: FloatArray = np.zeros(problem.n)

    def __call__(self, core: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Return ``size`` different nodes."""
        if self._of is None or not np.array_equal(self._of, core):
            try:
                self._far = self._draft.moved(core)
            except Stopped:
                return rng.choice(len(core), size, replace=False)
            self._of = core.copy()
        weight = self._far + LEAST
        chosen = [int(rng.choice(len(core), p=weight / weight.sum()))]
        while len(chosen) < size:
            u = chosen[int(rng.integers(len(chosen)))]
            near = np.setdiff1d(self._other[self._indptr[u] : self._indptr[u + 1]], chosen)
            if len(near) and rng.random() >= ANYWHERE:
                chosen.append(int(near[np.argmax(self._far[near] + 1e-3 * rng.random(len(near)))]))
            else:
                left = weight.copy()
                left[chosen] = 0.0
                chosen.append(int(rng.choice(len(core), p=left / left.sum())))
        return np.array(chosen)
