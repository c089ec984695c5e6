"""report.html of an assignment: one page without network, drawn from the report and the assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmsolve.cli import pictures
from nmsolve.cli.assign_report import assign_words
from nmsolve.cli.page import fill
from nmsolve.cli.progress import amount

if TYPE_CHECKING:
    from nmsolve.cli.assign_problem import Given
    from nmsolve.cli.assign_report import AssignReport
    from nmsolve.model.bound import Result

#: Operators whose reasons are listed: those that would change the objective most.
LISTED = 200


def render_assign_html(given: Given, result: Result[Any], report: AssignReport, verify_command: str) -> str:
    """Return the page of ``nmsolve assign``. Equal arguments give equal bytes."""
    drawn = {}
    if given.own is not None and result.solution is not None:
        from nmsolve.cli.pictures_assign import assign_pictures

        drawn = assign_pictures(given.own, result.solution, report)
    reasons = sorted(
        (op for op in report.operators if not op.name.startswith("@")),
        key=lambda op: -max((abs(a.change) for a in op.alternatives), default=0),
    )
    return fill(
        "assign.html.j2",
        r=report,
        words=assign_words(report),
        drawn=drawn,
        convergence=pictures.convergence(
            result.events, result.wall_seconds, report.objective_name, report.unit
        ),
        amount=amount,
        reasons=reasons[:LISTED],
        verify_command=verify_command,
    )
