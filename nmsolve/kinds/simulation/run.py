"""``nmsolve simulate``: flit by flit through the network of a machine; traffic from a mapping, a trace or a pattern."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import INTERNAL, OK, Answer, as_json, last_words, prepare_folder
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.simulation.options import SimulateOptions
from nmsolve.kinds.simulation.report import Runs, Says, build, simulated_words
from nmsolve.kinds.simulation.setting import Setting, setting_of
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.clock import now

if TYPE_CHECKING:
    from nmsolve.hw.noc import Progress, Saturation
    from nmsolve.kinds.simulation.report import SimulationReport

FILES = ("simulation.html", "simulation.json")
#: Loads of a latency curve, as parts of the saturation load.
CURVE = (0.02, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)


def run_simulate(o: SimulateOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input
    """
    limit = opt.seconds(o.time_limit)
    setting = setting_of(o)
    prepare_folder(o.out, FILES, o)
    with TimeLeft(clock.end(limit)) as time_left:
        edge, runs = simulated(o, setting, clock.end(limit), Says().progress, lambda: time_left.asked)
        report = build(setting, runs, edge, o.seed)
        write_simulation(o, setting, runs, report, time_left)
    last_words(o.out, report, o.json, simulated_words(report), FILES)
    return INTERNAL if report.deadlock else OK


def write_simulation(
    o: SimulateOptions, setting: Setting, runs: Runs, report: SimulationReport, time_left: TimeLeft
) -> None:
    """Write simulation.json and, if there is time for it, the page."""
    from nmsolve.kinds.simulation.page import render_simulation_html
    from nmsolve.model.files import write_atomic

    answer = Answer(o.out, FILES)
    command = as_command("simulate", o, ("config", "warmup", "seed"), ("time_limit", "out", "json"))
    with answer.found() as folder:
        write_atomic(folder / "simulation.json", as_json(report))
    with answer.added() as files:
        files["simulation.html"] = time_left.page(
            lambda: render_simulation_html(setting, runs, report, command)
        )


#: Told how far a simulation is.
Tell = Callable[["Progress"], None]


def simulated(
    o: SimulateOptions, setting: Setting, end: float, tell: Tell, stop: Callable[[], bool]
) -> tuple[Saturation | None, Runs]:
    """Return what is simulated until ``end`` (``now()``); the edge of saturation for a sweep."""
    from nmsolve.hw.noc import saturation, simulate

    left = max(0.1, end - now())
    if o.sweep:
        assert setting.traffic_at is not None
        edge = saturation(
            setting.machine, setting.routing, setting.traffic_at, setting.config, cycles=max(o.cycles or 20_000, 5_000),
            warmup=o.warmup, seed=o.seed, time_limit=0.6 * left, stop=stop, progress=tell,
        )  # fmt: skip
        runs = [*edge.runs, *([] if stop() else _curve(o, setting, edge.stable, end, tell, stop))]
        return edge, sorted(runs, key=lambda run: run[0] or 0.0)
    result = simulate(
        setting.machine, setting.routing, setting.traffic(o.load), setting.config, cycles=o.cycles, warmup=o.warmup,
        seed=o.seed, time_limit=left, stop=stop, progress=tell,
    )  # fmt: skip
    return None, [(o.load, result)]


def _curve(
    o: SimulateOptions, setting: Setting, stable: float, deadline: float, tell: Tell, stop: Callable[[], bool]
) -> Runs:
    """Return runs at loads below saturation."""
    from nmsolve.hw.noc import latency_curve

    left = deadline - now()
    if setting.traffic_at is None or math.isnan(stable) or left <= 0:
        return []
    found = latency_curve(
        setting.machine, setting.routing, setting.traffic_at, [part * stable for part in CURVE], setting.config,
        cycles=o.cycles or 10_000, warmup=o.warmup, seed=o.seed, time_limit=left, stop=stop, progress=tell,
    )  # fmt: skip
    return [(load, result) for load, result in found if result.ended not in ("time", "stopped")]
