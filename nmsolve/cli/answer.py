"""What a run leaves behind: files, the last words, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.cli.patience import CHECKS, Patience
from nmsolve.cli.progress import number, percent
from nmsolve.cli.report import CheckPart, Report, build_report, in_words, routing_words
from nmsolve.model.bound import Result, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import file_set, new_run, settle
from nmsolve.model.files import write_atomic

if TYPE_CHECKING:
    from nmsolve.cli.map_routes import MappedRoutes
    from nmsolve.cli.pipeline_report import PipelineReport
    from nmsolve.cli.route import RouteReport
    from nmsolve.hw.between import BetweenCores
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import MessageRoute
    from nmsolve.model.types import IntArray

#: Exit codes (docs/files.md).
OK, INTERNAL, FEASIBLE, INFEASIBLE, UNKNOWN, INTERRUPTED = 0, 1, 3, 4, 5, 130


def prepare_folder(folder: Path) -> None:
    """Find out before the search, not after it, that the answer cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder ({error.strerror})", str(folder), "a folder that can be written"
        ) from None
    _require_writable(folder)
    settle(folder)


def prepare_file(path: Path) -> None:
    """The same for a file: its folder is there and can be written, and it is no folder itself."""
    if path.is_dir():
        raise InputError("it is a folder", str(path), "a file")
    if not path.absolute().parent.is_dir():
        raise InputError("there is no such folder", str(path.parent), "a folder that can be written")
    _require_writable(path.absolute().parent)


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the folder cannot be written", str(folder), "a folder that can be written")


#: Names that files of a mapping may have; the last line are those of a routing, which a new mapping makes wrong.
FILES = (
    "mapping.json", "solution.sln", "certificates.json", "events.jsonl", "report.json", "report.html", "reference.json",
    "better.json", "routes.json",
    "flow-routes.json", "route-certificates.json", "route-events.jsonl", "route-report.json", "route.html",
)  # fmt: skip
#: What is checked of routes that were added to a mapping, beside :data:`nmsolve.hw.verify.STAGES`.
ROUTES = "routes"


def write_answer(
    out: Path,
    problem: MappingProblem,
    result: Result,
    inputs: dict[str, Any],
    turns: str | None,
    patience: Patience,
    routes: list[MessageRoute] | None = None,
    mapped: MappedRoutes | None = None,
    better: IntArray | None = None,
    run: str | None = None,
    earlier: Sequence[Stage] = (),
) -> Report:
    """Write mapping, certificates, events and report; then check, draw, and write report and page with what that gave.

    The first files appear all at once, and so do the second ones, with the same run's id: what happens in between costs no
    more than checks and page. Whoever loses ``patience`` gets them without the checks and pictures that take long.

    Parameters
    ----------
    out : an existing folder
    inputs : what ``verify`` needs to load the problem again
    turns : prohibited turns (:func:`nmsolve.hw.turns.turn_set`), or None
    routes : the routes of all messages where they were chosen with the mapping
    mapped : routes that were added to the mapping
    better : a better mapping than that of ``result``, which is about a given one
    run : id of the run that these files belong to; a new one if not given
    earlier : problems that were solved before this one, with their bounds
    """
    from nmsolve.cli.map_turns import own_turns
    from nmsolve.hw.between import BetweenCores
    from nmsolve.hw.verify import STAGES
    from nmsolve.solvers.search.memory import own_peak

    run, routing = run or new_run(), None if mapped is None else mapped.part
    found = result.core is not None
    left = [*STAGES, *([] if mapped is None else [ROUTES])] if found else []
    report = build_report(problem, result, [], inputs, left, routing)
    with file_set(out, FILES, run) as folder:
        _write_found(folder, problem, result, routes, mapped, better, earlier)
        _write_report(folder, report)
    checks: list[CheckPart] = []
    between: BetweenCores | None = None
    if result.core is not None:
        between = BetweenCores(problem.graph, problem.machine, result.core)
        own = own_turns(turns, inputs.get("route"))
        checks, left = _checks(out, problem, result, own, patience, between, routes is not None, mapped)
    report = build_report(problem, result, checks, inputs, left, routing)
    page = _page(out, problem, result, report, patience, between, mapped)
    if own_peak() > report.memory.peak:  # the page itself took the most
        report = build_report(problem, result, checks, inputs, left, routing)
    with file_set(out, (), run) as folder:
        _write_report(folder, report)
        write_atomic(folder / "report.html", page)
    return report


