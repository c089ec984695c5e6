"""``nmsolve faults``: random dead links and cores, what survives and what the repair costs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve import __version__
from nmsolve.cli import options as opt
from nmsolve.cli.answer import INTERRUPTED, OK, UNKNOWN, prepare_folder
from nmsolve.cli.loading import Loaded, load_answer
from nmsolve.cli.patience import Patience
from nmsolve.cli.progress import number, percent
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.routing.faults import FaultStudy, Trial

#: Seconds between lines of progress; trials and links that are listed.
BEAT, WORST, LISTED = 1.0, 10, 20


@dataclass(frozen=True)
class FaultOptions:
    """The options of ``nmsolve faults``, as typed."""

    mapping: Path
    graph: Path | None
    machine: str | None
    chips: str | None
    placement: Path | None
    links: int
    cores: int
    routers: bool
    trials: int
    migration_budget: int | None
    routes: Path | None
    time_limit: str
    seed: int
    out: Path
    json: bool


class LinkPart(msgspec.Struct, frozen=True):
    """A link, both directions; ``stuck`` flows have no other way over allowed turns, ``cut_off`` ones none at all."""

    cores: tuple[int, int]
    stuck: int
    cut_off: int


class FaultReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object in faults.json; shares are of the trials finished, loads in messages per step."""

    version: str
    machine: str
    flows: int
    links: int
    cores: int
    routers: bool
    trials: int
    finished: int
    stop_reason: str
    outcomes: dict[str, int]
    survivable: float
    survivable_interval: tuple[float, float]
    without_moving: float
    without_moving_interval: tuple[float, float]
    before: dict[str, float]
    after: dict[str, dict[str, float]]
    detours: dict[str, float]
    moved_nodes: dict[str, float]
    tolerant_flows: int
    single_points: list[LinkPart]
    critical_links: list[LinkPart]
    worst: list[int]
    draws: list[dict[str, Any]]
    seconds: float
    seed: int
    inputs: dict[str, Any]


