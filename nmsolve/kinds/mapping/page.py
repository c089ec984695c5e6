"""report.html: one file without network, drawn from the report and the final mapping; and its pictures one by one."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.hw.routing.compute import compute_energy
from nmsolve.kinds.contributions import found_words
from nmsolve.kinds.mapping.report import Report, in_words, routing_words, tick_words, waiting_words
from nmsolve.model.between import BetweenCores
from nmsolve.model.bound import Result
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.report import pictures
from nmsolve.report.core_figures import core_share, populations, resource_table
from nmsolve.report.drawing import PALETTE
from nmsolve.report.figures import number
from nmsolve.report.page import fill, inline
from nmsolve.report.use_chart import use_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmsolve.kinds.kind import Pictures
    from nmsolve.kinds.mapping.given import MappedRoutes
    from nmsolve.model.types import IntArray


def render_html(
    problem: MappingProblem,
    result: Result,
    report: Report,
    verify_command: str,
    drawn: bool = True,
    mapped: MappedRoutes | None = None,
    plain: bool = False,
) -> str:
    """Return the whole page: the mapping to explore, or in still pictures.

    Parameters
    ----------
    drawn : False leaves out all pictures, which take nearly all of the time
    mapped : routes that were added to the mapping; their links are drawn in place of the machine's own
    plain : still pictures alone, without a script

    Notes
    -----
    Equal problem, result and report give equal bytes.
    """
    images = dict.fromkeys(("link_loads", "convergence", "core_use", "populations", "resource_use"), "")
    lively = drawn and not plain and result.core is not None
    hottest: list[dict[str, Any]] = []
    caption = "No mapping to draw."
    between = None
    if drawn and result.core is not None:
        between = BetweenCores(problem.graph, problem.machine, result.core)
    if between is not None and mapped is None:
        # first, as it reads the graph: what draws takes memory, too
        images["link_loads"], hottest = _link_picture(problem, between, lively)
    if drawn and not lively:
        scope = report.bound_scope or "none"
        images["convergence"] = pictures.convergence(result.events, result.wall_seconds, scope)
    if drawn and result.core is not None:
        names, used, limits = resource_table(problem, result.core)
        share, label, caption = core_share(names, used, limits)
        if not lively:
            images["core_use"] = pictures.core_use(problem.machine, share, label)
        of, kinds = populations(problem.graph)
        if kinds and not lively:
            amounts = np.zeros((problem.machine.size, len(kinds)), np.int64)
            np.add.at(amounts, (result.core, of), 1)
            alone = (amounts > 0).sum(axis=1).max(initial=0) <= 1
            if alone or len(kinds) <= len(PALETTE):  # else colours do not tell them apart
                images["populations"] = pictures.populations(problem.machine, amounts, kinds)
        draw_use = use_chart if lively else pictures.resource_use
        images["resource_use"] = draw_use(names, used, limits, problem.machine.usable)
    sections: dict[str, Any] = {"routing": None, "energy": None}
    if drawn and mapped is not None and result.core is not None:
        from nmsolve.kinds.routing.page import route_sections

        flows, cost = mapped.problem.flows, compute_energy(problem.graph, problem.machine, result.core)
        sections = route_sections(problem.machine, flows, mapped.routes, mapped.turns, cost)
    explorer = None
    if lively:
        from nmsolve.report.explore import explored, searched

        assert result.core is not None
        search = searched(result.events, result.wall_seconds, result.bound)
        explorer = inline(explored(problem, result.core, search, between, own_routes=mapped is None))
    return fill(
        "report.html.j2",
        r=report,
        explorer=explorer,
        palette=list(PALETTE),
        machine_name=PurePath(report.machine.name).name,
        words=[
            *found_words(report),
            *in_words(report),
            *waiting_words(problem, result.core),
            *tick_words(report.tick),
        ],
        checks=report.checks,
        pictures=images,
        core_use_caption=caption,
        hottest=hottest,
        **sections,
        routing_words="" if report.routing is None else routing_words(report.routing),
        own_routes="XY routes"
        if not problem.machine.faulty_links
        else "XY routes, with detours round dead links",
        verify_command=verify_command,
    )


def _link_picture(
    problem: MappingProblem, between: BetweenCores, lively: bool
) -> tuple[str, list[dict[str, Any]]]:
    """Link heat map, not for a ``lively`` page, and the ten hottest links; empty for machines that are not meshes."""
    from nmsolve.hw.routes import has_routes, hottest_links, link_loads
    from nmsolve.kinds.routing.page import links_picture, place

    graph, machine = problem.graph, problem.machine
    if not has_routes(machine):
        return "", []
    loads = link_loads(between, machine, between.at)
    if graph.multicast.all():  # otherwise only the graph knows the senders
        hot = hottest_links(between, machine, between.at, loads=loads)
    else:
        hot = hottest_links(graph, machine, between.core, loads=loads)
    rows = [
        {
            "source": place(machine, h.start),
            "target": place(machine, h.end),
            "load": h.load,
            "messages": ", ".join(f"{graph.node_id(u)} ({number(w)})" for u, w in h.messages[:4]),
        }
        for h in hot
    ]
    return "" if lively else links_picture(machine, loads, [h.link for h in hot], pictures.LINK_LOAD), rows


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
