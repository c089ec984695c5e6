"""simulation.html: one file without network, drawn from a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.routing.page import energy_section, hottest_links, hottest_rows, links_picture
from nmsolve.kinds.simulation.report import (
    Runs,
    cap_words,
    cycles,
    drain_words,
    ending,
    energy_of,
    saturation_words,
    shown,
    steps_of,
)
from nmsolve.model.routing.routes import Routes
from nmsolve.report import pictures_routing
from nmsolve.report.page import fill

if TYPE_CHECKING:
    from nmsolve.kinds.simulation.report import SimulationReport
    from nmsolve.kinds.simulation.setting import Setting

Floats = list[float]
#: Loads, mean and p99 latencies, which are stable, the edge of saturation, the estimate, the unit of loads.
Curve = tuple[
    Floats,
    list[float | None],
    Floats,
    list[bool],
    tuple[float | None, float | None],
    tuple[Floats, Floats],
    str,
]
#: What the colours of links mean.
UNIT = "flits per cycle"


def render_simulation_html(setting: Setting, runs: Runs, report: SimulationReport, command: str) -> str:
    """Return the whole page. Equal arguments give equal bytes. There are no pictures of latencies or links without any."""
    load, main = shown(runs)
    machine, use = setting.machine, main.link_use
    hot = hottest_links(machine, use)
    routes = setting.routing if isinstance(setting.routing, Routes) else None
    network, compute = energy_of(setting, load, main)
    return fill(
        "simulation.html.j2",
        r=report,
        main=main,
        load=load,
        whole_steps=setting.trace is not None,
        steps=steps_of(setting, main),
        words=simulation_words(setting, report),
        curve=_curve(setting, report),
        histogram=pictures_routing.latency_histogram(main.latency.histogram) if main.latency.count else "",
        routing={
            "links": links_picture(machine, use, hot, UNIT),
            "directions": pictures_routing.direction_loads(machine, use, UNIT),
            "turn_map": "",
            "hottest": hottest_rows(machine, setting.flows, routes, use, hot),
            "unit": UNIT,
        }
        if use.any()
        else None,
        energy=energy_section(machine, network, compute, steps_of(setting, main)),
        command=command,
        ending=ending,
        cycles=cycles,
    )


def _curve(setting: Setting, report: SimulationReport) -> str:
    """Draw latency over load; "" unless several loads were simulated."""
    drawn = curve_of(setting, report)
    return "" if drawn is None else pictures_routing.latency_curve(*drawn)


def curve_of(setting: Setting, report: SimulationReport) -> Curve | None:
    """Return what :func:`nmsolve.report.pictures_routing.latency_curve` draws; None unless several loads were simulated."""
    runs = [run for run in report.runs if run.load is not None]
    if len(runs) < 2:
        return None
    sure = [(e.load, e.mean) for e in report.estimates if e.trusted and e.mean is not None]
    edge = report.saturation or {}
    return (
        [run.load or 0.0 for run in runs],
        [run.latency.mean for run in runs],
        [run.latency.p99 for run in runs],
        [run.stable for run in runs],
        (edge.get("stable"), edge.get("unstable")),
        ([x for x, _ in sure], [y for _, y in sure]),
        _load_words(setting),
    )


def _load_words(setting: Setting) -> str:
    """Return what a load is a load of."""
    return "flits per cycle of the busiest core" if setting.flows is not None else "flits per core and cycle"


def simulation_words(setting: Setting, report: SimulationReport) -> list[str]:
    """Return what was found, in sentences."""
    words = []
    if report.deadlock:
        words.append(
            "Deadlock: packets wait for each other in a ring. No route file whose numbering verifies allows this."
        )
    found = []
    if report.step_drain and not report.deadlock:
        found.append(drain_words(report.step_drain))
    if report.saturation is not None:
        found.append(saturation_words(report.saturation, f" {_load_words(setting)}"))
    if report.caps:
        found.append(cap_words(report.caps))
    words += [f"{text[0].upper()}{text[1:]}." for text in found]
    late = [run for run in report.runs if run.ended in ("time", "stopped", "cycles")]
    if late:
        words.append(
            f"{len(late)} of {len(report.runs)} runs ended before every packet had arrived "
            f"({', '.join(sorted({run.ended for run in late}))}): their latencies are those of the packets that had."
        )
    return words
