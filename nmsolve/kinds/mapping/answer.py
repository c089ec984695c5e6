"""The end of a mapping run: its files, checks and page, the last lines of output, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import Answer, as_json, event_lines, last_words
from nmsolve.kinds.mapping.found import ALONE, MAP_FILES, Beside
from nmsolve.kinds.mapping.report import CheckPart, Report, build_report, in_words, routing_words
from nmsolve.kinds.patience import CHECKS, OutOfTime, Patience
from nmsolve.model.bound import Result
from nmsolve.model.file_set import new_run
from nmsolve.model.files import write_atomic
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.found import MappedRoutes
    from nmsolve.model.between import BetweenCores
    from nmsolve.model.mapping.problem import MappingProblem

#: What is checked of routes that were added to a mapping, beside :data:`nmsolve.check.mapping.verify.STAGES`.
ROUTES = "routes"


def write_answer(
    out: Path, problem: MappingProblem, result: Result, inputs: dict[str, Any], turns: str | None, patience: Patience,
    beside: Beside = ALONE, run: str | None = None, plain: bool = False,
) -> Report:  # fmt: skip
    """Write mapping, certificates, events and report; then check, draw, and write report and page with what that gave.

    Whoever loses ``patience`` gets them without the checks and pictures that take long.

    Parameters
    ----------
    out : an existing folder
    inputs : what ``verify`` needs to load the problem again
    turns : prohibited turns (:func:`nmsolve.model.turns.turn_set`), or None
    run : id of the run that these files belong to; a new one if not given
    plain : the page has still pictures alone
    """
    from nmsolve.kinds.mapping.turns import own_turns
    from nmsolve.model.between import BetweenCores
    from nmsolve.model.host.memory import own_peak

    run, mapped = run or new_run(), beside.mapped
    answer, routing = Answer(out, MAP_FILES, run, alone=True), None if mapped is None else mapped.part
    report = write_unchecked(out, problem, result, inputs, run, beside)
    left = list(report.not_checked)
    checks: list[CheckPart] = []
    between: BetweenCores | None = None
    if result.core is not None:
        between = BetweenCores(problem.graph, problem.machine, result.core)
        own = own_turns(turns, inputs.get("route"))
        checks, left = _checks(out, problem, result, own, patience, between, beside)
    report = build_report(problem, result, checks, inputs, left, routing)
    page = _page(out, problem, result, report, patience, between, mapped, plain)
    if own_peak() > report.memory.peak:  # the page itself took the most
        report = build_report(problem, result, checks, inputs, left, routing)
    with answer.added() as files:
        files |= {"report.json": as_json(report), "report.html": page}
    return report


def write_unchecked(
    out: Path,
    problem: MappingProblem,
    result: Result,
    inputs: dict[str, Any],
    run: str,
    beside: Beside = ALONE,
) -> Report:
    """Write mapping, certificates, events and a report that says what is not checked yet; see :func:`write_answer`."""
    from nmsolve.check.mapping.verify import STAGES

    mapped = beside.mapped
    left = [] if result.core is None else [*STAGES, *([] if mapped is None else [ROUTES])]
    with Answer(out, MAP_FILES, run, alone=True).found() as folder:
        _write_found(folder, problem, result, beside)
        report = build_report(problem, result, [], inputs, left, None if mapped is None else mapped.part)
        write_atomic(folder / "report.json", as_json(report))
    return report


def _write_found(folder: Path, problem: MappingProblem, result: Result, beside: Beside) -> None:
    """Write everything except the report."""
    from nmsolve.check.mapping.recheck import certificates_to_json
    from nmsolve.kinds.mapping.routes import write_mapped_routes
    from nmsolve.learn.checkpoint import METHODS
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.processors import write_processors
    from nmsolve.model.mapping.routes import write_routes
    from nmsolve.model.mapping.sln import is_qaplib, write_sln

    graph, machine = problem.graph, problem.machine
    kept = {"mapping.json": result.core, "better.json": beside.better}
    if problem.migration is not None:
        kept["reference.json"] = problem.migration.reference
    for name, core in kept.items():
        if core is not None:
            write_mapping(folder / name, graph, machine, core)
    if result.core is not None and problem.one_per_core and is_qaplib(graph, machine):
        write_sln(folder / "solution.sln", graph, machine, result.core)
    if result.core is not None and any(share.engine == METHODS["m1"] for share in result.engines):
        write_processors(folder, graph, machine, result.core)
    if beside.routes is not None:
        write_routes(folder / "routes.json", graph, machine, beside.routes)
    if beside.mapped is not None:
        write_mapped_routes(folder, beside.mapped)
    write_atomic(folder / "certificates.json", certificates_to_json(problem, result.bounds, beside.earlier))
    write_atomic(folder / "events.jsonl", event_lines(result.events))


def _checks(
    out: Path, problem: MappingProblem, result: Result, turns: str | None, patience: Patience, between: BetweenCores,
    beside: Beside,
) -> tuple[list[CheckPart], list[str]]:  # fmt: skip
    """Return the checks of the files in ``out``, and what was left out."""
    from nmsolve.kinds.mapping.check import independent_checks, routed_claims
    from nmsolve.kinds.mapping.routes import mapped_checks
    from nmsolve.model.mapping.routes import read_routes

    assert result.core is not None
    mapped = beside.mapped
    file = None if beside.routes is None else read_routes(out / "routes.json")
    routed = None if mapped is None or not mapped.scored else routed_claims(problem.machine, out)
    checks, left = independent_checks(problem, result, turns, file, patience, between, routed)
    if mapped is not None:
        try:
            core = result.core
            checks += patience.optional(lambda: mapped_checks(out, problem, core, mapped), CHECKS)
        except OutOfTime:
            left.append(ROUTES)
    return checks, left


def _page(
    out: Path, problem: MappingProblem, result: Result, report: Report, patience: Patience, between: BetweenCores | None,
    mapped: MappedRoutes | None, plain: bool,
) -> str:  # fmt: skip
    """Write report.html, without pictures if time is up."""
    from nmsolve.kinds.mapping.page import render_html

    command = f"nmsolve verify {out} --bound"
    return patience.page(
        lambda: render_html(problem, result, report, command, between, mapped=mapped, plain=plain),
        lambda: render_html(problem, result, report, command, drawn=False),
    )


def say(out: Path, report: Report, as_json: bool) -> None:
    """Print the result: JSON on stdout, or a summary for people."""
    last_words(out, report, as_json, _words(report), ("report.html", "report.json"))


def _words(report: Report) -> Iterator[str]:
    engines = [e for e in report.engines if e.offers or e.bound is not None or e.status]
    if engines:
        yield f"\n{'engine':16} {'CPU s':>8} {'accepted':>9} {'its best':>16} {'its bound':>16}  ended"
    for e in engines:
        figures = f"{e.cpu_seconds:8.2f} {e.incumbents:9} {number(e.best):>16} {number(e.bound):>16}"
        yield f"{e.engine:16} {figures}  {e.status}"
    yield (
        f"\n{report.status}: {report.objective_name} {number(report.objective)}, bound {number(report.bound)}, "
        f"gap {percent(report.gap)} (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s, {_memory(report)})"
    )
    yield from in_words(report)
    if report.routing is not None:
        yield f"routes ({report.routing.rule}): {routing_words(report.routing)}"
    failed = [c for c in report.checks if not c.ok]
    if report.checks or report.not_checked:
        words = [f"{len(failed)} FAILED"] if failed else ["all passed"] if not report.not_checked else []
        words += [f"not done for lack of time: {', '.join(report.not_checked)}"] if report.not_checked else []
        yield "independent checks: " + "; ".join(words)
    for c in failed:
        yield f"  FAILED {c.name}: {c.text}"


def _memory(report: Report) -> str:
    """Return the memory used, and the budget if there is one."""
    peak = f"peak memory {-(-report.memory.peak // 2**20)}"
    return f"{peak} MiB" if report.memory.budget is None else f"{peak} of {report.memory.budget // 2**20} MiB"
