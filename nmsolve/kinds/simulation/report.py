"""simulation.json: what a simulation found, and how it is printed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nmsolve.model import clock
from nmsolve.model.types import FloatArray
from nmsolve.model.version import VERSION

if TYPE_CHECKING:
    from nmsolve.hw.noc import Progress, Saturation, SimulationResult
    from nmsolve.hw.routing.compute import ComputeEnergy
    from nmsolve.hw.routing.energy import EnergyParts
    from nmsolve.kinds.simulation.setting import Setting

#: Figures of saturation.
EDGE = ("stable", "unstable", "accepted")
#: Seconds between two lines of progress.
QUIET = 2.0
#: (load, result) of every run; the load is None for whole steps and traces.
Runs = list[tuple[float | None, "SimulationResult"]]


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


class EstimatePart(msgspec.Struct, frozen=True):
    """Mean latency by the queueing estimate at one load; ``note`` says why not to trust it."""

    load: float
    mean: float | None
    trusted: bool
    note: str


class CapPart(msgspec.Struct, frozen=True):
    """A load that no network can carry: what ``kind`` of limit, and where it is met first."""

    kind: str
    load: float
    where: str


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object in simulation.json; ``energy`` is that of the measured window in ``energy_unit``, by part.

    The last stable run (else the last run) is the one that ``step_drain``, ``link_flits`` and ``energy`` are of.
    """

    version: str
    machine: str
    routing: str
    traffic: str
    config: dict[str, Any]
    runs: list[RunPart]
    estimates: list[EstimatePart]
    saturation: dict[str, float | None] | None
    caps: list[CapPart]
    step_drain: list[int]
    link_flits: list[int]
    energy: dict[str, float]
    energy_unit: str
    deadlock: list[str]
    seed: int
    seconds: float


def build(setting: Setting, runs: Runs, edge: Saturation | None, seed: int) -> SimulationReport:
    """Put the results into the shape of simulation.json; link use and energy are those of the highest stable load."""
    load, main = shown(runs)
    network, compute = energy_of(setting, load, main)
    parts = dict(network.by_part)
    if compute is not None and network.unit == "pJ":
        parts |= {k: v * steps_of(setting, main) for k, v in compute.by_part.items()}
    return SimulationReport(
        version=VERSION,
        machine=setting.machine.name,
        routing=main.routing,
        traffic=main.traffic,
        config=msgspec.to_builtins(setting.config),
        runs=[_run_part(load, result) for load, result in runs],
        estimates=_estimates(setting, runs),
        saturation=None if edge is None else {k: _plain(getattr(edge, k)) for k in EDGE},
        caps=[] if edge is None else [CapPart(c.kind, c.factor, c.where) for c in edge.caps],
        step_drain=main.step_drain.tolist(),
        link_flits=main.link_flits.tolist(),
        energy={k: float(v) for k, v in parts.items()},
        energy_unit=network.unit,
        deadlock=[str(w) for _, r in runs for w in r.deadlock],
        seed=seed,
        seconds=round(sum(r.seconds for _, r in runs), 3),
    )


def ending(run: RunPart) -> str:
    """Return how a run that is not stable ended: cut short, which says nothing about its load, or past saturation."""
    return f"cut short ({run.ended})" if run.ended in ("time", "stopped") else f"not stable ({run.ended})"


def cycles(value: int) -> str:
    """Return a latency of a histogram, whose last entry counts all that are longer; ``-`` where no packet arrived."""
    from nmsolve.hw.noc.state import HISTOGRAM

    return "-" if value < 0 else f"{value}" if value < HISTOGRAM - 1 else f">={value}"


def drain_words(drain: list[int]) -> str:
    """Return how long the steps took."""
    late = sum(d < 0 for d in drain)
    if late:
        return f"{late} of {len(drain)} steps had not been delivered at the end"
    least, most = min(drain), max(drain)
    span = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"all messages of a step have arrived {span} cycles after it began"


