"""``nmsolve map``: load, search, check, write, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nmsolve.cli import clock
from nmsolve.cli import options as opt
from nmsolve.cli.answer import (
    FEASIBLE,
    OK,
    UNKNOWN,
    exit_code,
    hint,
    prepare_folder,
    say_infeasible,
    write_models,
)
from nmsolve.cli.front_kinds import MapFront
from nmsolve.cli.loading import instance
from nmsolve.cli.map_answer import ALONE, Beside, say, write_answer
from nmsolve.cli.map_routes import AFTER, CHOSEN, mapping_time, require_route, routes_of_answer
from nmsolve.cli.map_turns import resolved, with_turns
from nmsolve.cli.pareto import require_front, run_front, tell_stage
from nmsolve.cli.patience import Patience, search_time
from nmsolve.cli.progress import number, percent, watching
from nmsolve.model.bound import Result
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.mapping.files import read_mapping
from nmsolve.solvers.mapping.multi_objective import MappingObjectives, objective_names

if TYPE_CHECKING:
    from nmsolve.cli.commands import MapOptions
    from nmsolve.cli.earlier import Start
    from nmsolve.cli.report import Report
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: A placeholder for a ceiling that is not known yet.
_ANY_VALUE = 1e30


@dataclass(frozen=True)
class Run:
    """A run of ``nmsolve map``: its options, and what they say.

    Attributes
    ----------
    start : core of every node in ``--warm-start`` or of an earlier run, or None
    known : what an earlier run proved of the problem
    limit : seconds of ``--time-limit`` that are for searching
    gap : the gap that was asked for, or None
    memory : most bytes, or None
    """

    o: MapOptions
    problem: MappingProblem
    start: IntArray | None
    limit: float
    gap: float | None
    memory: int | None
    patience: Patience
    known: Sequence[Bound] = ()

    def left(self) -> float:
        """Return the seconds that are left for the mapping."""
        return clock.left(mapping_time(self.o, self.limit))

    def stage(self, problem: MappingProblem, seconds: float, start: IntArray | None) -> Result:
        """Solve one problem of several objectives, from ``start`` or that of the run."""
        from nmsolve.solvers.mapping.api import solve

        o = self.o
        return solve(
            problem, time_limit=seconds, seed=o.seed, workers=o.workers, engines=opt.names(o.engines),
            warm_start=self.start if start is None else start, memory=self.memory, scratch=ScratchPlace(o.scratch, o.resume),
            mip_solver=o.mip_solver, allocate=o.allocate,
        )  # fmt: skip

    def leave(
        self, problem: MappingProblem, result: Result, more: dict[str, Any] | None = None, beside: Beside = ALONE
    ) -> Report:  # fmt: skip
        """Write and print the answer; ``more`` goes to the inputs in the report."""
        o, inputs = self.o, _inputs(self.o, problem) | (more or {})
        report = write_answer(o.out, problem, result, inputs, o.prohibit_turns, self.patience, beside)
        say(o.out, report, o.json)
        return report

    def with_routes(
        self, problem: MappingProblem, result: Result, more: dict[str, Any] | None = None, earlier: Sequence[Stage] = ()
    ) -> tuple[Report, bool]:  # fmt: skip
        """Choose the routes that come after the mapping, and leave both; False where they are missing.

        ``earlier`` : problems that were solved before this one, with their bounds.

        Raises
        ------
        InputError : no routes are possible; the mapping has its files
        """
        mapped, trouble = routes_of_answer(self, problem, result)
        report = self.leave(problem, result, more, Beside(mapped=mapped, earlier=earlier))
        if trouble is not None:
            raise trouble
        return report, self.o.route not in AFTER or result.core is None or mapped is not None

    def tell(self, text: str) -> None:
        """Print one more sentence for people."""
        print(text, file=sys.stderr if self.o.json else sys.stdout)


def run_map(o: MapOptions, begin: Start | None = None) -> int:
    """Run the command, from an earlier run if there is one to ``begin`` with; return the exit code.

    Raises
    ------
    InputError : anything wrong with the input, before any search and with nothing written
    """
    limit, gap, memory = opt.seconds(o.time_limit), opt.fraction(o.gap), opt.size_in_bytes(o.memory)
    require_route(o)
    _require_allocation(o)
    names = objective_names(o.objective)
    front = None if o.pareto is None else require_front(o, objective_names(o.pareto, "--pareto"))
    many = front is not None or len(names) > 1
    if o.route == "joint" and begin is not None:
        wanted = "`nmsolve map --warm-start` with another --out, which keeps the mapping and finds new routes"
        raise InputError("a run with free routes", str(begin.answer.parent), wanted)
    if o.route == "joint" and many:
        raise InputError("several objectives with free routes", "--route", "given, or one objective")
    if o.memory_of is not None and (many or o.route == "joint"):
        raise InputError(
            "a store of runs with several objectives or free routes",
            "--memory-of",
            "one objective, given routes",
        )
    problem, start = _load(o)
    known: list[Bound] = []
    if begin is not None:
        start = read_mapping(begin.answer, problem.graph, problem.machine)
        known = [b for _, b in begin.known("certificates.json", problem.hash)]
    if many and problem.graph.on_disk:
        raise InputError(
            "several objectives on a graph on disk", "--memory", "a larger --memory, or one objective"
        )
    prepare_folder(o.out)
    if o.scratch is not None:
        prepare_folder(o.scratch)
    if o.write_model is not None:
        from nmsolve.solvers.mapping.models import models

        write_models("mapping", models(problem, free_routes=o.route == "joint"), o.write_model)
    with Patience(clock.end(limit)) as patience:
        run = Run(o, problem, start, search_time(limit), gap, memory, patience, known)
        if front is not None:
            objectives = MappingObjectives(problem, run.stage)
            return run_front(o, MapFront(problem), objectives, front, limit, patience, _inputs(o, problem))
        if o.route == "joint":
            return _map_with_routes(run)
        if len(names) > 1:
            return _map_in_order(run, names)
        if o.route == CHOSEN and names == ("max-link",):
            return _map_in_turns(run)
        return _map_once(run)


def _map_once(run: Run) -> int:
    """Minimise one objective, then choose routes if asked for; return the exit code."""
    from nmsolve.solvers.mapping.api import solve

    o, problem = run.o, run.problem
    with watching(o.json) as observers:
        scratch = ScratchPlace(o.scratch, o.resume)
        options = opt.search(o, time_limit=mapping_time(o, run.limit), observers=observers, scratch=scratch)
        result = solve(
            problem,
            warm_start=run.start,
            mip_solver=o.mip_solver,
            allocate=o.allocate,
            known=run.known,
            memory_of=o.memory_of,
            **options,
        )
    report, whole = run.with_routes(problem, result)
    if not problem.limits_moves:
        say_infeasible("mapping exists", result)
    return _code(exit_code(result, report, run.gap), whole)


def _map_in_order(run: Run, names: tuple[str, ...]) -> int:
    """Minimise several objectives in order; the files are those of the last one. Return the exit code."""
    from nmsolve.solvers.multi_objective import lexicographic

    stages = lexicographic(MappingObjectives(run.problem, run.stage), names, run.left(), tell_stage)
    *earlier, (stage, result) = stages
    before = [
        {"objective": s.objective, "value": r.objective, "bound": r.bound, "status": r.status}
        for s, r in earlier
    ]
    last = replace(run.problem, objective=stage.objective, ceilings=stage.ceilings)
    report, whole = run.with_routes(last, result, {"before": before}, [s for s, _ in earlier])
    for s, r in earlier:
        run.tell(f"First {s.objective} {number(r.objective)} ({r.status}), then {stage.objective}.")
    return _code(exit_code(result, report, None), whole)


def _code(code: int, whole: bool) -> int:
    """Return the exit code; a mapping without the routes that were asked for is only a part of the answer."""
    return code if whole or code not in (OK, FEASIBLE) else UNKNOWN


def _map_with_routes(run: Run) -> int:
    """Decide partition, placement and routes at once; return the exit code."""
    from nmsolve.solvers.mapping.joint.api import solve_joint

    with watching(run.o.json) as observers:
        options = opt.search(run.o, time_limit=run.limit, observers=observers)
        result, two_phase = solve_joint(run.problem, warm_start=run.start, **options)
    routes = None if result.solution is None else result.solution.routes
    report = run.leave(run.problem, result, {"two_phase": two_phase}, Beside(routes=routes))
    if two_phase is not None and result.objective:
        cost = f"cost {percent(two_phase / result.objective - 1.0)} more here"
        run.tell(f"Two phases, an ordinary mapping with the machine's own routes, {cost}.")
    return exit_code(result, report, run.gap)


def _map_in_turns(run: Run) -> int:
    """Alternate placement and routes, or decide one after the other where that is impossible; return the exit code."""
    from nmsolve.cli.map_in_turns import Taken, in_turns_words, map_in_turns

    found = map_in_turns(run)
    if not isinstance(found, Taken):
        return _map_once(run if found is None else replace(run, start=found))
    more = {"in_turns": True, "first_value": found.first}
    report = run.leave(run.problem, found.result, more, Beside(mapped=found.mapped))
    run.tell(in_turns_words(found))
    return exit_code(found.result, report, run.gap)


def _load(o: MapOptions) -> tuple[MappingProblem, Any]:
    from nmsolve.hw.magnitude import require_scale
    from nmsolve.model.mapping.any_file import read_any_mapping
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.solvers.mapping.api import make_problem

    if o.mip_solver != "highs":
        from nmsolve.solvers.search.mip import available

        if not available(o.mip_solver):
            what = f"Pyomo finds no MIP solver called {o.mip_solver!r}"
            raise InputError(what, "--mip-solver", "highs, or an installed one")
    graph, machine = instance(o.graph, o.machine, o.chips, opt.size_in_bytes(o.memory), o.occupied or ())
    for run in o.occupied or ():
        if o.out.resolve() in (run.resolve(), run.resolve().parent):
            raise InputError("the run would overwrite an earlier one", str(o.out), "another folder for --out")
    if o.route not in ("given", "joint") and machine.distance_matrix is not None:
        raise InputError("routes on a machine given by a distance matrix", "--route", "given")
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    start = None
    if o.warm_start is not None:
        start = read_any_mapping(o.warm_start, graph, machine, other_faults=True)
    migration = _migration(o, start)
    try:
        problem = make_problem(
            graph, machine, objective=objective_names(o.objective)[0], constraints=constraints, balance=o.balance,
            migration=migration,
        )  # fmt: skip
    except DoesNotFitError as error:
        more = "" if "migration budget" in error.what else hint()
        raise DoesNotFitError(error.what + more, error.where) from None
    names = objective_names(o.objective if o.pareto is None else o.pareto)
    for name in names:  # one that comes later must not lose the answers of those before
        require_scale(replace(problem, objective=name))
    if o.engines is not None and len(names) > 1:
        _require_engines(o, problem, names)
    return with_turns(problem, o.prohibit_turns, o.route, names), start


def _require_engines(o: MapOptions, problem: MappingProblem, names: tuple[str, ...]) -> None:
    """Refuse, before the search, engines none of which takes a later objective while earlier ones are held."""
    from nmsolve.model.mapping.reduce import merge_together
    from nmsolve.solvers.mapping.auto import chosen

    for k, name in enumerate(names):
        held = names[:k] if o.pareto is None else [other for other in names if other != name]
        stage = replace(problem, objective=name, ceilings=tuple((other, _ANY_VALUE) for other in held))
        named = opt.names(o.engines) or ()
        if "auto" not in named:
            chosen(merge_together(stage).reduced, named, lambda *_: None)


def _require_allocation(o: MapOptions) -> None:
    """Refuse an unknown ``--allocate``, and one where nothing is planned."""
    from nmsolve.solvers.mapping.allocation.apply import require_allocation

    if require_allocation(o.allocate) == "fixed":
        return
    if o.engines is not None or o.route == "joint":
        what = "--engines" if o.engines is not None else "--route joint"
        raise InputError(f"--allocate {o.allocate} beside {what}", "--allocate", "fixed")


def _migration(o: MapOptions, start: IntArray | None) -> Migration | None:
    from nmsolve.model.mapping.migration import Migration

    if o.migration_budget is None:
        return None
    if start is None:
        raise InputError(
            "a migration budget needs a mapping to stay close to", "--migration-budget", "--warm-start FILE"
        )
    return Migration.of(start, o.migration_budget)


def _inputs(o: MapOptions, problem: MappingProblem) -> dict[str, Any]:
    """Return what ``verify`` needs to load the same problem again."""
    return {
        "graph": opt.whole(o.graph),
        "machine": opt.machine(o.machine),
        "chips": o.chips,
        "constraints": opt.whole(o.constraints),
        "balance": o.balance,
        "node_limit": problem.node_limit,
        "occupied": [opt.whole(run) for run in o.occupied or ()],
        "warm_start": opt.whole(o.warm_start),
        "memory_of": opt.whole(o.memory_of),
        "migration_budget": o.migration_budget,
        "reference": None if problem.migration is None else problem.migration.reference_hash,
        "reference_file": None if problem.migration is None else str((o.out / "reference.json").resolve()),
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "allocate": o.allocate,
        "prohibit_turns": resolved(o.prohibit_turns),
        "route": o.route,
        "objectives": list(objective_names(o.objective if o.pareto is None else o.pareto)),
    }
