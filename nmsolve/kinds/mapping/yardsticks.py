"""What simple methods make of the problem of a mapping in a moment, each in the same time: ``rules`` of its report."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.parts import RulePart
from nmsolve.model.bound import Result, gap
from nmsolve.model.errors import NmsolveError
from nmsolve.model.stop import Reserve

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: Engines: nodes in the order of the file, the first core that has room, and the published multilevel mapping (M2).
ENGINES = ("in-order", "first-fit", "m2")
#: What they may take of a time limit in seconds, and the least limit with a table.
TAKEN, LEAST = Reserve(0.05, 1.0), 3.0


def seconds_for(o: MapOptions, problem: MappingProblem, limit: float) -> float:
    """Return seconds of a ``limit`` for the table; 0 where there is none.

    There is one of a run in automatic mode that minimises one objective, with the machine's own routes, of a graph in memory.
    """
    own = o.engines is None and o.method is None and o.pareto is None and o.route == "given"
    plain = problem.migration is None and not problem.ceilings and not problem.graph.on_disk
    return TAKEN.of(limit) if own and plain and limit >= LEAST else 0.0


def yardsticks(
    problem: MappingProblem, result: Result[IntArray], seconds: float, seed: int
) -> list[RulePart]:
    """Return what a random mapping and each of :data:`ENGINES` reach in equal parts of ``seconds``."""
    from nmsolve.hw.scores import objective_value
    from nmsolve.solvers.mapping.api import solve

    def random() -> float | None:
        from nmsolve.heuristics.mapping.common.repair import repair

        usable = np.flatnonzero(problem.machine.usable)
        core = repair(problem, np.random.default_rng(seed).choice(usable, problem.n))
        return None if core is None else objective_value(problem, core)

    def by_engine(name: str) -> Callable[[], float | None]:
        part = seconds / len(ENGINES)
        return lambda: solve(problem, engines=[name], time_limit=part, seed=seed).objective

    tried = {"random": random, **{name: by_engine(name) for name in ENGINES}}
    return [_part(name, run, result) for name, run in tried.items()]


def _part(name: str, run: Callable[[], float | None], result: Result[IntArray]) -> RulePart:
    try:
        value, status = run(), "done"
    except NmsolveError as error:
        value, status = None, str(error)
    if value is None or not math.isfinite(value):
        return RulePart(name, None, None, None, "no mapping" if status == "done" else status)
    loss = value / result.objective - 1.0 if result.objective else None
    return RulePart(name, value, gap(value, result.bound), loss, status)
