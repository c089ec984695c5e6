"""What pages show of routes: loads of links, turns, the hottest links with the flows that cause them, energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.hw.routing.loads import route_loads
from nmsolve.kinds.contributions import found_words
from nmsolve.kinds.parts import proved_by, rests_on
from nmsolve.model.bound import Result
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import ChosenRoutes, Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.report import pictures, pictures_routing
from nmsolve.report.drawing import PALETTE
from nmsolve.report.explore import first_stage, searched
from nmsolve.report.figures import number, percent
from nmsolve.report.page import fill, inline

if TYPE_CHECKING:
    from nmsolve.hw.routing.compute import ComputeEnergy
    from nmsolve.hw.routing.energy import EnergyParts
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.routing.report import RouteReport
    from nmsolve.model.routing.problem import RoutingProblem

#: Of loads.
UNIT = "messages per step"
#: Links that get a rank, and flows that are listed for each.
HOTTEST, NAMED = 10, 4
#: Names of the parts of the energy.
PART_NAMES = {
    "message": "messages", "router": "routers", "link_x": "links along rows", "link_y": "links along columns",
    "crossing": "links between chips", "synapses": "synapses", "neurons": "neurons", "spikes": "spikes",
}  # fmt: skip


def routing_section(
    machine: Machine, flows: Flows, routes: Routes, turns: TurnSet | None, still: bool = True
) -> dict[str, Any]:
    """Return values of the template ``routing.html.j2``: pictures and the table of the hottest links.

    Parameters
    ----------
    still : with the picture of all links
    turns : the turns that go with the routes; None (or all allowed): no turn map
    """
    loads = route_loads(machine, flows, routes)
    drawings = route_drawings(machine, loads, turns)
    drawn = {name: draw(*what) for name, (draw, what) in drawings.items() if still or name != "links"}
    return {
        "links": drawn.get("links", ""),
        "directions": drawn["directions"],
        "turn_map": drawn.get("turns", ""),
        "hottest": hottest_rows(machine, flows, routes, loads, hottest_links(machine, loads)),
        "unit": UNIT,
    }


def route_sections(
    machine: Machine,
    flows: Flows,
    routes: Routes,
    turns: TurnSet | None,
    cost: ComputeEnergy | None,
    still: bool = True,
) -> dict[str, Any]:
    """Return ``routing`` and ``energy`` of a page about routes; ``cost``: what the cores themselves take in a step.

    ``still`` : with the picture of all links
    """
    from nmsolve.hw.routing.energy import energy_parts

    network = energy_parts(machine, flows, routes)
    routing = routing_section(machine, flows, routes, turns, still)
    return {"routing": routing, "energy": energy_section(machine, network, cost)}


def route_drawings(
    machine: Machine, loads: FloatArray, turns: TurnSet | None
) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return what is drawn of routes with these loads (4 * P,): by name, a drawing and its arguments.

    These are ``links``, ``directions`` and, where some are prohibited, ``turns``.
    """
    drawn: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "links": (pictures.link_loads, (*drawn_links(machine, loads, hottest_links(machine, loads)), UNIT)),
        "directions": (pictures_routing.direction_loads, (machine, loads, UNIT)),
    }
    if turns is not None and turns.prohibited(machine) > 0:
        drawn["turns"] = (pictures_routing.turn_map, (machine, turns))
    return drawn


def links_picture(machine: Machine, loads: FloatArray, hot: list[int], unit: str) -> str:
    """Return all links of the board with their loads (4 * P,), the hottest ranked."""
    return pictures.link_loads(*drawn_links(machine, loads, hot), unit)


