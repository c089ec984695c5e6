"""``nmsolve map``: load, search, check, write, report."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli import options as opt
from nmsolve.cli.answer import FEASIBLE, OK, UNKNOWN, exit_code, prepare_folder, say, write_answer
from nmsolve.cli.map_routes import AFTER, CHOSEN, MappedRoutes, mapping_time, require_route, routes_of_answer
from nmsolve.cli.map_turns import resolved, with_turns
from nmsolve.cli.patience import Patience, search_time
from nmsolve.cli.progress import number, percent, watching
from nmsolve.model.bound import Result
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.solvers.mapping.several import objective_names

if TYPE_CHECKING:
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: Where to read on when nothing fits.
EXPLAIN = "; `nmsolve explain` names a smallest set of limits that conflict"
#: Points of a front: every one takes two searches of its own, however little time is left for it.
MOST_POINTS = 1000
#: A ceiling that stands for one that is not known yet.
_ANY_VALUE = 1e30


@dataclass(frozen=True)
class MapOptions:
    """The options of ``nmsolve map``, as typed."""

    graph: Path
    machine: str | None
    chips: str | None
    time_limit: str
    gap: str | None
    seed: int
    workers: int
    objective: str
    engines: str | None
    balance: float | None
    constraints: Path | None
    warm_start: Path | None
    migration_budget: int | None
    mip_solver: str
    write_model: Path | None
    memory: str | None
    scratch: Path | None
    resume: bool
    prohibit_turns: str | None
    route: str
    pareto: str | None
    points: int
    occupied: tuple[Path, ...]
    out: Path
    json: bool


def run_map(o: MapOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, before any search and with nothing written
    """
    from nmsolve.cli.main import STARTED

    limit, wanted_gap, memory = (
        opt.seconds(o.time_limit),
        opt.fraction(o.gap),
        opt.size_in_bytes(o.memory),
    )
    require_route(o)
    names = objective_names(o.objective)
    front = None if o.pareto is None else _front_names(o.pareto, o.points)
    if front is not None and o.objective != "hops":  # what it is unless said otherwise
        raise InputError("--objective beside --pareto", "--pareto", "the two objectives of the front alone")
    many = front is not None or len(names) > 1
    if o.route == "joint" and many:
        raise InputError("several objectives with free routes", "--route", "given, or one objective")
    problem, start = _load(o)
    if many and problem.graph.on_disk:
        raise InputError(
            "several objectives on a graph that lies on disk", "--memory", "more of it, or one objective"
        )
    prepare_folder(o.out)
    if o.scratch is not None:
        prepare_folder(o.scratch)
    if o.write_model is not None:
        from nmsolve.model.mapping.reduce import merge_together
        from nmsolve.solvers.mapping.write_model import write_model

        reduced = merge_together(problem).reduced
        for path in write_model(reduced, o.write_model, free_routes=o.route == "joint"):
            print(f"wrote {path}", file=sys.stderr)
    with Patience(STARTED + limit) as patience:
        limit = search_time(limit)
        if front is not None:
            return _map_front(o, problem, front, start, limit, memory, patience)
        if o.route == "joint":
            return _map_with_routes(o, problem, limit, wanted_gap, memory, patience)
        if len(names) > 1:
            return _map_in_order(o, problem, names, start, limit, memory, patience)
        if o.route == CHOSEN and names == ("max-link",):
            done = _map_in_turns(o, problem, start, limit, wanted_gap, memory, patience)
            if isinstance(done, int):
                return done
            start = start if done is None else done
        return _map_once(o, problem, start, limit, wanted_gap, memory, patience)


def _map_once(
    o: MapOptions,
    problem: MappingProblem,
    start: Any,
    limit: float,
    wanted_gap: float | None,
    memory: int | None,
    patience: Patience,
) -> int:
    """One objective, and routes after it where asked for; returns the exit code."""
    result = _search(o, problem, start, mapping_time(o, limit), wanted_gap, memory)
    mapped, trouble = routes_of_answer(o, problem, result, limit, memory, patience.asked)
    inputs = _inputs(o, problem)
    report = write_answer(o.out, problem, result, inputs, o.prohibit_turns, patience, mapped=mapped)
    say(o.out, report, o.json)
    if trouble is not None:
        raise trouble
    if result.status == "infeasible" and not problem.limits_moves:
        print(f"no mapping exists{EXPLAIN}", file=sys.stderr)
    return _code(o, exit_code(result, report, wanted_gap), result, mapped)


