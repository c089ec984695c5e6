"""The search behind ``nmsolve map`` and ``nmsolve.map``: by one objective or several in order, with or without routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nmsolve.kinds.mapping.found import CHOSEN, Beside, Found, Run, mapping_time
from nmsolve.kinds.mapping.routes import AFTER, routes_of_answer
from nmsolve.model.engine import ScratchPlace
from nmsolve.report.figures import number, percent
from nmsolve.solvers.mapping.multi_objective import MappingObjectives

if TYPE_CHECKING:
    from nmsolve.model.bound import Stage
    from nmsolve.solvers.run import RunOptions


def search_map(run: Run, names: Sequence[str]) -> Found:
    """Find the best mapping by the objectives ``names``, in this order, with the routes that the options ask for."""
    if run.o.route == "joint":
        return _with_free_routes(run)
    if len(names) > 1:
        return _in_order(run, names)
    if run.o.route == CHOSEN and tuple(names) == ("max-link",) and not run.problem.ceilings:
        return _in_turns(run)
    return _once(run)


def _once(run: Run) -> Found:
    """Minimise one objective, then choose routes if asked for."""
    from nmsolve.solvers.mapping.api import solve

    o, problem = run.o, run.problem
    with run.console.watching() as observers:
        options: RunOptions = {
            **run.how, "time_limit": mapping_time(o, run.limit, run.clock), "observers": observers,
            "scratch": ScratchPlace(o.scratch, o.resume), "keep": run.keep,
        }  # fmt: skip
        result = solve(
            problem,
            warm_start=run.start,
            mip_solver=o.mip_solver,
            known=run.known,
            memory_of=o.memory_of,
            **options,
        )
    return _with_routes(run, Found(problem, result, ordinary=True))


def _in_order(run: Run, names: Sequence[str]) -> Found:
    """Minimise several objectives in order; what is found is about the last one."""
    from nmsolve.solvers.multi_objective import lexicographic

    stages = lexicographic(MappingObjectives(run.problem, run.stage), names, run.left(), run.tell_stage)
    *earlier, (stage, result) = stages
    before = [
        {"objective": s.objective, "value": r.objective, "bound": r.bound, "status": r.status}
        for s, r in earlier
    ]
    words = tuple(
        f"First {s.objective} {number(r.objective)} ({r.status}), then {stage.objective}." for s, r in earlier
    )
    last = replace(run.problem, objective=stage.objective, ceilings=stage.ceilings)
    found = Found(last, result, {"before": before}, words=words, plain=False)
    return _with_routes(run, found, [s for s, _ in earlier])


def _with_routes(run: Run, found: Found, earlier: Sequence[Stage] = ()) -> Found:
    """Choose the routes that come after the mapping; ``earlier`` : problems that were solved before, with their bounds."""
    mapped, trouble = routes_of_answer(run, found.problem, found.result)
    whole = run.o.route not in AFTER or found.result.core is None or mapped is not None
    return replace(found, beside=Beside(mapped=mapped, earlier=earlier), trouble=trouble, whole=whole)


def _with_free_routes(run: Run) -> Found:
    """Decide partition, placement and routes at once."""
    from nmsolve.solvers.mapping.joint.api import solve_joint

    with run.console.watching() as observers:
        options: RunOptions = {**run.how, "time_limit": run.limit, "observers": observers, "keep": run.keep}
        result, two_phase = solve_joint(run.problem, warm_start=run.start, **options)
    routes = None if result.solution is None else result.solution.routes
    words: tuple[str, ...] = ()
    if two_phase is not None and result.objective:
        cost = f"cost {percent(two_phase / result.objective - 1.0)} more here"
        words = (f"Two phases, an ordinary mapping with the machine's own routes, {cost}.",)
    return Found(run.problem, result, {"two_phase": two_phase}, Beside(routes=routes), words=words)


def _in_turns(run: Run) -> Found:
    """Alternate placement and routes, or decide one after the other where that is impossible."""
    from nmsolve.kinds.mapping.in_turns import Taken, in_turns_words, map_in_turns

    found = map_in_turns(run)
    if not isinstance(found, Taken):
        return _once(run if found is None else replace(run, start=found))
    more = {"in_turns": True, "first_value": found.first}
    words = (in_turns_words(found),)
    return Found(run.problem, found.result, more, Beside(mapped=found.mapped), words=words)