def run_faults(o: FaultOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input
    """
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.routing.faults import FaultPlan, check_plan
    from nmsolve.solvers.search.budget import Budget

    budget = Budget(opt.seconds(o.time_limit), started=STARTED)
    loaded = load_answer(o.mapping, o.graph, o.machine, o.chips, o.placement)
    plan = FaultPlan(o.links, o.cores, o.routers, o.trials, o.migration_budget, o.seed)
    check_plan(loaded.machine, plan)
    study = _study(o, loaded)
    prepare_folder(o.out)
    say = _Progress(o.trials, o.json)
    with Patience(STARTED + opt.seconds(o.time_limit)) as patience:
        with budget.ctrl_c():
            trials = study.run(plan, say.trial, budget.over)
        reason = "interrupt" if patience.asked else "time" if len(trials) < o.trials else "done"
        report = build(o, loaded, study, trials, reason, time.monotonic() - STARTED)
        write(o.out, study, report, trials, patience)
    _say(o, report)
    if not trials:
        return INTERRUPTED if reason == "interrupt" else UNKNOWN
    return OK


def _study(o: FaultOptions, loaded: Loaded) -> FaultStudy:
    """The mapping with the routes of the file, of the one beside it, or XY."""
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.solvers.routing.faults import FaultStudy
    from nmsolve.solvers.routing.migrate import Placed

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    if not flows.count:
        raise InputError("every message stays on its core", str(o.mapping), "a mapping with traffic")
    problem, routes, numbering = _routes(o, loaded, flows)
    placed = Placed(
        loaded.graph, loaded.machine, loaded.core, tuple(loaded.constraints(None)), loaded.node_limit(None)
    )
    return FaultStudy(placed, problem, routes, numbering)


def _routes(o: FaultOptions, loaded: Loaded, flows: Flows) -> tuple[RoutingProblem, Routes, IntArray | None]:
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.solvers.routing.numbers import detour_of

    beside = loaded.folder / "flow-routes.json"
    path = o.routes or (beside if beside.exists() else None)
    if path is not None:
        file = read_flow_routes(path, loaded.machine)
        if file.problem.flows.hash != flows.hash:
            raise InputError(
                "the routes are for other traffic", str(path), "routes of this mapping (`nmsolve route`)"
            )
        return file.problem, file.routes, file.numbering
    routes = named_routes(loaded.machine, flows, "given")
    problem = RoutingProblem(loaded.machine, flows, ("max-link",), channels=routes.channels)
    return detour_of(problem, routes), routes, None


def build(
    o: FaultOptions, loaded: Loaded, study: FaultStudy, trials: list[Trial], reason: str, seconds: float
) -> FaultReport:
    """Put the results into the shape of faults.json."""
    from nmsolve.solvers.routing.faults import LOST, MOVED, REROUTED, UNHARMED, wilson

    outcomes = {name: sum(t.outcome == name for t in trials) for name in (UNHARMED, REROUTED, MOVED, LOST)}
    done = len(trials)
    alive = done - outcomes[LOST]
    still = alive - outcomes[MOVED]
    extra = [t for t in trials if t.outcome == REROUTED]
    moved = [t.moved for t in trials if t.outcome == MOVED]
    tolerant, single, critical = _critical(study)
    ranked = sorted(
        trials, key=lambda t: (t.outcome == LOST, t.max_link or 0.0, t.total_link or 0.0), reverse=True
    )
    return FaultReport(
        version=__version__, machine=loaded.machine.name, flows=study.problem.flows.count, links=o.links, cores=o.cores,
        routers=o.routers, trials=o.trials, finished=done, stop_reason=reason, outcomes=outcomes,
        survivable=alive / done if done else 0.0, survivable_interval=wilson(alive, done),
        without_moving=still / done if done else 0.0, without_moving_interval=wilson(still, done),
        before={"max-link": study.max_link, "total-link": study.total_link},
        after={
            "max-link": _spread([t.max_link for t in trials if t.max_link is not None]),
            "total-link": _spread([t.total_link for t in trials if t.total_link is not None]),
        },
        detours={
            "flows hit": _mean([t.hit for t in extra]), "flows changed": _mean([t.changed for t in extra]),
            "extra links": _mean([t.extra for t in extra]), "longest": float(max((t.longest_extra for t in extra), default=0)),
        },
        moved_nodes=_spread([float(m) for m in moved]), tolerant_flows=tolerant, single_points=single,
        critical_links=critical, worst=[t.number for t in ranked[:WORST]], draws=[asdict(t) for t in trials],
        seconds=round(seconds, 3), seed=o.seed, inputs=_inputs(o, loaded),
    )  # fmt: skip


def _critical(study: FaultStudy) -> tuple[int, list[LinkPart], list[LinkPart]]:
    """Flows that survive any single dead link, single points of failure, and the links that most flows depend on."""
    from nmsolve.solvers.routing.tolerance import fatal_links, tolerance

    fatal = fatal_links(study.placed.machine, study.problem.flows)
    found = tolerance(study.in_use, study.routes, study.number)
    stuck = stuck_by_link(study.placed.machine, found.stuck)
    parts = [LinkPart(link, count, fatal.get(link, 0)) for link, count in stuck.items() if count]
    parts.sort(key=lambda p: (-p.stuck, p.cores))
    single = [LinkPart(link, stuck.get(link, 0), cut) for link, cut in sorted(fatal.items())]
    return found.flows, single, parts[:LISTED]


def stuck_by_link(machine: Any, stuck: IntArray) -> dict[tuple[int, int], int]:
    """(core, core), the smaller first -> flows of both directions that are stuck if it dies."""
    from nmsolve.model.links import link_ends
    from nmsolve.solvers.routing.faults import whole_links

    ends = link_ends(machine).reshape(-1, 4)
    way = {(p, int(ends[p, d])): int(stuck[4 * p + d]) for p in range(machine.size) for d in range(4)}
    return {(a, b): way.get((a, b), 0) + way.get((b, a), 0) for a, b in whole_links(machine)}


def _mean(values: list[Any]) -> float:
    return float(sum(values)) / len(values) if values else 0.0


def _spread(values: list[Any]) -> dict[str, float]:
    """Mean, median, 90th percentile and worst; empty without values."""
    import numpy as np

    if not values:
        return {}
    middle, high = np.quantile(values, [0.5, 0.9], method="higher").tolist()
    return {"mean": _mean(values), "median": middle, "p90": high, "worst": float(max(values))}


def _inputs(o: FaultOptions, loaded: Loaded) -> dict[str, Any]:
    graph = loaded.inputs.graph if o.graph is None else str(o.graph.resolve())
    return {
        "mapping": str(o.mapping.resolve()), "graph": graph, "machine": o.machine or loaded.inputs.machine,
        "chips": o.chips or loaded.inputs.chips, "routes": None if o.routes is None else str(o.routes.resolve()),
        "migration_budget": o.migration_budget, "time_limit": opt.seconds(o.time_limit),
    }  # fmt: skip


def write(out: Path, study: FaultStudy, report: FaultReport, trials: list[Trial], patience: Patience) -> None:
    """Write faults.json; then the page, unless ``patience`` is lost."""
    from nmsolve.cli.faults_page import render_faults
    from nmsolve.model.file_set import file_set, new_run
    from nmsolve.model.files import write_atomic

    run = new_run()
    with file_set(out, ("faults.json", "faults.html"), run) as folder:
        write_atomic(folder / "faults.json", msgspec.json.format(msgspec.json.encode(report), indent=2))
    try:
        with patience.optional():
            page = render_faults(study, report, trials)
    except KeyboardInterrupt:
        print("no time was left for the page", file=sys.stderr)
        return
    with file_set(out, (), run) as folder:
        write_atomic(folder / "faults.html", page)


class _Progress:
    """A line a second on standard error; with --json every trial on standard output."""

    def __init__(self, trials: int, as_json: bool) -> None:
        self._trials, self._json, self._last = trials, as_json, 0.0
        self._lost, self._moved, self._worst = 0, 0, 0.0

    def trial(self, trial: Trial) -> None:
        """Another one is finished."""
        self._lost += trial.outcome == "lost"
        self._moved += trial.outcome == "moved"
        self._worst = max(self._worst, trial.max_link or 0.0)
        if self._json:
            print(json.dumps({"type": "trial", **asdict(trial)}), flush=True)
        now, done = time.monotonic(), trial.number + 1
        if now - self._last < BEAT and done < self._trials:
            return
        if not self._last:
            print(f"{'trials':>13}  {'lost':>6}  {'moved':>6}  {'worst max-link':>16}", file=sys.stderr)
        self._last = now
        print(
            f"{done:6} of {self._trials:<4}  {self._lost:6}  {self._moved:6}  {number(self._worst):>16}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


def _say(o: FaultOptions, r: FaultReport) -> None:
    """The last words."""
    if o.json:
        print(json.dumps({"type": "result", **msgspec.to_builtins(r), "out": str(o.out)}), flush=True)
    stream = sys.stderr if o.json else sys.stdout
    what = " and ".join(
        f"{count} {name}{'s' if count > 1 else ''}"
        for count, name in ((r.links, "link"), (r.cores, "core"))
        if count
    )
    low, high = r.survivable_interval
    few, many = r.without_moving_interval
    print(
        f"\n{r.finished} of {r.trials} trials with {what} dead ({r.flows} flows, {r.seconds:.1f} s)",
        file=stream,
    )
    print(
        f"  survivable      {percent(r.survivable):>9}  (95 %: {percent(low)} to {percent(high)})",
        file=stream,
    )
    print(
        f"  without moving  {percent(r.without_moving):>9}  (95 %: {percent(few)} to {percent(many)})",
        file=stream,
    )
    for name in ("max-link", "total-link"):
        after = r.after[name]
        if after:
            print(
                f"  {name:12} {number(r.before[name]):>12} before, after repair mean {number(after['mean'])}, "
                f"p90 {number(after['p90'])}, worst {number(after['worst'])}",
                file=stream,
            )
    print(
        f"  {r.tolerant_flows} of {r.flows} flows survive any single dead link without new turns", file=stream
    )
    names = ", ".join(f"{p.cores[0]}-{p.cores[1]}" for p in r.single_points[:5])
    print(f"  single points of failure: {len(r.single_points)}{f' ({names})' if names else ''}", file=stream)
    print(f"report: {o.out / 'faults.html'}", file=stream)
