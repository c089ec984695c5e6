"""report.html of an assignment: one page without network, drawn from the report and the assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmsolve.kinds.assignment.report import assign_words
from nmsolve.kinds.contributions import found_words
from nmsolve.report import pictures
from nmsolve.report.drawing import PALETTE, svg_of
from nmsolve.report.explore import searched
from nmsolve.report.figures import amount
from nmsolve.report.page import fill, inline

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.report import AssignReport
    from nmsolve.kinds.assignment.statement import Given
    from nmsolve.model.bound import Result

#: Operators whose reasons are listed: those that would change the objective most.
LISTED = 200


def render_assign_html(
    given: Given, result: Result[Any], report: AssignReport, verify_command: str, plain: bool = False
) -> str:
    """Return the page of ``nmsolve assign``, with the network to explore unless it is ``plain`` or there are too many operators.

    Equal arguments give equal bytes.
    """
    drawn, explorer = {}, None
    if given.own is not None and result.solution is not None:
        from nmsolve.kinds.assignment.pictures import assign_drawings
        from nmsolve.report.explore_network import MOST_NODES, network_data

        drawings = assign_drawings(given.own, result.solution, report)
        if given.own.objective != "makespan":
            del drawings["schedule"]  # when what runs was not asked for
        if not plain and given.own.count <= MOST_NODES:
            from nmsolve.kinds.assignment.explore import assign_network

            search = searched(result.events, result.wall_seconds, result.bound, report.unit)
            explorer = inline(network_data(assign_network(given.own, result.solution, report), search))
            del drawings["network"]
        drawn = {name: svg_of(drawing) for name, drawing in drawings.items()}
    reasons = sorted(
        (op for op in report.operators if not op.name.startswith("@")),
        key=lambda op: -max((abs(a.change) for a in op.alternatives), default=0),
    )
    return fill(
        "assign.html.j2",
        r=report,
        words=[*found_words(report), *assign_words(report)],
        drawn=drawn,
        explorer=explorer,
        palette=list(PALETTE),
        convergence=""
        if explorer
        else pictures.convergence(result.events, result.wall_seconds, report.objective_name, report.unit),
        amount=amount,
        reasons=reasons[:LISTED],
        verify_command=verify_command,
    )
