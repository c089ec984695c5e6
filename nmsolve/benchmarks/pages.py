"""The tables of a benchmark as Markdown and, with pictures, as one HTML file without network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nmsolve.benchmarks.summary import Summary, Table
from nmsolve.model.types import FloatArray
from nmsolve.report import pictures
from nmsolve.report.page import fill


@dataclass(frozen=True)
class Head:
    """The text above the tables: how the figures were made."""

    command: str
    version: str
    machine: str
    limit: float
    seeds: int
    workers: int
    #: Runs that were not done yet when it was interrupted.
    missing: int = 0


#: Name of a curve in a summary -> title, x axis, y axis, whether x is a ratio (drawn on a logarithmic axis), caption.
PICTURES = {
    "objective": (
        "Performance profile, objective", "objective / best of all methods", "share of runs", True,
        "Share of runs (instance and seed) whose objective is within a factor of the best method's.",
    ),
    "time": (
        "Performance profile, time to 1 %", "time / shortest of all methods", "share of runs", True,
        "Share of runs that came within 1 % of the best known value within this multiple of the fastest method's time.",
    ),
    "gap": (
        "Gap over time", "seconds", "mean gap to best", False,
        "Mean over all runs; a run without a solution counts as 100 %. The area below is the primal integral.",
    ),
}  # fmt: skip


def markdown(head: Head, summaries: Sequence[Summary]) -> str:
    """Return the whole page. Each suite's figures that differ from run to run come last, under "Times"."""
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{head.command}`; definitions are in [bench.md](bench.md).",
        "",
        f"nmsolve {head.version} on {head.machine}; {head.limit:g} s wall time per run, seeds 1 to {head.seeds}, "
        f"{head.workers} runs at a time, one thread each.",
    ]
    if head.missing:
        lines += ["", f"Interrupted: {head.missing} runs are not done yet."]
    for one in summaries:
        lines += ["", f"## Suite {one.suite}"]
        for table in (*one.quality, *one.times):
            lines += ["", f"### {table.title}", ""]
            if table.about:
                lines += [table.about, ""]
            lines += _rows(table)
    return "\n".join(lines) + "\n"


def _rows(table: Table) -> list[str]:
    rule = ["---"] * table.left + ["---:"] * (len(table.head) - table.left)
    return [
        "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |"
        for row in (table.head, rule, *table.rows)
    ]


def html(head: Head, summaries: Sequence[Summary]) -> str:
    """Return the whole page with its pictures, without them if it was interrupted. Equal runs give equal bytes."""
    drawn = {one.suite: [] if head.missing else _pictures(one.curves) for one in summaries}
    return fill("bench.html.j2", head=head, summaries=summaries, drawn=drawn)


def _pictures(
    curves: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]],
) -> list[tuple[str, str, str]]:
    """Return ``(title, SVG, caption)`` of every picture that has something to show."""
    out = []
    for name, (title, x, y, ratio, caption) in PICTURES.items():
        if curves[name]:
            out.append((title, pictures.step_lines(curves[name], title, x, y, ratio=ratio), caption))
    return out
