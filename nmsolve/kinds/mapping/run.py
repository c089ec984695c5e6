"""``nmsolve map``: load, search, check, write, report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import (
    FEASIBLE,
    FRONT_FILES,
    OK,
    UNKNOWN,
    exit_code,
    prepare_folder,
    say_infeasible,
    write_models,
)
from nmsolve.kinds.console import Terminal
from nmsolve.kinds.loading import given_reading, instance
from nmsolve.kinds.mapping.answer import say, write_answer, write_unchecked
from nmsolve.kinds.mapping.found import MAP_FILES, Beside, Found, Run
from nmsolve.kinds.mapping.front import MapFront
from nmsolve.kinds.mapping.report import tick_words, waiting_words
from nmsolve.kinds.mapping.search import search_map
from nmsolve.kinds.mapping.statement import (
    PLAIN,
    chosen_words,
    limits_of,
    objectives_of,
    state_map,
    with_objective,
)
from nmsolve.kinds.mapping.turns import resolved
from nmsolve.kinds.pareto import run_front
from nmsolve.kinds.patience import Patience, search_time
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.mapping.files import read_mapping
from nmsolve.solvers.mapping.multi_objective import MappingObjectives, objective_names

if TYPE_CHECKING:
    from nmsolve.kinds.kind import Start
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.model.bound import Bound, Result
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray


def run_map(o: MapOptions, begin: Start | None = None) -> int:
    """Run the command, from an earlier run if there is one to ``begin`` with; return the exit code.

    Raises
    ------
    InputError : anything wrong with the input, before any search and with nothing written
    """
    limit, how = opt.seconds(o.time_limit), opt.search(o)
    _, front = objectives_of(o)
    if o.route == "joint" and begin is not None:
        wanted = "`nmsolve map --warm-start` with another --out, which keeps the mapping and finds new routes"
        raise InputError("a run with free routes", str(begin.answer.parent), wanted)
    problem, start, chosen = _load(o)
    words = chosen_words(o, chosen, problem.machine)
    o = chosen
    known: list[Bound] = []
    if begin is not None:
        start = read_mapping(begin.answer, problem.graph, problem.machine)
        known = [b for _, b in begin.known("certificates.json", problem.hash)]
    prepare_folder(o.out, (*MAP_FILES, *FRONT_FILES), o)
    if o.scratch is not None:
        prepare_folder(o.scratch)
    if o.write_model is not None:
        from nmsolve.solvers.mapping.models import models

        write_models("mapping", lambda: models(problem, free_routes=o.route == "joint"), o.write_model)
    name = new_run()

    def keep(so_far: Result[Any]) -> None:
        beside = Beside(routes=getattr(so_far.solution, "routes", None))
        # of several objectives the first is searched
        inputs = map_inputs(o, problem) | {"objectives": [problem.objective]}
        write_unchecked(o.out, problem, so_far, inputs, name, beside)

    with Patience(clock.end(limit)) as patience:
        time = clock.of_command()
        run = Run(
            o, problem, start, search_time(limit), how, patience, time, Terminal(o.json, o.out), known,
            None if front else keep,
        )  # fmt: skip
        if front is not None:
            objectives = MappingObjectives(problem, run.stage)
            return run_front(o, MapFront(problem), objectives, front, limit, patience, map_inputs(o, problem))
        return _leave(run, search_map(run, objective_names(o.objective or PLAIN)), words, name)


def _leave(run: Run, found: Found, words: list[str], name: str) -> int:
    """Write what was found as the run ``name``, print it and the ``words``; return the exit code.

    Raises
    ------
    InputError : no routes are possible; the mapping has its files
    """
    o, result = run.o, found.result
    inputs = map_inputs(o, found.problem) | found.more
    report = write_answer(
        o.out, found.problem, result, inputs, o.prohibit_turns, run.patience, found.beside, name, o.plain
    )
    say(o.out, report, o.json)
    if found.trouble is not None:
        raise found.trouble
    for text in (*words, *found.words, *waiting_words(found.problem, result.core), *tick_words(report.tick)):
        print(text, file=sys.stderr if o.json else sys.stdout)
    if found.ordinary and not found.problem.limits_moves:
        say_infeasible("mapping exists", result)
    code = exit_code(result, report, opt.fraction(o.gap) if found.plain else None)
    return code if found.whole or code not in (OK, FEASIBLE) else UNKNOWN


def _load(o: MapOptions) -> tuple[MappingProblem, IntArray | None, MapOptions]:
    """Read the files that the options name; return the problem, the mapping to start from, and the options with an objective."""
    from nmsolve.model.mapping.any_file import read_any_mapping
    from nmsolve.model.mapping.constraints_file import load_constraints

    memory, reading = opt.size_in_bytes(o.memory), given_reading(o)
    graph, machine = instance(o.graph, o.machine, o.chips, memory, o.occupied or (), reading)
    for run in o.occupied or ():
        if o.out.resolve() in (run.resolve(), run.resolve().parent):
            raise InputError("the run would overwrite an earlier one", str(o.out), "another folder for --out")
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    start = None
    if o.warm_start is not None:
        first = o.warm_start / "mapping.json" if o.warm_start.is_dir() else o.warm_start
        start = read_any_mapping(first, graph, machine, other_faults=True)
    o = with_objective(o, graph, machine, constraints)
    return state_map(o, graph, machine, constraints, start, opt.names(o.engines)), start, o


def map_inputs(o: MapOptions, problem: MappingProblem) -> dict[str, Any]:
    """Return what ``verify`` needs to load the same problem again."""
    return {
        "graph": opt.whole(o.graph),
        "machine": opt.machine(o.machine),
        "chips": o.chips,
        **given_reading(o).options(),
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
        "prohibit_turns": resolved(o.prohibit_turns),
        "route": o.route,
        "limits": limits_of(o),
        "objectives": list(objective_names(o.pareto or o.objective or PLAIN)),
    }
