"""``nmsolve simulate``: flit by flit through the network of a machine; traffic from a mapping, a trace or a pattern."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nmsolve.cli import options as opt
from nmsolve.cli.answer import INTERNAL, OK, prepare_folder
from nmsolve.cli.patience import Patience
from nmsolve.cli.simulate_report import Runs, Says, build
from nmsolve.cli.simulate_setting import Setting, setting_of

if TYPE_CHECKING:
    from nmsolve.hw.noc import Saturation

#: Loads of a latency curve, as parts of the saturation load.
CURVE = (0.02, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class SimulateOptions:
    """The options of ``nmsolve simulate``, as typed."""

    mapping: Path | None
    graph: Path | None
    machine: str | None
    chips: str | None
    placement: Path | None
    routes: Path | None
    route: str | None
    adaptive: bool
    pattern: str | None
    load: float | None
    steps: int
    period: int
    trace: Path | None
    sweep: bool
    config: str
    cycles: int | None
    warmup: int
    time_limit: str
    seed: int
    out: Path
    json: bool


def run_simulate(o: SimulateOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.cli.main import STARTED
    from nmsolve.cli.simulation_page import render_simulation_html
    from nmsolve.model.file_set import file_set, new_run
    from nmsolve.model.files import write_atomic

    limit = opt.seconds(o.time_limit)
    setting = setting_of(o)
    prepare_folder(o.out)
    say = Says(o.json)
    with Patience(STARTED + limit) as patience:
        edge, runs = _runs(o, setting, STARTED + limit, say, lambda: patience.asked)
        report = build(setting, runs, edge, o.seed)
        run, page = new_run(), None
        with file_set(o.out, ("simulation.json", "simulation.html"), run) as folder:
            write_atomic(
                folder / "simulation.json", msgspec.json.format(msgspec.json.encode(report), indent=2)
            )
        try:
            with patience.optional():
                page = render_simulation_html(setting, runs, report, _command(o))
        except KeyboardInterrupt:
            print("no time was left for the page", file=sys.stderr)
        if page is not None:
            with file_set(o.out, (), run) as folder:
                write_atomic(folder / "simulation.html", page)
    say.result(o.out, report)
    return INTERNAL if report.deadlock else OK


def _runs(
    o: SimulateOptions, setting: Setting, end: float, say: Says, stop: Callable[[], bool]
) -> tuple[Saturation | None, Runs]:
    """What is simulated until ``end`` (``time.monotonic()``); the edge of saturation for a sweep."""
    from nmsolve.hw.noc import saturation, simulate

    left = max(0.1, end - time.monotonic())
    if o.sweep:
        assert setting.traffic_at is not None
        edge = saturation(
            setting.machine, setting.routing, setting.traffic_at, setting.config, cycles=max(o.cycles or 20_000, 5_000),
            warmup=o.warmup, seed=o.seed, time_limit=0.6 * left, stop=stop, progress=say.progress,
        )  # fmt: skip
        runs = [*edge.runs, *([] if stop() else _curve(o, setting, edge.stable, end, say, stop))]
        return edge, sorted(runs, key=lambda run: run[0] or 0.0)
    result = simulate(
        setting.machine, setting.routing, setting.traffic(o.load), setting.config, cycles=o.cycles, warmup=o.warmup,
        seed=o.seed, time_limit=left, stop=stop, progress=say.progress,
    )  # fmt: skip
    return None, [(o.load, result)]


def _curve(
    o: SimulateOptions, setting: Setting, stable: float, deadline: float, say: Says, stop: Callable[[], bool]
) -> Runs:
    """Runs at loads below saturation."""
    from nmsolve.hw.noc import latency_curve

    left = deadline - time.monotonic()
    if setting.traffic_at is None or math.isnan(stable) or left <= 0:
        return []
    found = latency_curve(
        setting.machine, setting.routing, setting.traffic_at, [part * stable for part in CURVE], setting.config,
        cycles=o.cycles or 10_000, warmup=o.warmup, seed=o.seed, time_limit=left, stop=stop, progress=say.progress,
    )  # fmt: skip
    return [(load, result) for load, result in found if result.ended not in ("time", "stopped")]


def _command(o: SimulateOptions) -> str:
    """What was asked for, as a command."""
    words = ["nmsolve simulate", *([str(o.mapping)] if o.mapping else [])]
    for name, value in (
        ("graph", o.graph), ("machine", o.machine), ("chips", o.chips), ("placement", o.placement), ("routes", o.routes),
        ("route", o.route), ("pattern", o.pattern), ("load", o.load), ("trace", o.trace), ("cycles", o.cycles),
    ):  # fmt: skip
        words += [f"--{name} {value}"] if value is not None else []
    words += [f"--{name}" for name, on in (("adaptive", o.adaptive), ("sweep", o.sweep)) if on]
    if o.trace is None and o.pattern is None and o.load is None and not o.sweep and o.steps > 1:
        words.append(f"--steps {o.steps}")
    words += [f"--period {o.period}"] if o.period else []
    return " ".join([*words, f"--config {o.config} --warmup {o.warmup} --seed {o.seed}"])
