"""``nmsolve simulate``: flit by flit through the network of a machine; traffic from a mapping, a trace or a pattern."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nmsolve import __version__
from nmsolve.cli import options as opt
from nmsolve.cli.answer import INTERNAL, OK, prepare_folder
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.hw.noc import Progress, RouterConfig, SimulationResult, Trace, Traffic
    from nmsolve.model.machine import Machine
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.routing.turns import TurnSet

#: Loads of a latency curve, as parts of the saturation load.
CURVE = (0.02, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
#: Seconds between two lines of progress.
QUIET = 2.0


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


@dataclass(frozen=True)
class Setting:
    """What is simulated: a machine, a router, routes or turns, and traffic as a function of the load (None: a trace).

    ``flows`` are those of the mapping or of the trace; None for a pattern.
    """

    machine: Machine
    config: RouterConfig
    routing: Routes | TurnSet
    traffic_at: Callable[[float], Traffic] | None
    trace: Trace | None
    flows: Flows | None


class LatencyPart(msgspec.Struct, frozen=True):
    """Latency of packets in cycles."""

    packets: int
    mean: float | None
    median: int
    p90: int
    p99: int
    worst: int


class RunPart(msgspec.Struct, frozen=True):
    """One simulated load (None: a trace); flits per core and cycle, latencies in cycles."""

    load: float | None
    stable: bool
    ended: str
    cycles: int
    offered: float
    accepted: float
    latency: LatencyPart
    network_latency: LatencyPart
    undelivered: int
    cycles_per_second: float


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object in simulation.json; ``energy`` is that of the measured window in ``energy_unit``, by part."""

    version: str
    machine: str
    routing: str
    traffic: str
    config: dict[str, Any]
    runs: list[RunPart]
    saturation: dict[str, float | None] | None
    step_drain: list[int]
    link_flits: list[int]
    energy: dict[str, float]
    energy_unit: str
    deadlock: list[str]
    seed: int
    seconds: float


