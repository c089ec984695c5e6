"""``nmsolve map``: load, search, check, write, report."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli import options as opt
from nmsolve.cli.progress import JsonLines, ProgressTable, number, percent
from nmsolve.cli.report import CheckPart, Report, build_report, in_words
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.mapping.problem import MappingProblem

#: Exit codes (docs/files.md).
OK, INTERNAL, FEASIBLE, INFEASIBLE, UNKNOWN, INTERRUPTED = 0, 1, 3, 4, 5, 130


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
    _prepare_folder(o.out)
    if o.write_model is not None:
        from nmsolve.model.mapping.reduce import merge_together
        from nmsolve.solvers.mapping.write_model import write_model

        for path in write_model(merge_together(problem).reduced, o.write_model):
            print(f"wrote {path}", file=sys.stderr)
    result = _search(o, problem, start, limit, wanted_gap, memory)
    inputs = _inputs(o, problem)
    report = _write(o, problem, result, inputs)
    _say(o, report)
    return _exit_code(result, report, wanted_gap)


def _load(o: MapOptions) -> tuple[MappingProblem, Any]:
    from nmsolve.hw.turns import turn_rule
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.model.mapping.any_file import read_any_mapping
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
    problem = make_problem(graph, machine, objective=o.objective, constraints=constraints, balance=o.balance)
    start = None if o.warm_start is None else read_any_mapping(o.warm_start, graph, machine)
    return problem, start


def _prepare_folder(folder: Path) -> None:
    """Find out before the search, not after it, that the answer cannot be written."""
    import os

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder ({error.strerror})", str(folder), "a folder that can be written"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written", str(folder), "a folder that can be written")


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
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "prohibit_turns": o.prohibit_turns,
    }


def _write(o: MapOptions, problem: MappingProblem, result: Result, inputs: dict[str, Any]) -> Report:
    """Write mapping, certificates, events and report; the page last, so that its failure costs nothing else."""
    import msgspec

    from nmsolve.cli.check import independent_checks
    from nmsolve.cli.progress import event_to_json
    from nmsolve.model.files import write_atomic
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.sln import is_qaplib, write_sln
    from nmsolve.solvers.mapping.certificates import certificates_to_json

    checks: list[CheckPart] = []
    if result.core is not None:
        write_mapping(o.out / "mapping.json", problem.graph, problem.machine, result.core)
        if problem.one_per_core and is_qaplib(problem.graph, problem.machine):
            write_sln(o.out / "solution.sln", problem.graph, problem.machine, result.core)
        checks = independent_checks(problem, result, o.prohibit_turns)
    report = build_report(problem, result, checks, inputs)
    write_atomic(o.out / "certificates.json", certificates_to_json(problem, result.bounds))
    lines = "".join(json.dumps(event_to_json(e)) + "\n" for e in result.events)
    write_atomic(o.out / "events.jsonl", lines)
    write_atomic(o.out / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=2))

    from nmsolve.cli.html import render_html

    command = f"nmsolve verify {o.out} --bound"
    write_atomic(o.out / "report.html", render_html(problem, result, report, command))
    return report


def _say(o: MapOptions, report: Report) -> None:
    """The last words: JSON result on stdout, or a summary for people."""
    import msgspec

    if o.json:
        line = {"type": "result", **msgspec.to_builtins(report), "out": str(o.out)}
        print(json.dumps(line), flush=True)
        stream = sys.stderr
    else:
        stream = sys.stdout
    engines = [e for e in report.engines if e.offers or e.bound is not None or e.status]
    if engines:
        print(
            f"\n{'engine':16} {'CPU s':>8} {'accepted':>9} {'its best':>16} {'its bound':>16}  ended",
            file=stream,
        )
        for e in engines:
            print(
                f"{e.engine:16} {e.cpu_seconds:8.2f} {e.incumbents:9} {number(e.best):>16} {number(e.bound):>16}  {e.status}",
                file=stream,
            )
    print(
        f"\n{report.status}: {report.objective_name} {number(report.objective)}, bound {number(report.bound)}, "
        f"gap {percent(report.gap)} (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)",
        file=stream,
    )
    for line_text in in_words(report):
        print(line_text, file=stream)
    failed = [c for c in report.checks if not c.ok]
    if report.checks:
        print("independent checks: " + ("all passed" if not failed else f"{len(failed)} FAILED"), file=stream)
    for c in failed:
        print(f"  FAILED {c.name}: {c.text}", file=stream)
    print(f"report: {o.out / 'report.html'}", file=stream)


def _exit_code(result: Result, report: Report, wanted_gap: float | None) -> int:
    wrong = [c.name for c in report.checks if not c.ok and c.name != "deadlock"]
    if wrong:  # the search and the checker disagree: a mistake in nmsolve itself
        return INTERNAL
    if result.status == "infeasible":
        return INFEASIBLE
    if result.core is None:
        return INTERRUPTED if result.stop_reason == "interrupt" else UNKNOWN
    if wanted_gap is not None and (result.gap is None or result.gap > wanted_gap):
        return FEASIBLE
    return OK
