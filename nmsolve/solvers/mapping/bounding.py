"""Raise the bound of a mapping that is given and stays as it is (``nmsolve gap``)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from nmsolve.hw.scores import objective_value, score
from nmsolve.model.bound import Bound, Result, gap
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.auto import EXACT_CORES, EXACT_NODES, least_seconds, outdone
from nmsolve.solvers.mapping.certificates import check_bound
from nmsolve.solvers.mapping.referee import MappingReferee
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine
from nmsolve.solvers.search.incumbent import Observer

#: A bound that needs more than this part of the time before it says anything is not begun.
MOST = 0.5
#: Part of the time after which no more than one of the bounds known before is re-checked.
KNOWN = 0.3


@dataclass(frozen=True)
class Bounded:
    """What bounding found.

    Attributes
    ----------
    result : about the given mapping, with the best bounds known
    better : (n,) a mapping with a lower objective that an exact engine met on its way, or None
    """

    result: Result
    better: IntArray | None


def bounding(
    problem: MappingProblem,
    core: IntArray,
    *,
    time_limit: float = 300.0,
    started: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    engines: Sequence[str] | None = None,
    memory: int | None = None,
    observers: Sequence[Observer] = (),
    known: Sequence[Bound] = (),
) -> Bounded:
    """Run the engines that prove bounds, the mapping being known from the start.

    Parameters
    ----------
    core : (n,) the mapping; it must keep every rule of ``problem``
    engines : names of the engines to run; by default those of :func:`bound_engines`
    known : bounds from before; those whose certificates can be recomputed count, the others are dropped

    Raises
    ------
    InputError : the mapping breaks a rule, or an argument is wrong (see :func:`nmsolve.solvers.mapping.api.solve`)
    """
    core = np.ascontiguousarray(core, np.int64)
    require_feasible(problem, core)
    reduction = merge_together(problem)
    names = bound_engines(reduction.reduced, time_limit) if engines is None else engines
    if not names:
        raise InputError("no engine proves bounds for it", problem.graph.name, "a smaller machine")
    begun = time.monotonic() if started is None else started
    trusted = _recomputed(
        problem, core, known, begun + KNOWN * time_limit
    )  # before the search: its time counts, too
    found = solve(
        problem,
        time_limit=time_limit,
        started=begun,
        gap=gap,
        seed=seed,
        workers=workers,
        engines=names,
        warm_start=core,
        memory=memory,
        observers=observers,
    )
    return _about(problem, core, found, trusted)


def require_feasible(problem: MappingProblem, core: IntArray) -> None:
    """Refuse a mapping that breaks a rule.

    Raises
    ------
    InputError : naming the first broken rule
    """
    complaint = MappingReferee(merge_together(problem)).complaint(core)
    if complaint is not None:
        raise InputError(
            f"the mapping breaks a rule: {complaint}",
            problem.graph.name,
            "a feasible mapping, or other limits (--balance)",
        )


def bound_engines(problem: MappingProblem, seconds: float) -> list[str]:
    """Names of the engines that may raise the bound of ``problem`` within so many seconds: the bounds as registered, then
    the exact engines where they have a chance to prove something (as in automatic mode)."""
    small = problem.n <= EXACT_NODES and problem.cores <= EXACT_CORES
    wanted = ("bounds", "both") if small else ("bounds",)
    made = [(name, make_engine(name)) for name in REGISTRY]
    named = [
        (wanted.index(engine.finds), name)
        for name, engine in made
        if engine.finds in wanted
        and engine.refuses(problem) is None
        and outdone(name, problem) is None
        and least_seconds(name, problem) <= MOST * seconds
    ]
    return [name for _, name in sorted(named, key=itemgetter(0))]


def _recomputed(problem: MappingProblem, core: IntArray, known: Sequence[Bound], end: float) -> list[Bound]:
    """Those of the bounds known before that their certificates prove, the best first; after ``end`` (``time.monotonic()``) only
    until there is one."""
    out: list[Bound] = []
    for bound in sorted(known, key=lambda b: (b.scope != "full", -b.value)):
        if out and time.monotonic() >= end:
            break
        check = check_bound(problem, bound, core)
        if check.ok and not check.trusted:
            out.append(bound)
    return out


def _about(problem: MappingProblem, core: IntArray, found: Result, known: Sequence[Bound]) -> Bounded:
    """The result of the search as a statement about the given mapping; of every method the better bound stays."""
    objective = objective_value(problem, core)
    better = found.core if found.objective is not None and found.objective < objective else None
    best: dict[tuple[str, str], Bound] = {}
    # where a better mapping was met, bounds of its placement are about its parts, not about these
    fresh = [b for b in found.bounds if better is None or b.scope != "placement"]
    for b in (*known, *fresh):
        key = (b.method, b.scope)
        if key not in best or b.value > best[key].value:
            best[key] = b
    full = [b.value for b in best.values() if b.scope == "full"]
    full += [] if found.bound is None else [found.bound]
    placed = max((b.value for b in best.values() if b.scope == "placement"), default=None)
    bound = min(max(full), objective) if full else None
    result = replace(
        found,
        status="optimal" if bound is not None and bound >= objective else "feasible",
        solution=core,
        objective=objective,
        bound=bound,
        gap=gap(objective, bound),
        bounds=tuple(best.values()),
        placement_bound=placed,
        placement_gap=gap(objective, placed),
        scores=score(problem.graph, problem.machine, core),
    )
    return Bounded(result, better)
