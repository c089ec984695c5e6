"""``nmsolve.simulate``: flit by flit through the network of a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from nmsolve.hw.machine_write import save_machine
from nmsolve.kinds.answer import prepare_folder
from nmsolve.kinds.mapping.placed import Placed, placed
from nmsolve.kinds.python.answers import drawn, table
from nmsolve.kinds.python.inputs import (
    FOLDER,
    MachineLike,
    MappingLike,
    grid_text,
    machine_text,
    source_machine,
)
from nmsolve.kinds.routing.page import drawn_links, hottest_links
from nmsolve.kinds.routing.python import RoutingAnswer
from nmsolve.kinds.simulation.options import SimulateOptions
from nmsolve.kinds.simulation.page import UNIT, curve_of
from nmsolve.kinds.simulation.report import Runs, SimulationReport, build, shown
from nmsolve.kinds.simulation.run import simulated, write_simulation
from nmsolve.kinds.simulation.setting import InMemory, Setting, setting_of
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.clock import now
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.quantities import counted, seconds
from nmsolve.report import pictures, pictures_routing

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from nmsolve.hw.noc import Progress


class SimulateHow(TypedDict, total=False):
    """How long, and how often.

    ``steps`` of the network without a ``load`` (1), ``period`` cycles from one to the next (0); ``cycles`` to measure (of a
    trace: at most), ``warmup`` cycles before (3000); ``time_limit`` seconds (60), ``seed`` (0); ``on_progress`` hears how far
    it is.
    """

    steps: int
    period: int
    cycles: int | None
    warmup: int
    time_limit: float
    seed: int
    on_progress: Callable[[Progress], None]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """What a simulation found.

    Attributes
    ----------
    report : the object in simulation.json (docs/simulator.md): ``runs``, ``saturation``, ``energy``, ``deadlock``, ...
    """

    report: SimulationReport
    _setting: Setting
    _runs: Runs
    _options: SimulateOptions
    _mapped: Placed | None

    def __repr__(self) -> str:
        """Return what was simulated, in a line."""
        ended = "deadlock" if self.deadlock else counted(len(self.report.runs), "run")
        return f"Simulation({self.report.traffic} on {self.report.machine}, {self.report.routing}: {ended})"

    @property
    def deadlock(self) -> bool:
        """True if packets wait for each other in a ring."""
        return bool(self.report.deadlock)

    def save(self, folder: str | Path) -> Path:
        """Write simulation.json and simulation.html. Return the folder. InputError if it cannot be written."""
        out = Path(folder)
        prepare_folder(out)
        o = replace(self._options, out=out.resolve())
        if self._mapped is not None:
            o = replace(o, **self._mapped.files(out.resolve()))
        elif o.machine is None:
            path = out.resolve() / FOLDER / "machine.toml"
            path.parent.mkdir(exist_ok=True)
            save_machine(self._setting.machine, path)
            o = replace(o, machine=str(path))
        with TimeLeft() as time_left:
            write_simulation(o, self._setting, self._runs, self.report, time_left)
        return out

    def to_dataframe(self) -> Any:
        """Return a row per simulated load (None: whole steps), latencies in cycles. BackendError without pandas."""
        names = ("load", "stable", "ended", "cycles", "offered", "accepted", "undelivered")
        columns = {name: [getattr(run, name) for run in self.report.runs] for name in names}
        figures = ("packets", "mean", "median", "p90", "p99", "worst")
        return table(columns | {k: [getattr(run.latency, k) for run in self.report.runs] for k in figures})

    def plot(self, kind: str = "links") -> Figure:
        """Return a picture.

        Parameters
        ----------
        kind : ``links`` (flits per cycle on every link) and ``latency`` (how many packets took how many cycles), both of the
            highest stable load; ``curve`` (latency over load) of a sweep

        Raises
        ------
        InputError : another kind, or nothing to draw
        """
        main, machine = shown(self._runs)[1], self._setting.machine
        links = drawn_links(machine, main.link_use, hottest_links(machine, main.link_use))
        kinds: dict[str, Any] = {"links": partial(pictures.link_loads.figure, *links, UNIT)}
        if main.latency.count:
            kinds["latency"] = partial(pictures_routing.latency_histogram.figure, main.latency.histogram)
        if (curve := curve_of(self._setting, self.report)) is not None:
            kinds["curve"] = partial(pictures_routing.latency_curve.figure, *curve)
        return drawn(kind, kinds)


@plain_arguments
def simulate(
    mapping: MappingLike | RoutingAnswer | None = None,
    graph: GraphLike | None = None,
    machine: MachineLike | None = None,
    *,
    pattern: str | None = None,
    trace: str | Path | None = None,
    load: float | None = None,
    sweep: bool = False,
    routes: RoutingAnswer | str | Path | None = None,
    route: str | None = None,
    adaptive: bool = False,
    config: str = "spike",
    chips: str | tuple[int, int] | None = None,
    **options: Unpack[SimulateHow],
) -> Simulation:
    """Simulate the network on chip flit by flit: latency, throughput, saturation and energy of a mapping or a pattern.

    Parameters
    ----------
    mapping : as for :func:`nmsolve.route`, or its answer, whose routes are then taken; not with ``pattern``
    graph, machine, chips : of a mapping that is no answer and has no report beside it; ``machine`` also of a pattern or a trace
    pattern : uniform, transpose, hotspot, ... instead of a mapping; needs a ``load`` or ``sweep``
    trace : CSV file of messages: step,source,targets (separated by spaces),count
    load : flits per cycle that the busiest core (pattern: every core) sends; whole steps of the network if not given
    sweep : measure latency over load, and find the load at which the network saturates
    routes : routes of the mapping; those beside a mapping's file, else XY, if not given
    route : a turn model to route by, instead of ``routes``
    adaptive : routers choose among the shortest paths of the turn model
    config : router: a, b, spike, or a .toml file
    options : as in :class:`SimulateHow`

    Raises
    ------
    InputError : arguments that are wrong or do not go together

    Examples
    --------
    >>> import nmsolve
    >>> found = nmsolve.simulate(machine="mesh:4x4", pattern="uniform", load=0.1, cycles=2000, seed=1)
    >>> found.report.runs[0].stable, found.deadlock
    (True, False)
    """
    how: Any = dict(options)
    tell, limit = how.pop("on_progress", None), how.pop("time_limit", 60.0)
    limit = seconds(limit, "time_limit")
    mapped: Placed | None = None
    if isinstance(mapping, RoutingAnswer):
        routes, mapped = routes or mapping, mapping.mapped
    elif mapping is not None:
        mapped = placed(mapping, graph, machine, chips)
    board = None if mapped is not None or machine is None else source_machine(machine, chips)
    grid = grid_text(chips)
    o = SimulateOptions(
        None if mapped is None else Path("mapping"), machine="machine" if board is not None else None, chips=grid,
        pattern=pattern, trace=None if trace is None else Path(trace), load=load, sweep=sweep, route=route,
        adaptive=adaptive, config=config, routes=None if routes is None else Path("routes"), **how,
    )  # fmt: skip
    own = _routes(routes, mapped)
    if own is None and route is None and not adaptive:
        own = _beside(mapped)
    setting = setting_of(o, InMemory(None if mapped is None else mapped.loaded, board, own))
    path = Path(routes) if isinstance(routes, str | Path) else None
    o = replace(o, machine=machine_text(machine) if mapped is None else None, routes=path)
    started = now()
    with TimeLeft() as time_left:
        edge, runs = simulated(o, setting, started + limit, tell or (lambda _: None), lambda: time_left.asked)
    return Simulation(build(setting, runs, edge, o.seed), setting, runs, o, mapped)


def _beside(mapped: Placed | None) -> Any:
    """Return the routes that were chosen for a mapping when it was made, or None."""
    answer = None if mapped is None else mapped.answer
    chosen = None if answer is None else answer.found.given.mapped
    return None if chosen is None else chosen.routes


def _routes(given: RoutingAnswer | str | Path | None, mapped: Placed | None) -> Any:
    """Return the routes of an answer or a file, in the order of the mapping's flows."""
    from nmsolve.kinds.simulation.setting import routes_of_file
    from nmsolve.model.errors import InputError
    from nmsolve.model.routing.flows import flows_of

    if given is None:
        return None
    if mapped is None:
        raise InputError("routes without a mapping", "routes", "route, a turn model")
    loaded = mapped.loaded
    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    if not isinstance(given, RoutingAnswer):
        path = Path(given)
        return routes_of_file(path / "flow-routes.json" if path.is_dir() else path, loaded.machine, flows)
    if given.solution is None or given.problem.flows.hash != flows.hash:
        raise InputError("the routes are of another mapping", "routes", "routes of this mapping")
    return given.solution.routes