def _map_in_order(
    o: MapOptions,
    problem: MappingProblem,
    names: tuple[str, ...],
    start: Any,
    limit: float,
    memory: int | None,
    patience: Patience,
) -> int:
    """One objective after the other; the files are those of the last one. Returns the exit code."""
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.mapping.several import lexicographic, stage_of

    left = max(0.1, mapping_time(o, limit) - (time.monotonic() - STARTED))
    stages = lexicographic(
        problem, names, left, lambda p, t, s: _stage(o, p, t, start if s is None else s, memory)
    )
    earlier = stages[:-1]
    before = [
        {"objective": p.objective, "value": r.objective, "bound": r.bound, "status": r.status}
        for p, r in earlier
    ]
    last, result = stages[-1]
    inputs = _inputs(o, last) | {"before": before}
    mapped, trouble = routes_of_answer(o, last, result, limit, memory, patience.asked)
    report = write_answer(
        o.out, last, result, inputs, o.prohibit_turns, patience, mapped=mapped,
        earlier=[stage_of(p, r) for p, r in earlier],
    )  # fmt: skip
    say(o.out, report, o.json)
    if trouble is not None:
        raise trouble
    for p, r in earlier:
        text = f"First {p.objective} {number(r.objective)} ({r.status}), then {last.objective}."
        print(text, file=sys.stderr if o.json else sys.stdout)
    return _code(o, exit_code(result, report, None), result, mapped)


def _code(o: MapOptions, code: int, result: Result, mapped: MappedRoutes | None) -> int:
    """The exit code; a mapping without the routes that were asked for is only a part of the answer."""
    missing = o.route in AFTER and result.core is not None and mapped is None
    return UNKNOWN if missing and code in (OK, FEASIBLE) else code


def _front_names(text: str, points: int) -> tuple[str, str]:
    """The two objectives of ``--pareto``; InputError for others, or a number of points that makes no front."""
    names = objective_names(text, "--pareto")
    if len(names) != 2:
        raise InputError(f"{len(names)} objectives", "--pareto", "two, such as hops,max-link")
    if not 2 <= points <= MOST_POINTS:
        raise InputError(f"{points} points", "--points", f"2, the ends of the front, to {MOST_POINTS}")
    return names[0], names[1]


def _map_front(
    o: MapOptions,
    problem: MappingProblem,
    names: tuple[str, str],
    start: Any,
    limit: float,
    memory: int | None,
    patience: Patience,
) -> int:
    """The front of two objectives; returns the exit code."""
    from nmsolve.cli.main import STARTED
    from nmsolve.cli.pareto import say_front, write_front
    from nmsolve.solvers.mapping.several import pareto_front

    left = max(0.1, limit - (time.monotonic() - STARTED))
    front = pareto_front(
        problem, names, o.points, left,
        lambda p, t, s: _stage(o, p, t, start if s is None else s, memory),
    )  # fmt: skip
    write_front(o.out, problem, front, _inputs(o, problem), patience)
    if o.json:
        print((o.out / "pareto.json").read_text())
    else:
        say_front(front, o.out)
    return OK


def _stage(o: MapOptions, problem: MappingProblem, seconds: float, start: Any, memory: int | None) -> Result:
    """One problem of several objectives."""
    from nmsolve.solvers.mapping.api import solve

    ceilings = ", ".join(f"{name} at most {number(most)}" for name, most in problem.ceilings)
    print(f"{problem.objective}{' with ' + ceilings if ceilings else ''}: {seconds:.1f} s", file=sys.stderr)
    return solve(
        problem, time_limit=seconds, seed=o.seed, workers=o.workers, engines=opt.names(o.engines), warm_start=start,
        memory=memory, scratch=ScratchPlace(o.scratch, o.resume), mip_solver=o.mip_solver,
    )  # fmt: skip


def _map_with_routes(
    o: MapOptions, problem: MappingProblem, limit: float, wanted_gap: float | None, memory: int | None,
    patience: Patience,
) -> int:  # fmt: skip
    """Partition, placement and routes at once; returns the exit code."""
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.mapping.joint.api import solve_joint

    with watching(o.json) as observers:
        result, two_phase = solve_joint(
            problem, time_limit=limit, started=STARTED, gap=wanted_gap or 0.0, seed=o.seed, workers=o.workers,
            engines=opt.names(o.engines), memory=memory, observers=observers,
        )  # fmt: skip
    inputs = _inputs(o, problem) | {"two_phase": two_phase}
    routes = None if result.solution is None else result.solution.routes
    report = write_answer(o.out, problem, result, inputs, o.prohibit_turns, patience, routes)
    say(o.out, report, o.json)
    if two_phase is not None and result.objective:
        loss = percent(two_phase / result.objective - 1.0)
        text = f"Two phases, an ordinary mapping with the machine's own routes, cost {loss} more here."
        print(text, file=sys.stderr if o.json else sys.stdout)
    return exit_code(result, report, wanted_gap)


