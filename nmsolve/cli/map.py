"""``nmsolve map``: load, search, check, write, report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli import options as opt
from nmsolve.cli.answer import exit_code, prepare_folder, say, write_answer
from nmsolve.cli.progress import JsonLines, ProgressTable
from nmsolve.model.bound import Result
from nmsolve.model.errors import DoesNotFitError, InputError

if TYPE_CHECKING:
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: Where to read on when nothing fits.
EXPLAIN = "; `nmsolve explain` names a smallest set of limits that conflict"


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
    memory_limit: str | None
    prohibit_turns: str | None
    out: Path
    json: bool


def run_map(o: MapOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, before any search and with nothing written
    """
    limit, wanted_gap, memory = (
        opt.seconds(o.time_limit),
        opt.fraction(o.gap),
        opt.size_in_bytes(o.memory_limit),
    )
    problem, start = _load(o)
    prepare_folder(o.out)
    if o.write_model is not None:
        from nmsolve.model.mapping.reduce import merge_together
        from nmsolve.solvers.mapping.write_model import write_model

        for path in write_model(merge_together(problem).reduced, o.write_model):
            print(f"wrote {path}", file=sys.stderr)
    result = _search(o, problem, start, limit, wanted_gap, memory)
    inputs = _inputs(o, problem)
    if problem.migration is not None:
        from nmsolve.model.mapping.files import write_mapping

        write_mapping(o.out / "reference.json", problem.graph, problem.machine, problem.migration.reference)
    report = write_answer(o.out, problem, result, inputs, o.prohibit_turns)
    say(o.out, report, o.json)
    if result.status == "infeasible" and not problem.limits_moves:
        print(f"no mapping exists{EXPLAIN}", file=sys.stderr)
    return exit_code(result, report, wanted_gap)


def _load(o: MapOptions) -> tuple[MappingProblem, Any]:
    from nmsolve.hw.turns import turn_rule
    from nmsolve.model.mapping.any_file import read_any_mapping
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.solvers.mapping.api import make_problem

    if o.prohibit_turns is not None:
        turn_rule(o.prohibit_turns)  # a wrong name must not wait for the end of the search
    if o.mip_solver != "highs":
        from nmsolve.solvers.mapping.mip.solve import available

        if not available(o.mip_solver):
            raise InputError(
                f"Pyomo finds no MIP solver called {o.mip_solver!r}",
                "--mip-solver",
                "highs, or an installed one",
            )
    graph, machine = opt.instance(o.graph, o.machine, o.chips)
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    start = None
    if o.warm_start is not None:
        start = read_any_mapping(o.warm_start, graph, machine, other_faults=True)
    migration = _migration(o, start)
    try:
        problem = make_problem(
            graph,
            machine,
            objective=o.objective,
            constraints=constraints,
            balance=o.balance,
            migration=migration,
        )
    except DoesNotFitError as error:
        hint = "" if "migration budget" in error.what else EXPLAIN
        raise DoesNotFitError(error.what + hint, error.where) from None
    return problem, start


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

    table = ProgressTable(sys.stderr)
    observers: list[Any] = [table]
    if o.json:
        observers.append(JsonLines(sys.stdout))
    names = None if o.engines is None else [e.strip() for e in o.engines.split(",") if e.strip()]
    try:
        return solve(
            problem, time_limit=limit, started=STARTED, gap=wanted_gap or 0.0, seed=o.seed, workers=o.workers,
            engines=names, warm_start=start, memory_limit=memory, mip_solver=o.mip_solver, observers=observers,
        )  # fmt: skip
    finally:
        table.close()


def _inputs(o: MapOptions, problem: MappingProblem) -> dict[str, Any]:
    """What ``verify`` needs to load the same problem again."""
    return {
        "graph": str(o.graph.resolve()),
        "machine": str(Path(o.machine).resolve()) if o.machine and Path(o.machine).is_file() else o.machine,
        "chips": o.chips,
        "constraints": None if o.constraints is None else str(o.constraints.resolve()),
        "balance": o.balance,
        "node_limit": problem.node_limit,
        "warm_start": None if o.warm_start is None else str(o.warm_start.resolve()),
        "migration_budget": o.migration_budget,
        "reference": None if problem.migration is None else problem.migration.reference_hash,
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "prohibit_turns": o.prohibit_turns,
    }