def _write_found(
    folder: Path, problem: MappingProblem, result: Result, routes: list[MessageRoute] | None, mapped: MappedRoutes | None,
    better: IntArray | None, earlier: Sequence[Stage],
) -> None:  # fmt: skip
    """Everything but the report."""
    from nmsolve.cli.map_routes import write_mapped_routes
    from nmsolve.cli.progress import event_to_json
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.routes import write_routes
    from nmsolve.model.mapping.sln import is_qaplib, write_sln
    from nmsolve.solvers.mapping.certificates import certificates_to_json

    graph, machine = problem.graph, problem.machine
    kept = {"mapping.json": result.core, "better.json": better}
    if problem.migration is not None:
        kept["reference.json"] = problem.migration.reference
    for name, core in kept.items():
        if core is not None:
            write_mapping(folder / name, graph, machine, core)
    if result.core is not None and problem.one_per_core and is_qaplib(graph, machine):
        write_sln(folder / "solution.sln", graph, machine, result.core)
    if routes is not None:
        write_routes(folder / "routes.json", graph, machine, routes)
    if mapped is not None:
        write_mapped_routes(folder, mapped)
    write_atomic(folder / "certificates.json", certificates_to_json(problem, result.bounds, earlier))
    lines = "".join(json.dumps(event_to_json(e)) + "\n" for e in result.events)
    write_atomic(folder / "events.jsonl", lines)


def _write_report(folder: Path, report: Report) -> None:
    import msgspec

    write_atomic(folder / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=2))


def _checks(
    out: Path, problem: MappingProblem, result: Result, turns: str | None, patience: Patience, between: BetweenCores,
    chosen: bool, mapped: MappedRoutes | None,
) -> tuple[list[CheckPart], list[str]]:  # fmt: skip
    """What the files in ``out`` are checked for, and what was left out; ``chosen``: routes were chosen with the mapping."""
    from nmsolve.cli.check import independent_checks, routed_claims
    from nmsolve.cli.map_routes import mapped_checks
    from nmsolve.model.mapping.routes import read_routes

    assert result.core is not None
    file = read_routes(out / "routes.json") if chosen else None
    routed = None if mapped is None or not mapped.scored else routed_claims(problem.machine, out)
    checks, left = independent_checks(problem, result, turns, file, patience, between, routed)
    if mapped is not None:
        try:
            with patience.optional(CHECKS):
                checks += mapped_checks(out, problem, result.core, mapped)
        except KeyboardInterrupt:
            left.append(ROUTES)
    return checks, left


def _page(
    out: Path, problem: MappingProblem, result: Result, report: Report, patience: Patience, between: BetweenCores | None,
    mapped: MappedRoutes | None,
) -> str:  # fmt: skip
    """report.html, without pictures for whoever lost patience."""
    from nmsolve.cli.html import render_html

    command = f"nmsolve verify {out} --bound"
    try:
        with patience.optional():
            return render_html(problem, result, report, command, between, mapped=mapped)
    except KeyboardInterrupt:
        return render_html(problem, result, report, command, drawn=False)


def say(out: Path, report: Report, as_json: bool) -> None:
    """The last words: JSON result on stdout, or a summary for people."""
    import msgspec

    if as_json:
        line = {"type": "result", **msgspec.to_builtins(report), "out": str(out)}
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
        f"gap {percent(report.gap)} (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s, {_memory(report)})",
        file=stream,
    )
    for line_text in in_words(report):
        print(line_text, file=stream)
    if report.routing is not None:
        print(f"routes ({report.routing.rule}): {routing_words(report.routing)}", file=stream)
    failed = [c for c in report.checks if not c.ok]
    if report.checks or report.not_checked:
        words = [f"{len(failed)} FAILED"] if failed else ["all passed"] if not report.not_checked else []
        words += [f"not done for lack of time: {', '.join(report.not_checked)}"] if report.not_checked else []
        print("independent checks: " + "; ".join(words), file=stream)
    for c in failed:
        print(f"  FAILED {c.name}: {c.text}", file=stream)
    print(f"report: {out / 'report.html'}", file=stream)


def _memory(report: Report) -> str:
    """The memory used, and of how much where there is a budget."""
    peak = f"peak memory {-(-report.memory.peak // 2**20)}"
    return f"{peak} MiB" if report.memory.budget is None else f"{peak} of {report.memory.budget // 2**20} MiB"


def exit_code(result: Result, report: Report | RouteReport | PipelineReport, wanted_gap: float | None) -> int:
    """The exit code of a finished run (docs/files.md): do the independent checks agree, was an answer found, and is its gap the
    one that was asked for?"""
    if not all(c.ok for c in report.checks):
        return INTERNAL
    if result.status == "infeasible":
        return INFEASIBLE
    if result.solution is None:
        return INTERRUPTED if result.stop_reason == "interrupt" else UNKNOWN
    if wanted_gap is not None and (result.gap is None or result.gap > wanted_gap):
        return FEASIBLE
    return OK
