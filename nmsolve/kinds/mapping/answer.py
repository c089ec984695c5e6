"""What stands beside mapping.json, and the checks of a fresh mapping."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.mapping.routes import ADDED, mapped_checks, write_mapped_routes
from nmsolve.kinds.time_left import CHECKS, OutOfTime, TimeLeft

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.given import Given
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.model.bound import Result

#: Routes of all messages where they were chosen with the mapping.
FREE_ROUTES = "routes.json"


def write_beside(folder: Path, given: Given, result: Result[Any]) -> None:
    """Write what a migration budget counts from, routes, and the mapping as other tools read it."""
    from nmsolve.learn.checkpoint import METHODS
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.processors import write_processors
    from nmsolve.model.mapping.routes import write_routes
    from nmsolve.model.mapping.sln import is_qaplib, write_sln

    problem, core = given.problem, result.core
    graph, machine = problem.graph, problem.machine
    if problem.migration is not None:
        write_mapping(folder / "reference.json", graph, machine, problem.migration.reference)
    if core is not None and problem.one_per_core and is_qaplib(graph, machine):
        write_sln(folder / "solution.sln", graph, machine, core)
    if core is not None and any(share.engine == METHODS["m1"] for share in result.engines):
        write_processors(folder, graph, machine, core)
    routes = getattr(result.solution, "routes", None)
    if routes is not None:
        write_routes(folder / FREE_ROUTES, graph, machine, routes)
    if given.mapped is not None:
        write_mapped_routes(folder, given.mapped)


def checks_of_run(
    out: Path, given: Given, result: Result[Any], time_left: TimeLeft
) -> tuple[list[CheckPart], list[str]]:
    """Return the checks of a mapping with its files in ``out``, and what was left out."""
    from nmsolve.kinds.mapping.check import independent_checks, routed_claims
    from nmsolve.kinds.mapping.turns import own_turns
    from nmsolve.model.mapping.routes import read_routes

    problem, o, mapped = given.problem, given.options, given.mapped
    assert result.core is not None
    free = None if getattr(result.solution, "routes", None) is None else read_routes(out / FREE_ROUTES)
    routed = None if mapped is None or not mapped.scored else routed_claims(problem.machine, out)
    turns = own_turns(o.prohibit_turns, o.route)
    checks, left = independent_checks(problem, result, turns, free, time_left, routed)
    if mapped is not None:
        try:
            core = result.core
            checks += time_left.optional(lambda: mapped_checks(out, problem, core, mapped), CHECKS)
        except OutOfTime:
            left.append(ADDED)
    return checks, left
