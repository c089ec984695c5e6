"""report.html of a schedule: one page without network, drawn from the report and the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmsolve.kinds.contributions import found_words
from nmsolve.kinds.schedule.report import figure, schedule_words
from nmsolve.report import pictures
from nmsolve.report.drawing import svg_of
from nmsolve.report.figures import amount, percent
from nmsolve.report.page import fill, inline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nmsolve.hw.schedule.critical import Link
    from nmsolve.kinds.schedule.report import ScheduleReport
    from nmsolve.kinds.schedule.statement import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule

#: Units and networks whose figures are listed, and links of the critical path.
LISTED, LINKS = 200, 40
#: What the links of the critical path wait for, in words.
REASONS = {
    "data": "data of {0} arrive",
    "unit": "{0} leaves its units",
    "resource": "{0} gives back a resource",
    "release": "it is released",
    "start": "nothing",
}
#: The first of them where data are there at once.
NEEDED = "{0} has ended, which it needs"


def render_schedule_html(
    given: Given, result: Result[Any], report: ScheduleReport, verify_command: str, plain: bool = False
) -> str:
    """Return the page of ``nmsolve schedule``; a ``plain`` one has a still picture in place of the script.

    Equal arguments give equal bytes.
    """
    drawn = {} if result.solution is None else _drawn(given, result.solution, report, plain)
    return fill(
        "schedule.html.j2",
        r=report,
        words=[*found_words(report), *schedule_words(report)],
        drawn=drawn,
        convergence=pictures.convergence(result.events, result.wall_seconds, report.objective_name),
        figure=figure,
        listed=LISTED,
        verify_command=verify_command,
    )


def _drawn(given: Given, answer: Schedule, report: ScheduleReport, plain: bool) -> dict[str, Any]:
    """Return what is drawn and said of a schedule: data of the script, critical path, still pictures."""
    from nmsolve.check.schedule.reevaluate import reevaluate
    from nmsolve.hw.schedule.critical import chain_parts, critical_chain
    from nmsolve.kinds.schedule.data import page_data
    from nmsolve.kinds.schedule.pictures import schedule_drawings

    problem = given.problem
    seen, chain = reevaluate(problem, answer), critical_chain(problem, answer)
    drawings = schedule_drawings(problem, answer, report)
    page, end = page_data(given, answer, seen, chain), seen.objectives["makespan"]
    return {
        "data": "" if plain else inline(page.data),
        "left_out": page.left_out,
        "on_units": bool(page.data["on"]),
        "memory": bool(page.data.get("memory")),
        "interactions": bool(page.data["partner"]),
        "deadlines": any(0 <= mark[1] <= end for mark in page.data["marks"]),
        "dues": any(0 <= mark[2] <= end for mark in page.data["marks"]),
        "moves": bool(page.data.get("moves")),
        "path_words": _path_words(chain, chain_parts(chain, end)),
        "path": _path_rows(problem, answer, chain),
        "path_left": len(chain) - LINKS,
        "tick": amount(given.stated.tick * 1e12, "ps") if given.stated.tick else "",
        **{name: svg_of(drawing) for name, drawing in drawings.items() if plain or name != "schedule"},
    }


def _path_words(chain: Sequence[Link], parts: dict[str, int]) -> str:
    """Say where the ticks of the critical path go."""
    total = sum(parts.values())
    what = {
        "run": "running", "load": "loading", "transfer": "moving and converting data", "wait": "waiting for nothing on this path",
        "release": "before the first release",
    }  # fmt: skip
    words = [f"{percent(v / total)} {what[k]} ({v:,})" for k, v in parts.items() if v] if total else []
    count = "one process" if len(chain) == 1 else f"{len(chain):,} processes"
    return f"The last end, {total:,}, is reached over {count}: {', '.join(words)}."


def _path_rows(problem: ScheduleProblem, answer: Schedule, chain: Sequence[Link]) -> list[dict[str, str]]:
    """Return a row for every link that is listed."""
    rows, end = [], answer.end(problem)
    for link in chain[:LINKS]:
        k = int(problem.modes.unit_set[answer.mode[link.process]])
        names = [] if k < 0 else [problem.units.names[u] for u in problem.sets.of(k).tolist()]
        source = problem.labels[link.source] if link.source >= 0 else ""
        rows.append(
            {
                "process": problem.labels[link.process],
                "units": ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else ""),
                "waits": (REASONS["data"] if link.away else NEEDED).format(source)
                if link.reason == "data"
                else REASONS[link.reason].format(source),
                "away": f"{link.away:,}" if link.away else "",
                "wait": f"{link.wait:,}" if link.wait else "",
                "start": f"{int(answer.start[link.process]):,}",
                "end": f"{int(end[link.process]):,}",
            }
        )
    return rows
