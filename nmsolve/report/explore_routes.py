"""What the explorable page of routes holds: the board, the loads of its links, and every flow with the links that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.hw.routing.loads import route_loads
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.check import table_entries
from nmsolve.report.explore import board_of, column

if TYPE_CHECKING:
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes

#: Links of all routes and targets of all flows up to which flows are in the page; beyond that it has the loads of links.
MOST_STEPS = 2_000_000


def routes_data(problem: RoutingProblem, routes: Routes, search: dict[str, Any]) -> dict[str, Any]:
    """Return the data of the page's script, as JSON has it; ``search``: of :func:`nmsolve.report.explore.searched`."""
    machine, flows = problem.machine, problem.flows
    size, row = machine.size, np.repeat(np.arange(flows.count), np.diff(flows.indptr))
    listed = len(routes.channel) + len(flows.targets) <= MOST_STEPS
    return {
        "name": machine.name, "form": problem.form, "channels": routes.channels, "count": flows.count,
        "board": board_of(machine, False) | {"ends": column(link_ends(machine)),
            "works": column(link_works(machine).astype(np.uint8))},
        "loads": column(route_loads(machine, flows, routes)),
        "sent": column(np.bincount(flows.source, flows.rate, size)),
        "received": column(np.bincount(flows.targets, flows.rate[row], size)),
        "entries": column(table_entries(machine, flows, routes, problem.form)),
        "flows": None if not listed else {
            "source": column(flows.source), "rate": column(flows.rate),
            "goals": column(np.diff(flows.indptr)), "target": column(flows.targets),
            "steps": column(np.diff(routes.indptr)), "link": column(routes.links),
            "channel": column(routes.channel % routes.channels) if routes.channels > 1 else None,
        },
        **search,
    }  # fmt: skip