def run_simulate(o: SimulateOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.hw.noc import saturation, simulate

    limit = opt.seconds(o.time_limit)
    setting = setting_of(o)
    prepare_folder(o.out)
    say = _Says(o.json)
    begin = time.monotonic()
    runs: list[tuple[float | None, SimulationResult]] = []
    edge = None
    if o.sweep:
        if setting.traffic_at is None:
            raise InputError("--sweep needs traffic that can be scaled", "--sweep", "no --trace")
        edge = saturation(
            setting.machine, setting.routing, setting.traffic_at, setting.config, cycles=max(o.cycles or 20_000, 5_000),
            warmup=o.warmup, seed=o.seed, time_limit=0.6 * limit, progress=say.progress,
        )  # fmt: skip
        runs = [*edge.runs, *_curve(o, setting, edge.stable, begin + limit, say)]
        runs.sort(key=lambda run: run[0] or 0.0)
    else:
        load = o.load
        traffic = setting.trace if setting.traffic_at is None or load is None else setting.traffic_at(load)
        if traffic is None:
            raise InputError("a pattern without a load", "--pattern", "--load FLITS, or --sweep")
        runs = [(
            load,
            simulate(
                setting.machine, setting.routing, traffic, setting.config, cycles=o.cycles, warmup=o.warmup, seed=o.seed,
                time_limit=limit, progress=say.progress,
            ),
        )]  # fmt: skip
    report = build(o, setting, runs, edge)
    write(o.out, setting, runs, report)
    say.result(o.out, report)
    return INTERNAL if report.deadlock else OK


def _curve(
    o: SimulateOptions, setting: Setting, stable: float, deadline: float, say: _Says
) -> list[tuple[float | None, SimulationResult]]:
    """Runs at loads below saturation."""
    from nmsolve.hw.noc import latency_curve

    left = deadline - time.monotonic()
    if setting.traffic_at is None or math.isnan(stable) or left <= 0:
        return []
    found = latency_curve(
        setting.machine, setting.routing, setting.traffic_at, [part * stable for part in CURVE], setting.config,
        cycles=o.cycles or 10_000, warmup=o.warmup, seed=o.seed, time_limit=left, progress=say.progress,
    )  # fmt: skip
    return [(load, result) for load, result in found if result.ended not in ("time", "stopped")]


def setting_of(o: SimulateOptions) -> Setting:
    """Everything the options name, loaded.

    Raises
    ------
    InputError : options that do not go together, wrong files
    """
    config = router(o.config)
    if o.pattern is not None:
        return _pattern(o, config)
    if o.mapping is None:
        raise InputError("nothing to simulate", "", "a mapping, or --pattern with --machine")
    from nmsolve.cli.loading import load_answer
    from nmsolve.hw.noc import read_trace, steps_of_flows
    from nmsolve.model.routing.flows import Flows, flows_of

    loaded = load_answer(o.mapping, o.graph, o.machine, o.chips, o.placement)
    machine = loaded.machine
    if o.trace is not None:
        if o.load is not None or o.sweep:
            raise InputError("a trace has its own load", "--trace", "no --load and no --sweep")
        trace = read_trace(o.trace, machine, o.period)
        flows = Flows(trace.source, trace.indptr, trace.targets, np.ones(trace.flows))
        routing = _routing(o, machine, flows, None)
        return Setting(machine, config, routing, None, _split(trace, routing), flows)
    flows = flows_of(loaded.graph, loaded.core, machine.size)
    if not flows.count:
        raise InputError("every message stays on its core", str(o.mapping), "a mapping with traffic")
    routing = _routing(o, machine, flows, loaded.folder)
    busiest = float(np.bincount(flows.source, flows.rate).max())

    def traffic_at(load: float) -> Traffic:
        from nmsolve.hw.noc import of_flows

        traffic: Traffic = _split(of_flows(flows, busiest * config.packet_flits / load), routing)
        return traffic

    once: Trace | None = None
    if o.load is None and not o.sweep:
        once = _split(steps_of_flows(flows, o.steps, o.period, o.seed), routing)
    return Setting(machine, config, routing, traffic_at, once, flows)


def _pattern(o: SimulateOptions, config: RouterConfig) -> Setting:
    """Traffic of a pattern on a machine."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.noc import pattern

    if o.machine is None or o.mapping is not None:
        raise InputError("a pattern needs a machine and no mapping", "--pattern", "--machine mesh:8x8")
    machine = load_machine(o.machine, chips=opt.chip_grid(o.chips))
    name = o.pattern or ""

    def traffic_at(load: float) -> Traffic:
        return pattern(machine, name, load, config, hotspots=[_middle(machine)])

    routing = _of_rule(o, machine, None, traffic_at(1e-3))
    return Setting(machine, config, routing, traffic_at, None, None)


def _middle(machine: Machine) -> int:
    """The usable core nearest to the middle of the board: the hotspot."""
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    far = abs(2 * r - machine.rows + 1) + abs(2 * c - machine.cols + 1)
    return int(np.argmin(np.where(machine.usable, far, np.iinfo(np.int64).max)))


def _split(traffic: Any, routing: Routes | TurnSet) -> Any:
    """One flow for every target where routers choose the way."""
    from nmsolve.model.routing.turns import TurnSet

    return traffic.unicast() if isinstance(routing, TurnSet) else traffic


def _routing(o: SimulateOptions, machine: Machine, flows: Flows, folder: Path | None) -> Routes | TurnSet:
    """The routes of the file named, of the one beside the mapping, or of the rule."""
    beside = folder / "flow-routes.json" if folder is not None and o.route is None else None
    path = o.routes or (beside if beside is not None and beside.exists() else None)
    if path is None:
        return _of_rule(o, machine, flows, None)
    from nmsolve.model.routing.files import read_flow_routes

    file = read_flow_routes(path, machine)
    if file.problem.flows.hash != flows.hash:
        raise InputError(
            "the routes are for other traffic", str(path), "routes of this mapping (`nmsolve route`)"
        )
    return file.routes


def _of_rule(
    o: SimulateOptions, machine: Machine, flows: Flows | None, traffic: Traffic | None
) -> Routes | TurnSet:
    """Routes, or the turns that routers may choose among, of ``--route``."""
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.hw.turns import turn_set
    from nmsolve.model.routing.flows import Flows

    rule = o.route or "xy"
    if o.adaptive or (flows is None and rule not in ("xy", "yx")):
        return turn_set(rule, machine)
    if flows is None and traffic is not None:  # XY for a pattern, packets to the own core included
        return turn_set(rule, machine)
    assert isinstance(flows, Flows)
    return named_routes(machine, flows, rule)


def router(text: str) -> RouterConfig:
    """A preset by name, or the parameters in a .toml file.

    Raises
    ------
    InputError : no such preset or file, an unknown parameter, a wrong value
    """
    from nmsolve.hw.noc import CONFIGS, RouterConfig

    if text in CONFIGS:
        return CONFIGS[text]
    if not text.endswith(".toml"):
        raise InputError(f"unknown router {text!r}", "--config", f"{', '.join(CONFIGS)}, or a .toml file")
    from nmsolve.model.files import read_limited

    try:
        return msgspec.toml.decode(read_limited(text), type=RouterConfig)
    except msgspec.MsgspecError as error:
        raise InputError(str(error), text, "parameters of a router (docs/simulator.md)") from None
    except InputError as error:
        raise InputError(error.what, text, error.expected) from None


def build(
    o: SimulateOptions,
    setting: Setting,
    runs: list[tuple[float | None, SimulationResult]],
    edge: Any,
) -> SimulationReport:
    """Put the results into the shape of simulation.json; link use and energy are those of the highest stable load."""
    from nmsolve.hw.routing.energy import counts_energy

    main = shown(runs)
    flits = setting.config.packet_flits
    sent = main.injected / flits
    energy = counts_energy(setting.machine, sent, main.link_flits / flits)
    return SimulationReport(
        version=__version__,
        machine=setting.machine.name,
        routing=main.routing,
        traffic=main.traffic,
        config=msgspec.to_builtins(setting.config),
        runs=[_run_part(load, result) for load, result in runs],
        saturation=None
        if edge is None
        else {
            "stable": _plain(edge.stable),
            "unstable": _plain(edge.unstable),
            "accepted": _plain(edge.accepted),
        },
        step_drain=main.step_drain.tolist(),
        link_flits=main.link_flits.tolist(),
        energy={k: float(v) for k, v in energy.by_part.items()},
        energy_unit=energy.unit,
        deadlock=[str(w) for _, r in runs for w in r.deadlock],
        seed=o.seed,
        seconds=round(sum(r.seconds for _, r in runs), 3),
    )


def shown(runs: list[tuple[float | None, SimulationResult]]) -> SimulationResult:
    """The run whose links are drawn: the last stable one, else the last."""
    stable = [r for _, r in runs if r.stable]
    return stable[-1] if stable else runs[-1][1]


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _run_part(load: float | None, r: SimulationResult) -> RunPart:
    def part(latency: Any) -> LatencyPart:
        return LatencyPart(
            latency.count, _plain(latency.mean), latency.median, latency.p90, latency.p99, latency.worst
        )

    return RunPart(
        load, r.stable, r.ended, r.total_cycles, r.offered, r.accepted, part(r.latency), part(r.network_latency),
        r.undelivered, round(r.cycles_per_second),
    )  # fmt: skip


def write(
    out: Path,
    setting: Setting,
    runs: list[tuple[float | None, SimulationResult]],
    report: SimulationReport,
) -> None:
    """Write simulation.json."""
    from nmsolve.model.files import write_atomic

    write_atomic(out / "simulation.json", msgspec.json.format(msgspec.json.encode(report), indent=2))


class _Says:
    """Progress on standard error, the result on standard output."""

    def __init__(self, as_json: bool) -> None:
        self._json, self._last, self._header = as_json, time.monotonic(), False

    def progress(self, p: Progress) -> None:
        """A line every two seconds."""
        now = time.monotonic()
        if now - self._last < QUIET:
            return
        self._last = now
        if not self._header:
            self._header = True
            print(
                f"{'time':>9}  {'cycle':>12}  {'of':>12}  {'in network':>12}  {'delivered':>12}",
                file=sys.stderr,
            )
        end = f"{p.cycles:,}" if p.cycles >= 0 else "drained"
        print(
            f"{p.seconds:8.1f}s  {p.cycle:12,}  {end:>12}  {p.in_network:12,}  {p.delivered:12,}",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def result(self, out: Path, report: SimulationReport) -> None:
        """The last words."""
        if self._json:
            print(json.dumps({"type": "result", **msgspec.to_builtins(report), "out": str(out)}), flush=True)
        stream = sys.stderr if self._json else sys.stdout
        print(
            f"{'load':>8} {'accepted':>9} {'mean':>9} {'median':>7} {'p99':>7} {'worst':>8}  latency in cycles",
            file=stream,
        )
        for run in report.runs:
            load = "trace" if run.load is None else f"{run.load:.4g}"
            mean = "-" if run.latency.mean is None else f"{run.latency.mean:.2f}"
            note = "" if run.stable else f"  not stable ({run.ended})"
            print(
                f"{load:>8} {run.accepted:9.4f} {mean:>9} {run.latency.median:7} {run.latency.p99:7} {run.latency.worst:8}{note}",
                file=stream,
            )
        if report.saturation is not None:
            words = {k: "-" if v is None else f"{v:.4g}" for k, v in report.saturation.items()}
            print(
                f"saturation between {words['stable']} and {words['unstable']}, accepted there {words['accepted']}",
                file=stream,
            )
        if report.step_drain:
            print(f"cycles of a step: {min(report.step_drain):,} to {max(report.step_drain):,}", file=stream)
        total = sum(report.energy.values())
        print(f"energy of the network in the measured cycles: {total:,.6g} {report.energy_unit}", file=stream)
        for line in report.deadlock:
            print(f"DEADLOCK {line}", file=stream)
        print(f"simulation: {out / 'simulation.json'}", file=stream)
