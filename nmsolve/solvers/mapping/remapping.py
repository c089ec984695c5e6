"""Continuing from a mapping that is no longer legal: few moves repair it, within a migration budget if there is one."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.axons.repair import within_axons
from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.remap.repair import stay_put
from nmsolve.model import clock
from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.mapping.limits import limits_of
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray


def repaired_start(problem: MappingProblem, wish: IntArray, seconds: float) -> IntArray | None:
    """Return a feasible mapping close to ``wish`` (n,), or None if none was found.

    First everybody who may stay does; where that breaks a migration budget, the fewest moves are found by CP-SAT.

    Parameters
    ----------
    problem : without ``together`` constraints
    seconds : most wall time for CP-SAT, and for making room in axon tables

    Raises
    ------
    DoesNotFitError : every mapping moves more nodes than the migration budget allows
    """
    core = stay_put(problem, wish)
    if core is None:
        core = repair(problem, wish)
    if core is not None and problem.axons is not None:
        end = clock.now() + seconds
        core = within_axons(problem, core, 0, lambda: clock.now() >= end)
    migration = problem.migration
    if migration is None or (core is not None and migration.moved(core) <= migration.budget):
        return core
    best, least = fewest_moves(problem, core, seconds)
    if least > migration.budget:
        raise DoesNotFitError(
            f"at least {least} nodes must leave their old core, the migration budget is {migration.budget}",
            f"{problem.graph.name} on {problem.machine.name}",
        )
    return best if best is not None and migration.moved(best) <= migration.budget else None


def fewest_moves(
    problem: MappingProblem, start: IntArray | None, seconds: float
) -> tuple[IntArray | None, int]:
    """Return ``(core, least)``: a mapping that moves few nodes from the reference, and a number that none can undercut.

    A model over classes of nodes that are alike and were on the same core (:mod:`nmsolve.solvers.mapping.explain.rows`).
    ``core`` is None if no mapping was found; ``least`` is 0 where the model would be too large.
    """
    from ortools.sat.python import cp_model

    from nmsolve.solvers.mapping.explain.rows import add_limits, classes_of, place_variables
    from nmsolve.solvers.search.cpsat import new_solver

    classes = classes_of(problem, problem.sizes, _origin(problem))
    if classes is None or seconds <= 0:
        return start, 0
    model = cp_model.CpModel()
    places = place_variables(model, problem, classes)
    add_limits(places, dict.fromkeys(limits_of(problem), model.new_constant(1)))
    assert problem.migration is not None
    indptr, home, count = problem.migration.homes
    stay = [
        int(count[j]) * places.y[k][int(home[j])]
        for k, u in enumerate(classes.first.tolist())
        for j in range(indptr[u], indptr[u + 1])
    ]
    model.minimize(len(problem.migration.reference) - cp_model.LinearExpr.sum(stay))
    solver = new_solver(seconds)
    status = solver.status_name(solver.solve(model))
    if status not in ("OPTIMAL", "FEASIBLE"):
        return start, 0
    core = classes.expand(places.values(solver))
    least = int(np.ceil(solver.best_objective_bound - 1e-6))
    return (start if _illegal(problem, core) else core), least


def _illegal(problem: MappingProblem, core: IntArray) -> bool:
    return any(v.rule != "migration" for v in check_mapping(problem, core))


def _origin(problem: MappingProblem) -> IntArray:
    """Return (n,) a number for where the members of every node were: equal only if that is equal."""
    assert problem.migration is not None
    indptr, home, count = problem.migration.homes
    tag = home[indptr[:-1]] + problem.cores * count[indptr[:-1]]
    several = np.flatnonzero(np.diff(indptr) > 1)
    tag[several] = problem.cores * (int(count.max()) + 1) + several
    return tag
