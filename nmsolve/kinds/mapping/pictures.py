"""Pictures of a mapping."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nmsolve.report import pictures
from nmsolve.report.core_figures import core_share, resource_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.kinds.kind import Pictures
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray


def mapping_pictures(problem: MappingProblem, core: IntArray) -> Pictures:
    """Return the pictures of the mapping ``core`` (n,): ``cores``, ``resources``, and ``links`` where the machine has some."""
    from nmsolve.hw.routes import has_routes

    names, used, limits = resource_table(problem, core)
    share, label, _ = core_share(names, used, limits)
    kinds: Pictures = {
        "cores": partial(pictures.core_use.figure, problem.machine, share, label),
        "resources": partial(pictures.resource_use.figure, names, used, limits, problem.machine.usable),
    }
    if has_routes(problem.machine):
        kinds["links"] = partial(_links, problem, core)
    return kinds


def _links(problem: MappingProblem, core: IntArray) -> Figure:
    """Draw the traffic on every link by the machine's own routes."""
    from nmsolve.hw.routes import link_loads
    from nmsolve.kinds.routing.page import drawn_links, hottest_links

    machine = problem.machine
    loads = link_loads(problem.graph, machine, core)
    return pictures.link_loads.figure(*drawn_links(machine, loads, hottest_links(machine, loads)))