def _map_in_turns(
    o: MapOptions,
    problem: MappingProblem,
    start: Any,
    limit: float,
    wanted_gap: float | None,
    memory: int | None,
    patience: Patience,
) -> int | IntArray | None:
    """Placement and routes in turns; returns the exit code, or where one has to come after the other the mapping to go on
    from, if there is one."""
    from nmsolve.cli.map_in_turns import map_in_turns, say_in_turns

    found = map_in_turns(o, problem, start, limit, memory)
    if not isinstance(found, tuple):
        return found
    result, mapped, first = found
    inputs = _inputs(o, problem) | {"in_turns": True, "first_value": first}
    report = write_answer(o.out, problem, result, inputs, o.prohibit_turns, patience, mapped=mapped)
    say(o.out, report, o.json)
    say_in_turns(o, result, mapped, first)
    return exit_code(result, report, wanted_gap)


def _load(o: MapOptions) -> tuple[MappingProblem, Any]:
    from nmsolve.hw.magnitude import require_scale
    from nmsolve.model.mapping.any_file import read_any_mapping
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.solvers.mapping.api import make_problem

    if o.mip_solver != "highs":
        from nmsolve.solvers.search.mip import available

        if not available(o.mip_solver):
            raise InputError(
                f"Pyomo finds no MIP solver called {o.mip_solver!r}",
                "--mip-solver",
                "highs, or an installed one",
            )
    graph, machine = opt.instance(o.graph, o.machine, o.chips, opt.size_in_bytes(o.memory), o.occupied)
    for run in o.occupied:
        if o.out.resolve() in (run.resolve(), run.resolve().parent):
            raise InputError(
                "the run would go where an earlier one is", str(o.out), "another folder for --out"
            )
    if o.route not in ("given", "joint") and machine.distance_matrix is not None:
        raise InputError("routes on a machine given by a distance matrix", "--route", "given")
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    start = None
    if o.warm_start is not None:
        start = read_any_mapping(o.warm_start, graph, machine, other_faults=True)
    migration = _migration(o, start)
    try:
        problem = make_problem(
            graph,
            machine,
            objective=objective_names(o.objective)[0],
            constraints=constraints,
            balance=o.balance,
            migration=migration,
        )
    except DoesNotFitError as error:
        hint = "" if "migration budget" in error.what else EXPLAIN
        raise DoesNotFitError(error.what + hint, error.where) from None
    names = objective_names(o.objective if o.pareto is None else o.pareto)
    for name in names:  # one that comes later must not lose the answers of those before
        require_scale(replace(problem, objective=name))
    if o.engines is not None and len(names) > 1:
        _require_engines(o, problem, names)
    return with_turns(problem, o.prohibit_turns, o.route, names), start


def _require_engines(o: MapOptions, problem: MappingProblem, names: tuple[str, ...]) -> None:
    """Refuse engines of which none takes a later objective while others are held: before the search, not after part of it."""
    from nmsolve.model.mapping.reduce import merge_together
    from nmsolve.solvers.mapping.auto import chosen

    for k, name in enumerate(names):
        held = names[:k] if o.pareto is None else [other for other in names if other != name]
        stage = replace(problem, objective=name, ceilings=tuple((other, _ANY_VALUE) for other in held))
        chosen(merge_together(stage).reduced, opt.names(o.engines) or (), lambda *_: None, o.mip_solver)


def _migration(o: MapOptions, start: IntArray | None) -> Migration | None:
    from nmsolve.model.mapping.migration import Migration

    if o.migration_budget is None:
        return None
    if start is None:
        raise InputError(
            "a migration budget needs a mapping to stay close to", "--migration-budget", "--warm-start FILE"
        )
    return Migration.of(start, o.migration_budget)


def _search(
    o: MapOptions,
    problem: MappingProblem,
    start: Any,
    limit: float,
    wanted_gap: float | None,
    memory: int | None,
) -> Result:
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.mapping.api import solve

    with watching(o.json) as observers:
        return solve(
            problem, time_limit=limit, started=STARTED, gap=wanted_gap or 0.0, seed=o.seed, workers=o.workers,
            engines=opt.names(o.engines), warm_start=start, memory=memory, mip_solver=o.mip_solver, observers=observers,
            scratch=ScratchPlace(o.scratch, o.resume),
        )  # fmt: skip


def _inputs(o: MapOptions, problem: MappingProblem) -> dict[str, Any]:
    """What ``verify`` needs to load the same problem again."""
    return {
        "graph": str(o.graph.resolve()),
        "machine": str(Path(o.machine).resolve()) if o.machine and Path(o.machine).is_file() else o.machine,
        "chips": o.chips,
        "constraints": None if o.constraints is None else str(o.constraints.resolve()),
        "balance": o.balance,
        "node_limit": problem.node_limit,
        "occupied": [str(run.resolve()) for run in o.occupied],
        "warm_start": None if o.warm_start is None else str(o.warm_start.resolve()),
        "migration_budget": o.migration_budget,
        "reference": None if problem.migration is None else problem.migration.reference_hash,
        "reference_file": None if problem.migration is None else str((o.out / "reference.json").resolve()),
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "prohibit_turns": resolved(o.prohibit_turns),
        "route": o.route,
        "objectives": list(objective_names(o.objective if o.pareto is None else o.pareto)),
    }
