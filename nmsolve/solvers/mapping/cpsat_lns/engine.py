"""Engine ``cpsat-lns``: the exact model with all but a few nodes fixed, solved repeatedly.

A repair takes tens to hundreds of milliseconds, a hundred times what the dedicated moves need, but it holds for whatever the
exact model can state: several resources, nodes apart, route trees, any sum over pairs or messages. So it is for those.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.bandit import Bandit
from nmsolve.heuristics.mapping.first_fit import first_mapping
from nmsolve.hw.deltas import arcs
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.model import build
from nmsolve.solvers.mapping.exact.positions import hint_mapping
from nmsolve.solvers.mapping.exact.size import refuses_exact
from nmsolve.solvers.search.cpsat import solve
from nmsolve.solvers.search.exact import within
from nmsolve.solvers.search.listen import Outcome
from nmsolve.solvers.search.rows import Built, CpSatRows

#: Nodes set free at first, at least and at most.
FIRST, LEAST, MOST = 6, 3, 24
#: Most seconds for one repair; one that ends within the second number makes the next ones larger.
REPAIR, EASY = 2.0, 0.3
#: Ways to choose the nodes: linked by traffic, near each other on the machine, anywhere.
KINDS = ("linked", "near", "anywhere")
#: Repairs between two lines in the events.
REPORT = 50


class CpSatLns:
    """Improve the incumbent by exact repairs of a few nodes that a bandit chooses; no bounds."""

    name = "cpsat-lns"
    finds = "mappings"
    #: Cheaper moves do the same better with one node per core and a pairwise objective.
    refuses = takes("pairs axons -single | trees reach axons", refuses_exact)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Repair until told to stop; the incumbent is kept throughout."""
        core, _ = context.incumbent()
        if core is None:
            core = first_mapping(problem, context.seed, context.should_stop)
            if core is None:
                return
            context.offer(core, "first fit")
        if context.should_stop():
            return
        repairs = _Repairs(build(problem, break_symmetry=False), context)
        count = 0
        while not context.should_stop():
            repairs.once()
            count += 1
            if count % REPORT == 0:
                context.note(repairs.bandit.summary())
        context.note(repairs.bandit.summary())


class _Repairs:
    """The model, built once, and how the next nodes are chosen."""

    def __init__(self, built: Built, context: Context) -> None:
        self._built, self._context = built, context
        self._rng = np.random.default_rng([context.seed, 6])
        self._indptr, self._other = arcs(built.data.problem.graph)[:2]
        self._size = FIRST
        self.bandit = Bandit(KINDS, context.seed)

    def once(self) -> None:
        """Free some nodes of the incumbent, solve, offer what comes out."""
        context, data = self._context, self._built.data
        core, _ = context.incumbent()
        if core is None:
            return
        kind = self.bandit.choose()
        loose = self.choose(KINDS[kind], core)
        lead = context.time_left()
        end = self.repair(core, loose)
        gain = 0.0
        if end.core is not None:
            gain = (data.value(core) - data.value(end.core)) / data.scale
            if gain > 0:
                context.offer(end.core, f"repair, {KINDS[kind]}")
        self.bandit.learn(kind, max(0.0, gain), 1.0)
        if end.status != "OPTIMAL":
            self._size = max(LEAST, self._size - 1)
        elif lead - context.time_left() < EASY:
            self._size = min(MOST, self._size + 1)

    def repair(self, core: IntArray, loose: IntArray) -> Outcome:
        """Solve the model with every node outside ``loose`` held where ``core`` has it."""
        v, context = self._built.v, self._context
        rows = CpSatRows(self._built.model.clone())
        for u in np.setdiff1d(np.arange(self._built.data.n), loose).tolist():
            rows.add(v.x[u][int(core[u])] == 1)
        rows.model.clear_hints()
        hint_mapping(rows, self._built.data, v, core)
        return solve(
            replace(self._built, model=rows.model),
            **{**within(context), "seconds": min(REPAIR, context.time_left())},
        )

    def choose(self, kind: str, core: IntArray) -> IntArray:
        """Return different nodes to set free, as many as the last repairs suggest."""
        n, size = len(core), min(self._size, len(core))
        first = int(self._rng.integers(n))
        if kind == "anywhere":
            return self._rng.choice(n, size, replace=False)
        if kind == "near":
            far = self._built.data.dense[core[first], core] + self._rng.random(n)
            far[first] = -1
            out: IntArray = np.argsort(far)[:size]
            return out
        chosen = [first]
        for _ in range(4 * size):
            u = chosen[int(self._rng.integers(len(chosen)))]
            near = self._other[self._indptr[u] : self._indptr[u + 1]]
            v = int(self._rng.choice(near)) if len(near) else int(self._rng.integers(n))
            if v not in chosen:
                chosen.append(v)
            if len(chosen) == size:
                break
        return np.array(chosen)
