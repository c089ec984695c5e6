"""What a run leaves behind: files, the last words, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nmsolve.cli.patience import Patience
from nmsolve.cli.progress import number, percent
from nmsolve.cli.report import CheckPart, Report, build_report, in_words, routing_words
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.cli.map_routes import MappedRoutes
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.routes import MessageRoute

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


def write_answer(
    out: Path,
    problem: MappingProblem,
    result: Result,
    inputs: dict[str, Any],
    turns: str | None,
    patience: Patience,
    routes: list[MessageRoute] | None = None,
    mapped: MappedRoutes | None = None,
) -> Report:
    """Write mapping, certificates, events and report; the page last, so that its failure costs nothing else.

    Whoever loses ``patience`` gets all of these without the checks and pictures that take long.

    Parameters
    ----------
    out : an existing folder
    inputs : what ``verify`` needs to load the problem again
    turns : turn model that the routes are checked against, or None
    routes : the routes of all messages where they were chosen with the mapping
    mapped : routes that were added to the mapping
    """
    import msgspec

    from nmsolve.cli.check import independent_checks, routed_claims
    from nmsolve.cli.map_routes import mapped_checks, write_mapped_routes
    from nmsolve.cli.progress import event_to_json
    from nmsolve.hw.between import BetweenCores
    from nmsolve.model.files import write_atomic
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.sln import is_qaplib, write_sln
    from nmsolve.solvers.mapping.certificates import certificates_to_json
    from nmsolve.solvers.search.memory import own_peak

    checks: list[CheckPart] = []
    left: list[str] = []
    between: BetweenCores | None = None
    if result.core is not None:
        write_mapping(out / "mapping.json", problem.graph, problem.machine, result.core)
        if problem.one_per_core and is_qaplib(problem.graph, problem.machine):
            write_sln(out / "solution.sln", problem.graph, problem.machine, result.core)
        file = None
        if routes is not None:
            from nmsolve.model.mapping.routes import read_routes, write_routes

            write_routes(out / "routes.json", problem.graph, problem.machine, routes)
            file = read_routes(out / "routes.json")
        between = BetweenCores(problem.graph, problem.machine, result.core)
        write_mapped_routes(out, mapped)
        routed = None if mapped is None or not mapped.scored else routed_claims(problem.machine, out)
        checks, left = independent_checks(problem, result, turns, file, patience, between, routed)
        if mapped is not None:
            try:
                with patience.optional():
                    checks += mapped_checks(out, problem, result.core, mapped)
            except KeyboardInterrupt:
                left.append("routes")
    routing = None if mapped is None else mapped.part
    report = build_report(problem, result, checks, inputs, left, routing)
    write_atomic(out / "certificates.json", certificates_to_json(problem, result.bounds))
    lines = "".join(json.dumps(event_to_json(e)) + "\n" for e in result.events)
    write_atomic(out / "events.jsonl", lines)
    write_atomic(out / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=2))

    from nmsolve.cli.html import render_html

    command = f"nmsolve verify {out} --bound"
    try:
        with patience.optional():
            page = render_html(problem, result, report, command, between, mapped=mapped)
    except KeyboardInterrupt:
        page = render_html(problem, result, report, command, links=False)
    write_atomic(out / "report.html", page)
    if own_peak() > report.memory.peak:  # the page itself took the most
        report = build_report(problem, result, checks, inputs, left, routing)
        write_atomic(out / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=2))
    return report


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
        words += [f"not done (interrupted): {', '.join(report.not_checked)}"] if report.not_checked else []
        print("independent checks: " + "; ".join(words), file=stream)
    for c in failed:
        print(f"  FAILED {c.name}: {c.text}", file=stream)
    print(f"report: {out / 'report.html'}", file=stream)


def _memory(report: Report) -> str:
    """The memory used, and of how much where there is a budget."""
    peak = f"peak memory {-(-report.memory.peak // 2**20)}"
    return f"{peak} MiB" if report.memory.budget is None else f"{peak} of {report.memory.budget // 2**20} MiB"


def exit_code(result: Result, report: Report, wanted_gap: float | None) -> int:
    """The exit code of a finished run (docs/files.md)."""
    from nmsolve.cli.check import disagreements

    agreed = not disagreements(report.checks)
    return code_of(result, agreed, result.core is not None, wanted_gap)


class Ended(Protocol):
    """What every result says of how its run ended."""

    @property
    def status(self) -> str:
        """``optimal``, ``feasible``, ``infeasible`` or ``unknown``."""

    @property
    def stop_reason(self) -> str:
        """Why the search stopped."""

    @property
    def gap(self) -> float | None:
        """The proven gap, or None."""


def code_of(result: Ended, agreed: bool, found: bool, wanted_gap: float | None) -> int:
    """The exit code: do the independent checks agree, was an answer found, and is its gap the one that was asked for?"""
    if not agreed:
        return INTERNAL
    if result.status == "infeasible":
        return INFEASIBLE
    if not found:
        return INTERRUPTED if result.stop_reason == "interrupt" else UNKNOWN
    if wanted_gap is not None and (result.gap is None or result.gap > wanted_gap):
        return FEASIBLE
    return OK
