"""The search behind ``nmsolve map`` and ``nmsolve.map``: by one objective or several in order, with or without routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.in_order import tell_stage
from nmsolve.kinds.mapping.given import CHOSEN, Given, MapSearch
from nmsolve.model.engine import ScratchPlace
from nmsolve.report.figures import number, percent
from nmsolve.solvers.mapping.multi_objective import MappingObjectives, objective_names
from nmsolve.solvers.multi_objective import better_start

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.kinds.run import Searched
    from nmsolve.model.bound import Result
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray


def search_map(run: MapSearch) -> Searched:
    """Find the best mapping by the objectives of the options, in their order; joint routes and those in turns with it."""
    names = objective_names(run.o.objective or run.problem.objective)
    if run.o.route == "joint":
        return _with_free_routes(run)
    if len(names) > 1:
        return _in_order(run, names)
    if run.o.route == CHOSEN and names == ("max-link",) and not run.problem.ceilings and run.o.method is None:
        return _in_turns(run)
    return _once(run)


def _once(run: MapSearch) -> Searched:
    """Minimise one objective."""
    from nmsolve.solvers.mapping.api import solve

    o, how = run.o, {**run.how, "scratch": scratch_of(run.o), "time_limit": run.mapping_seconds()}
    result = solve(run.problem, warm_start=run.first, mip_solver=o.mip_solver, **how)
    return run.found(result)


def scratch_of(o: MapOptions) -> ScratchPlace:
    """Return where engines may put what does not fit in memory."""
    return ScratchPlace(o.scratch, o.resume)


def objectives_from(given: Given, how: Mapping[str, Any], first: IntArray | None) -> MappingObjectives:
    """Return the objectives of a problem; every stage begins with ``first`` (n,) or, if it is better, with the stage before.

    ``how`` : the options of every search, but for its time
    """
    from nmsolve.hw.scores import objective_value
    from nmsolve.solvers.mapping.api import solve

    o, names = given.options, ("gap", "seed", "workers", "engines", "memory", "observers", "cluster")
    told: dict[str, Any] = {name: how[name] for name in names if name in how}

    def value(problem: MappingProblem, name: str, core: IntArray) -> float:
        return objective_value(replace(problem, objective=name, ceilings=()), core)

    def stage(problem: MappingProblem, seconds: float, start: IntArray | None) -> Result[IntArray]:
        best = first
        if start is not None:
            best = better_start(
                (start, first),
                lambda core: all(value(problem, name, core) <= most for name, most in problem.ceilings),
                partial(value, problem, problem.objective),
            )
        keep = how.get("keep") if start is None else None  # of several in order the first is kept on the way
        return solve(
            problem, time_limit=seconds, warm_start=best, mip_solver=o.mip_solver, scratch=scratch_of(o), keep=keep, **told
        )  # fmt: skip

    return MappingObjectives(given.problem, stage)


def _in_order(run: MapSearch, names: Sequence[str]) -> Searched:
    """Minimise several objectives in order; what is found is about the last one."""
    from nmsolve.solvers.multi_objective import lexicographic

    objectives = objectives_from(run.given, run.how, run.first)
    left = run.clock.left(run.mapping_seconds())
    *earlier, (stage, result) = lexicographic(objectives, names, left, partial(tell_stage, say=run.say))
    before = [
        {"objective": s.objective, "value": r.objective, "bound": r.bound, "status": r.status}
        for s, r in earlier
    ]
    words = [
        f"First {s.objective} {number(r.objective)} ({r.status}), then {stage.objective}." for s, r in earlier
    ]
    found = run.found(result, *words, objectives=list(names), before=before)
    last = replace(run.problem, objective=stage.objective, ceilings=stage.ceilings)
    return found._replace(given=replace(found.given, problem=last), earlier=[s for s, _ in earlier])


def _with_free_routes(run: MapSearch) -> Searched:
    """Decide partition, placement and routes at once."""
    from nmsolve.solvers.mapping.joint.api import solve_joint

    how = {name: value for name, value in run.how.items() if name != "known"}
    result, two_phase = solve_joint(run.problem, warm_start=run.first, time_limit=run.seconds, **how)
    words = []
    if two_phase is not None and result.objective:
        cost = f"cost {percent(two_phase / result.objective - 1.0)} more here"
        words = [f"Two phases, an ordinary mapping with the machine's own routes, {cost}."]
    return run.found(result, *words, two_phase=two_phase)


def _in_turns(run: MapSearch) -> Searched:
    """Alternate placement and routes, or decide one after the other where that is impossible."""
    from nmsolve.kinds.mapping.in_turns import Taken, in_turns_words, map_in_turns

    taken = map_in_turns(run)
    if not isinstance(taken, Taken):
        return _once(run if taken is None else replace(run, first=taken))
    found = run.found(taken.result, in_turns_words(taken), in_turns=True, first_value=taken.first)
    return found._replace(given=replace(found.given, mapped=taken.mapped))
