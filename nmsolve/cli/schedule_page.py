"""report.html of a schedule: one page without network, drawn from the report and the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmsolve.cli import pictures
from nmsolve.cli.page import fill
from nmsolve.cli.schedule_report import figure, schedule_words

if TYPE_CHECKING:
    from nmsolve.cli.schedule_problem import Given
    from nmsolve.cli.schedule_report import ScheduleReport
    from nmsolve.model.bound import Result

#: Units and networks whose figures are listed.
LISTED = 200


def render_schedule_html(
    given: Given, result: Result[Any], report: ScheduleReport, verify_command: str
) -> str:
    """Return the page of ``nmsolve schedule``. Equal arguments give equal bytes."""
    drawn = {}
    if result.solution is not None:
        from nmsolve.cli.pictures_schedule import schedule_pictures

        drawn = schedule_pictures(given.problem, result.solution, report)
    return fill(
        "schedule.html.j2",
        r=report,
        words=schedule_words(report),
        drawn=drawn,
        convergence=pictures.convergence(result.events, result.wall_seconds, report.objective_name),
        figure=figure,
        listed=LISTED,
        verify_command=verify_command,
    )
