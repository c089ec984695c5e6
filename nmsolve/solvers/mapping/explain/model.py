"""Whether a mapping obeys some of the limits of a problem: first fit, then CP-SAT with every limit behind a switch, then search.

The model counts nodes of classes (:mod:`nmsolve.solvers.mapping.explain.rows`). Where a class has nodes of different sizes,
what it takes of a core is a variable between ``least[k,r] y[k,p]`` and ``most[k,r] y[k,p]``, and these add up to the class's
total: a relaxation, whose infeasibility is still a proof. With tables of axons or routers every node is a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.first_fit import first_mapping
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.limit import Limit
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.limits import restricted
from nmsolve.model.mapping.problem import TABLE_ENTRIES, MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.explain.rows import (
    Classes,
    add_limits,
    by_node,
    classes_of,
    forbid_tables,
    place_variables,
)
from nmsolve.solvers.search.conflict import Answer
from nmsolve.solvers.search.cpsat import decide, new_solver

#: Part of the time for a first mapping, where that takes more than a moment.
REPAIR_PART = 0.2
#: The same for CP-SAT where an engine of ``map`` is asked after it.
MODEL_PART = 0.5


def has_mapping(
    problem: MappingProblem, limits: Sequence[Limit], seconds: float, seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Answer[IntArray]:  # fmt: skip
    """Decide in about ``seconds`` (wall) whether a mapping (n,) obeys these limits of ``problem``.

    First fit is asked before CP-SAT, unless counting rules a mapping out: one found is an answer at any size. Where routers'
    tables are limited, the engine ``links`` is asked last.
    """
    alone = restricted(problem, limits)
    if not alone.machine.usable.any():
        return Answer("infeasible", None, tuple(x for x in limits if x.kind in ("faulty", "taken")))
    hopeless = bool(explain_misfit(alone))  # by counting; CP-SAT then says which limits it takes
    if not hopeless:
        merged = merge_together(alone)
        end = clock.now() + REPAIR_PART * seconds
        found = first_mapping(merged.reduced, seed, lambda: clock.now() >= end or should_stop())
        if found is not None and not check_mapping(alone, merged.lift(found)):
            return Answer("feasible", merged.lift(found))
    tables = alone.table_limit is not None and not hopeless
    classes = classes_of(alone, alone.sizes, np.arange(alone.n)) if by_node(alone) else None
    classes = classes or classes_of(
        alone, alone.sizes, None if alone.kinds is None else alone.kinds.of.astype(np.int64)
    )
    answer: Answer[IntArray] = Answer("unknown")
    begun = clock.now()
    if classes is not None and seconds > 0:
        part = MODEL_PART if tables else 1.0
        answer = _solve(alone, limits, classes, begun + part * seconds, seed, should_stop)
    if tables and answer.status == "unknown" and not should_stop():
        answer = _searched(alone, begun + seconds - clock.now(), seed)
    return Answer("infeasible", None, tuple(limits)) if hopeless and not answer.needed else answer


def _searched(problem: MappingProblem, seconds: float, seed: int) -> Answer[IntArray]:
    """Ask the engine of ``map`` that keeps to routers' tables."""
    from nmsolve.solvers.mapping.task import MappingTask
    from nmsolve.solvers.run import Options, solve

    if seconds <= 0:
        return Answer("unknown")
    aim = "multicast-hops" if problem.graph.multicast.any() else "hops"
    options = Options(time_limit=seconds, seed=seed, engines=("links",), enough=np.inf)
    try:
        found = solve(MappingTask(replace(problem, objective=aim)), options).solution
    except InputError:  # it refuses what else the problem has
        return Answer("unknown")
    legal = found is not None and not check_mapping(problem, found)
    return Answer("feasible", found) if legal else Answer("unknown")


def _solve(
    problem: MappingProblem, limits: Sequence[Limit], classes: Classes, end: float, seed: int,
    should_stop: Callable[[], bool],
) -> Answer[IntArray]:  # fmt: skip
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    places = place_variables(model, problem, classes)
    switch = {x: model.new_bool_var(x.words) for x in limits}
    add_limits(places, switch)
    model.add_assumptions(list(switch.values()))
    table = next((on for x, on in switch.items() if x.name == TABLE_ENTRIES), None)
    while True:
        solver = new_solver(end - clock.now(), seed=seed)
        status = decide(solver, model, should_stop)
        if status == "INFEASIBLE":
            named = set(solver.sufficient_assumptions_for_infeasibility())
            return Answer("infeasible", None, tuple(x for x, on in switch.items() if on.index in named))
        if status not in ("OPTIMAL", "FEASIBLE"):
            return Answer("unknown")
        core = classes.expand(places.values(solver))
        broken = check_mapping(problem, core)
        if not broken:
            return Answer("feasible", core)
        # Sizes were forgotten, or a merged class was split in a way that does not fit; or routes turn and branch in full routers.
        if places.by_node is None or any(v.rule != TABLE_ENTRIES for v in broken) or clock.now() >= end:
            return Answer("unknown")
        forbid_tables(places, core, table)