def saturation_words(edge: dict[str, float | None], unit: str = "") -> str:
    """Between which loads the network saturates; ``unit`` is what loads are."""
    stable, unstable, accepted = edge["stable"], edge["unstable"], edge["accepted"]
    if unstable is None:
        known = (
            "no load could be tried in time"
            if stable is None
            else f"stable up to the highest load tried, {stable:.4g}"
        )
        return f"{known}{unit if stable is not None else ''}"
    low = "0" if stable is None else f"{stable:.4g}"
    there = "" if accepted is None else f"there it delivers {accepted:.4g} flits per core and cycle"
    end = "" if accepted is None else f"; {there}"
    return f"the network saturates between {low} and {unstable:.4g}{unit}{end}"


def cap_words(caps: list[CapPart]) -> str:
    """Return what limits any load, the least first."""
    parts = [f"{c.kind} {c.load:.4g} ({c.where})" for c in sorted(caps, key=lambda c: c.load)]
    return "no stable load can exceed any of: " + ", ".join(parts)


def shown(runs: Runs) -> tuple[float | None, SimulationResult]:
    """Return the run whose links are drawn: the highest stable one, else the last."""
    stable = [run for run in runs if run[1].stable]
    return stable[-1] if stable else runs[-1]


def energy_of(
    setting: Setting, load: float | None, result: SimulationResult
) -> tuple[EnergyParts, ComputeEnergy | None]:
    """Return energy of the network in the window, and what the cores of a mapping take per step (None without whole steps)."""
    from nmsolve.hw.routing.compute import compute_energy
    from nmsolve.hw.routing.energy import counts_energy
    from nmsolve.hw.routing.loads import tally

    traffic, flits = setting.traffic(load), setting.config.packet_flits
    own = traffic.targets[traffic.indptr[:-1]] == traffic.source  # what stays on its core is not a message
    sent: FloatArray = tally(traffic.source, np.where(own, 0, result.flow_packets), setting.machine.size)
    network = counts_energy(setting.machine, sent, result.link_flits / flits)
    loaded = setting.loaded
    if loaded is None or load is not None or setting.trace is None:
        return network, None
    return network, compute_energy(loaded.graph, loaded.machine, loaded.core)


def steps_of(setting: Setting, result: SimulationResult) -> int:
    """Return steps of the network in a run of whole steps."""
    return max(1, len(result.step_drain)) if setting.trace is not None else 1


def _estimates(setting: Setting, runs: Runs) -> list[EstimatePart]:
    """Return the queueing estimate at every load that was simulated and is stable, where every flow has its route."""
    from nmsolve.hw.routing.latency import estimate_latency
    from nmsolve.model.routing.routes import Routes

    if setting.flows is None or not isinstance(setting.routing, Routes):
        return []
    out = []
    for load, result in runs:
        if load is not None and result.stable:
            cycles = setting.cycles_per_step(load)
            e = estimate_latency(setting.machine, setting.flows, setting.routing, setting.config, cycles)
            out.append(
                EstimatePart(load, float(e.mean) if math.isfinite(e.mean) else None, e.trusted, e.note)
            )
    return out


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


class Says:
    """Progress on standard error."""

    def __init__(self) -> None:
        self._last, self._header = clock.now(), False

    def progress(self, p: Progress) -> None:
        """Print a line every two seconds."""
        now = clock.now()
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


def simulated_words(report: SimulationReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    head = f"{'load':>8} {'accepted':>9} {'mean':>9} {'median':>7} {'p99':>7} {'worst':>8}"
    yield f"{head}  latency in cycles"
    estimates = {e.load: e.mean for e in report.estimates if e.trusted and e.mean is not None}
    for run in report.runs:
        load = "steps" if run.load is None else f"{run.load:.4g}"
        mean = "-" if run.latency.mean is None else f"{run.latency.mean:.2f}"
        note = "" if run.stable else f"  {ending(run)}"
        if run.load is not None and run.load in estimates:
            note += f"  estimate {estimates[run.load]:.2f}"
        median, p99, worst = (cycles(v) for v in (run.latency.median, run.latency.p99, run.latency.worst))
        yield f"{load:>8} {run.accepted:9.4f} {mean:>9} {median:>7} {p99:>7} {worst:>8}{note}"
    if report.saturation is not None:
        yield saturation_words(report.saturation)
    if report.caps:
        yield cap_words(report.caps)
    if report.step_drain:
        yield drain_words(report.step_drain)
    yield f"energy in the measured cycles: {sum(report.energy.values()):,.6g} {report.energy_unit}"
    yield from (f"DEADLOCK {line}" for line in report.deadlock)
