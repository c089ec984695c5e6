"""``nmsolve faults``: random dead links and cores, what survives and what the repair costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import INTERRUPTED, OK, UNKNOWN, Answer, as_json, last_words, prepare_folder
from nmsolve.kinds.loading import Loaded, load_answer
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.clock import now
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.quantities import counted
from nmsolve.model.version import VERSION
from nmsolve.report.drawing import (
    EMPTY,
    FAINT,
    INK,
    PALETTE,
    board_size,
    draw_board,
    new_figure,
    new_panels,
    svg_text,
)
from nmsolve.report.figures import number, percent
from nmsolve.report.page import fill

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import FaultOptions
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.routed.faults import FaultStudy, Trial

#: File names of trials.
FILES = ("faults.json", "faults.html")
#: Seconds between lines of progress; trials and links that are listed.
BEAT, WORST, LISTED = 1.0, 10, 20


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
    from nmsolve.model.files import write_atomic
    from nmsolve.model.stop import Stop
    from nmsolve.solvers.routed.faults import FaultPlan, check_plan

    budget = Stop(opt.seconds(o.time_limit), started=clock.STARTED)
    loaded = load_answer(o)
    plan = FaultPlan(o.links, o.cores, o.routers, o.trials, o.migration_budget, o.seed)
    check_plan(loaded.machine, plan)
    study = _study(o, loaded)
    prepare_folder(o.out, FILES, o)
    say = _Progress(o.trials, o.json)
    with TimeLeft(clock.end(opt.seconds(o.time_limit))) as time_left:
        with budget:
            trials = study.run(plan, say.trial, budget.over)
        reason = "interrupt" if time_left.asked else "time" if len(trials) < o.trials else "done"
        weak = weak_links(study)
        report = build(o, loaded, study, trials, weak, reason)
        answer = Answer(o.out, FILES)
        with answer.found() as folder:
            write_atomic(folder / "faults.json", as_json(report))
        with answer.added() as files:
            files["faults.html"] = time_left.page(lambda: render_faults(loaded.machine, report, trials, weak))
    last_words(o.out, report, o.json, _words(report), ("faults.html", "faults.json"))
    if not trials:
        return INTERRUPTED if reason == "interrupt" else UNKNOWN
    return OK


def _study(o: FaultOptions, loaded: Loaded) -> FaultStudy:
    """Return the mapping with the routes of the file, of the one beside it, or XY."""
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.solvers.routed.faults import FaultStudy
    from nmsolve.solvers.routed.migrate import Placed

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    if not flows.count:
        raise InputError("no message leaves its core", str(o.mapping), "a mapping with traffic")
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
                "the routes are for different traffic", str(path), "routes of this mapping (`nmsolve route`)"
            )
        return file.problem, file.routes, file.numbering
    routes = named_routes(loaded.machine, flows, "given")
    problem = RoutingProblem(loaded.machine, flows, ("max-link",), channels=routes.channels)
    return detour_of(problem, routes), routes, None


def build(
    o: FaultOptions, loaded: Loaded, study: FaultStudy, trials: list[Trial], weak: Weak, reason: str
) -> FaultReport:
    """Put the results into the shape of faults.json."""
    from nmsolve.solvers.routed.faults import LOST, MOVED, REROUTED, UNHARMED, wilson

    outcomes = {name: sum(t.outcome == name for t in trials) for name in (UNHARMED, REROUTED, MOVED, LOST)}
    done = len(trials)
    alive = done - outcomes[LOST]
    still = alive - outcomes[MOVED]
    extra = [t for t in trials if t.outcome == REROUTED]
    moved = [t.moved for t in trials if t.outcome == MOVED]
    single = [LinkPart(link, weak.stuck.get(link, 0), cut) for link, cut in sorted(weak.fatal.items())]
    critical = [LinkPart(link, n, weak.fatal.get(link, 0)) for link, n in weak.stuck.items() if n]
    critical.sort(key=lambda p: (-p.stuck, p.cores))
    ranked = sorted(
        trials, key=lambda t: (t.outcome == LOST, t.max_link or 0.0, t.total_link or 0.0), reverse=True
    )
    return FaultReport(
        version=VERSION, machine=loaded.machine.name, flows=study.problem.flows.count, links=o.links, cores=o.cores,
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
        moved_nodes=_spread([float(m) for m in moved]), tolerant_flows=weak.tolerant, single_points=single,
        critical_links=critical[:LISTED], worst=[t.number for t in ranked[:WORST]], draws=[asdict(t) for t in trials],
        seconds=round(clock.spent(), 3), seed=o.seed, inputs=_inputs(o, loaded),
    )  # fmt: skip


class Weak(NamedTuple):
    """What one dead link does, with (core, core), the smaller first, for a link.

    ``tolerant``: flows that survive any; ``stuck``: link -> flows without another way over the turns in use; ``fatal``: the
    same for single points of failure -> flows that are cut off for good.
    """

    tolerant: int
    stuck: dict[tuple[int, int], int]
    fatal: dict[tuple[int, int], int]


def weak_links(study: FaultStudy) -> Weak:
    """Return which flows depend on which links."""
    from nmsolve.model.links import link_ends
    from nmsolve.solvers.routed.faults import whole_links
    from nmsolve.solvers.routing.tolerance import fatal_links, tolerance

    machine = study.placed.machine
    found = tolerance(study.in_use, study.routes, study.number)
    ends = link_ends(machine).reshape(-1, 4)
    way = {(p, int(ends[p, d])): int(found.stuck[4 * p + d]) for p in range(machine.size) for d in range(4)}
    stuck = {(a, b): way.get((a, b), 0) + way.get((b, a), 0) for a, b in whole_links(machine)}
    return Weak(found.flows, stuck, fatal_links(machine, study.problem.flows))


def _mean(values: list[Any]) -> float:
    return float(sum(values)) / len(values) if values else 0.0


def _spread(values: list[Any]) -> dict[str, float]:
    """Return mean, median, 90th percentile and worst; empty without values."""
    import numpy as np

    if not values:
        return {}
    middle, high = np.quantile(values, [0.5, 0.9], method="higher").tolist()
    return {"mean": _mean(values), "median": middle, "p90": high, "worst": float(max(values))}


def _inputs(o: FaultOptions, loaded: Loaded) -> dict[str, Any]:
    return loaded.named(o) | {
        "routes": opt.whole(o.routes), "migration_budget": o.migration_budget, "time_limit": opt.seconds(o.time_limit),
    }  # fmt: skip


class _Progress:
    """A line a second on standard error; with --json every trial on standard output."""

    def __init__(self, trials: int, as_json: bool) -> None:
        self._trials, self._json, self._last = trials, as_json, 0.0
        self._lost, self._moved, self._worst = 0, 0, 0.0

    def trial(self, trial: Trial) -> None:
        """Take note of a finished trial."""
        self._lost += trial.outcome == "lost"
        self._moved += trial.outcome == "moved"
        self._worst = max(self._worst, trial.max_link or 0.0)
        if self._json:
            print(json.dumps({"type": "trial", **asdict(trial)}), flush=True)
        moment, done = now(), trial.number + 1
        if moment - self._last < BEAT and done < self._trials:
            return
        if not self._last:
            print(f"{'trials':>13}  {'lost':>6}  {'moved':>6}  {'worst max-link':>16}", file=sys.stderr)
        self._last = moment
        print(
            f"{done:6} of {self._trials:<4}  {self._lost:6}  {self._moved:6}  {number(self._worst):>16}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


def _words(r: FaultReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    counts = ((r.links, "link"), (r.cores, "core"))
    what = " and ".join(counted(count, name) for count, name in counts if count)
    yield f"\n{r.finished} of {r.trials} trials with {what} dead ({counted(r.flows, 'flow')}, {r.seconds:.1f} s)"
    for name, share, (low, high) in (
        ("survivable", r.survivable, r.survivable_interval),
        ("without moving", r.without_moving, r.without_moving_interval),
    ):
        yield f"  {name:14}  {percent(share):>9}  (95 %: {percent(low)} to {percent(high)})"
    for name, after in r.after.items():
        if after:
            yield (
                f"  {name:12} {number(r.before[name]):>12} before, after repair mean {number(after['mean'])}, "
                f"p90 {number(after['p90'])}, worst {number(after['worst'])}"
            )
    yield f"  {r.tolerant_flows} of {r.flows} flows survive any single dead link without new turns"
    names = ", ".join(f"{p.cores[0]}-{p.cores[1]}" for p in r.single_points[:5])
    yield f"  single points of failure: {len(r.single_points)}{f' ({names})' if names else ''}"


def render_faults(machine: Machine, report: FaultReport, trials: list[Trial], weak: Weak) -> str:
    """Return the whole page; equal inputs give equal bytes."""
    by_number = {t.number: t for t in trials}
    return fill(
        "faults.html.j2",
        r=report,
        cost=repaired_cost(trials, report.before),
        links=critical_links(machine, weak.stuck, set(weak.fatal)),
        worst=[by_number[k] for k in report.worst],
    )


def repaired_cost(trials: list[Trial], before: dict[str, float]) -> str:
    """Draw histograms of largest and total link load after the repair; the line is what it was before."""
    figure, axes = new_panels(7.2, 2.8, 1, 2)
    for ax, name, values in (
        (axes[0], "max-link", [t.max_link for t in trials if t.max_link is not None]),
        (axes[1], "total-link", [t.total_link for t in trials if t.total_link is not None]),
    ):
        if values:
            ends = min(*values, before[name]), max(*values, before[name])
            ax.hist(values, bins=min(30, max(5, len(set(values)))), range=ends, color=PALETTE[0], lw=0)
        ax.axvline(before[name], color=PALETTE[1], lw=1.4)
        ax.annotate("before", (before[name], 1.0), xycoords=("data", "axes fraction"), color=PALETTE[1], fontsize=8,
                    ha="left", va="bottom")  # fmt: skip
        ax.set(xlabel=f"{name} after repair", ylabel="trials")
    return svg_text(figure, "cost after repair")


def critical_links(machine: Machine, stuck: dict[tuple[int, int], int], fatal: set[tuple[int, int]]) -> str:
    """Draw a map of links, coloured by the flows that have no other way over the turns in use; red: no way at all."""
    from matplotlib.collections import LineCollection

    figure, ax = new_figure(*board_size(machine))
    pairs = sorted(stuck)
    ends = np.array([[divmod(p, machine.cols)[::-1] for p in pair] for pair in pairs], float).reshape(
        -1, 2, 2
    )
    wrap = np.abs(ends[:, 1] - ends[:, 0]).max(axis=1) > 1
    step = np.sign(ends[wrap, 1] - ends[wrap, 0])
    ends[wrap, 0] -= 0.45 * step  # the edge of the board: half a link on one side
    ends[wrap, 1] = ends[wrap, 0] + 0.45 * step
    value = np.array([stuck[pair] for pair in pairs], float)
    width = float(np.clip(60.0 / max(machine.rows, machine.cols), 0.8, 5.0))
    lines = LineCollection(list(ends), cmap="viridis_r", linewidths=width)
    lines.set_array(np.where(value > 0, value, np.nan))
    lines.set_clim(0, max(1.0, float(value.max(initial=0.0))))
    lines.set_cmap(lines.get_cmap().with_extremes(bad=EMPTY))
    ax.add_collection(lines)
    red = [k for k, pair in enumerate(pairs) if pair in fatal]
    if red:
        ax.add_collection(LineCollection(list(ends[red]), colors=PALETTE[1], linewidths=width + 1.5))
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    size = float(np.clip(300.0 / max(machine.rows, machine.cols), 2.0, 30.0))
    ax.scatter(c, r, s=size, color=np.where(machine.usable, INK, FAINT).tolist(), zorder=3, linewidths=0)
    draw_board(ax, machine)
    figure.colorbar(lines, ax=ax, label="flows without another route")
    return svg_text(figure, "critical links")