def drawn_links(
    machine: Machine, loads: FloatArray, hot: list[int]
) -> tuple[Machine, IntArray, FloatArray, list[int]]:
    """Return what :func:`nmsolve.report.pictures.link_loads` draws of the loads (4 * P,) of all links and the hottest of them."""
    links = np.flatnonzero(link_works(machine))
    ends = np.stack([links // 4, link_ends(machine)[links]], axis=1)
    return machine, ends, loads[links], np.searchsorted(links, hot).tolist()


def hottest_links(machine: Machine, loads: FloatArray) -> list[int]:
    """Return the links with the largest loads (4 * P,), largest first, ties by number; unused ones are left out."""
    order = np.argsort(-loads, kind="stable")[:HOTTEST]
    return [int(link) for link in order if loads[link] > 0]


def hottest_rows(
    machine: Machine, flows: Flows | None, routes: Routes | None, loads: FloatArray, hot: list[int]
) -> list[dict[str, Any]]:
    """One row per link of ``hot``: where it is, its load, the largest flows over it (none where routers choose the way)."""
    ends = link_ends(machine)
    rows: list[dict[str, Any]] = []
    for link in hot:
        text, more = "", 0
        if flows is not None and routes is not None:
            over = np.unique(routes.flow[routes.links == link])
            largest = over[np.argsort(-flows.rate[over], kind="stable")[:NAMED]]
            text = "; ".join(
                f"{_ends(machine, flows, int(f))} ({number(float(flows.rate[f]))})" for f in largest
            )
            more = len(over) - len(largest)
        rows.append(
            {
                "source": place(machine, link // 4),
                "target": place(machine, int(ends[link])),
                "load": float(loads[link]),
                "flows": text + (f"; {more:,} more" if more else ""),
            }
        )
    return rows


def place(machine: Machine, core: int) -> str:
    """Return ``(row, column)`` of a core."""
    return str(divmod(core, machine.cols))


def _ends(machine: Machine, flows: Flows, flow: int) -> str:
    goals = flows.of(flow).tolist()
    more = f" and {len(goals) - 1} more" if len(goals) > 1 else ""
    return f"{place(machine, int(flows.source[flow]))} → {place(machine, goals[0])}{more}"


def energy_section(
    machine: Machine, network: EnergyParts, compute: ComputeEnergy | None, steps: int = 1
) -> dict[str, Any]:
    """Return values of the template ``energy.html.j2``; the cores' own energy over the steps is added where there are figures."""
    parts = [(PART_NAMES[k], v) for k, v in network.by_part.items() if v > 0]
    by_core, missing = network.by_core, ""
    if compute is not None and network.unit == "pJ":
        parts += [(PART_NAMES[k], v * steps) for k, v in compute.by_part.items() if v > 0]
        by_core = by_core + steps * compute.by_core
        missing = ", ".join(compute.missing)
    return {
        "bars": pictures_routing.energy_bars(parts, network.unit),
        "cores": pictures_routing.core_map(machine, by_core, f"energy of a core ({network.unit})"),
        "total": float(by_core.sum()),
        "unit": network.unit,
        "network": network.total,
        "computing": compute is not None and network.unit == "pJ",
        "missing": missing,
    }


def render_route_html(
    loaded: Loaded,
    problem: RoutingProblem,
    result: Result[ChosenRoutes],
    report: RouteReport,
    verify_command: str,
    plain: bool = False,
) -> str:
    """Return the page of ``nmsolve route``, with the board to explore unless it is ``plain``.

    Equal arguments give equal bytes.
    """
    from nmsolve.hw.routing.compute import compute_energy
    from nmsolve.hw.routing.lengths import route_lengths
    from nmsolve.model.routing.check import table_entries

    machine, flows, found = problem.machine, problem.flows, result.solution
    sections: dict[str, Any] = {"routing": None, "energy": None}
    facts: list[tuple[str, str]] = []
    explorer = None
    if found is not None and flows.count:
        routes = found.routes
        cost = compute_energy(loaded.graph, machine, loaded.core)
        sections = route_sections(machine, flows, routes, found.turns, cost, still=plain)
        if not plain:
            from nmsolve.report.explore_routes import routes_data

            search = searched(first_stage(result.events), result.wall_seconds, None)
            explorer = inline(routes_data(problem, routes, search))
        entries = table_entries(machine, flows, routes, problem.form)
        lengths = route_lengths(machine, flows, routes)
        facts = [
            ("largest routing table", f"{int(entries.max())} entries (tables by {problem.form})"),
            ("links of a route", f"{lengths.mean():.2f} on average, {int(lengths.max())} at most"),
        ]
    first = report.objectives[0].name
    return fill(
        "route.html.j2",
        r=report,
        words=[*found_words(report), *route_words(report)],
        explorer=explorer,
        palette=list(PALETTE),
        convergence=""
        if explorer
        else pictures.convergence(first_stage(result.events), result.wall_seconds, first),
        first=first,
        **sections,
        facts=facts,
        verify_command=verify_command,
    )


def route_words(report: RouteReport) -> list[str]:
    """Return what is proved, in sentences."""
    if report.status == "infeasible":
        return [f"{proved_by(report)}: no routes keep all these rules."]
    if report.status == "unknown":
        return ["No routes were found in the time given; some may still exist."]
    words = []
    before: list[str] = []
    for part in report.objectives:
        among = f"Among routes with {' and '.join(before)}: " if before else ""
        if part.proved:
            words.append(f"{among}{part.name} is {number(part.value)}, proved to be the least possible.")
        elif part.bound is not None and part.gap is not None and part.bound > 0:
            words.append(
                f"{among}{part.name} is {number(part.value)} and cannot go below {number(part.bound)}: "
                f"at most {percent(part.gap)} could still be saved."
            )
        else:
            words.append(f"{among}{part.name} is {number(part.value)}; no useful bound is proved.")
        if part.package:
            words.append(rests_on(part.package))
        before.append(f"{part.name} at most {number(part.value)}")
    if any(c.name == "flow-deadlock" and c.ok for c in report.checks):
        words.append("No deadlock is possible: channels are numbered so that every route climbs.")
    if report.long_messages:
        words.append(
            f"Multicast messages of many flits can block each other, though: {report.long_messages}."
        )
    return words
