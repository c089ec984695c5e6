"""The setting of ``nmsolve simulate``: machine, router, routes or turns, and traffic, from the options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nmsolve.kinds import values as opt
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.hw.noc import RouterConfig, Trace, Traffic
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.simulation.options import SimulateOptions
    from nmsolve.model.machine import Machine
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.routes import Routes
    from nmsolve.model.turns import TurnSet


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes
    ----------
    traffic_at : traffic of a load; None for a trace of a file
    trace : entries to send, if no load was asked for
    flows : of the mapping or the trace; None for a pattern
    loaded : the mapping with its graph, if there is one
    """

    machine: Machine
    config: RouterConfig
    routing: Routes | TurnSet
    traffic_at: Callable[[float], Traffic] | None
    trace: Trace | None
    flows: Flows | None
    loaded: Loaded | None

    def traffic(self, load: float | None) -> Traffic | Trace:
        """Return what runs at a load, or without one.

        Raises
        ------
        InputError : a pattern without a load
        """
        found = self.trace if load is None or self.traffic_at is None else self.traffic_at(load)
        if found is None:
            raise InputError("a pattern without a load", "--pattern", "--load FLITS, or --sweep")
        return found

    def cycles_per_step(self, load: float) -> float:
        """Return cycles over which a step of the mapping is spread at a load (flits per cycle of the busiest core)."""
        assert self.flows is not None
        return float(np.bincount(self.flows.source, self.flows.rate).max()) * self.config.packet_flits / load


@dataclass(frozen=True)
class InMemory:
    """What options would name by files: the mapping, the machine of a pattern or a trace, routes of the mapping's flows."""

    loaded: Loaded | None = None
    machine: Machine | None = None
    routes: Routes | None = None


#: Everything is in the files that options name.
FILES_ONLY = InMemory()


def setting_of(o: SimulateOptions, given: InMemory = FILES_ONLY) -> Setting:
    """Return everything the options name, loaded; what is ``given`` goes before files of that name.

    Raises
    ------
    InputError : options that do not go together, wrong files
    """
    from nmsolve.model.routing.routes import Routes

    _require_one_kind(o)
    if o.seed < 0:
        raise InputError(f"the seed is {o.seed}", "--seed", "a whole number >= 0")
    config = router(o.config)
    if o.pattern is not None:
        return _of_pattern(o, o.pattern, config, given)
    setting = _of_mapping(o, config, given) if o.trace is None else _of_trace(o, o.trace, config, given)
    if isinstance(setting.routing, Routes) and config.virtual_channels % setting.routing.channels:
        raise InputError(
            f"the routes use {setting.routing.channels} virtual channels per link, the router has {config.virtual_channels}",
            "--config", "a router with that number or a multiple of it",
        )  # fmt: skip
    return setting


def _require_one_kind(o: SimulateOptions) -> None:
    """Refuse traffic from two places, and a load that is given twice."""
    if o.pattern is not None and (o.mapping is not None or o.trace is not None):
        raise InputError("a pattern together with a mapping or a trace", "--pattern", "only one of the three")
    if o.pattern is not None and o.machine is None:
        raise InputError("a pattern without a machine", "--pattern", "--machine, such as mesh:8x8")
    if o.pattern is not None and o.load is None and not o.sweep:
        raise InputError("a pattern without a load", "--pattern", "--load FLITS, or --sweep")
    if o.pattern is not None and o.routes is not None:
        raise InputError("a file of routes together with a pattern", "--routes", "--route RULE")
    if o.trace is not None and (o.load is not None or o.sweep):
        raise InputError("a trace has its own load", "--trace", "no --load and no --sweep")
    if o.load is not None and o.sweep:
        raise InputError("a load together with --sweep, which tries many", "--load", "only one of the two")
    if o.load is not None and not 0 < o.load < np.inf:
        raise InputError(f"a load of {o.load}", "--load", "a number of flits per cycle > 0")
    if o.routes is not None and (o.route is not None or o.adaptive):
        raise InputError("a file of routes with --route or --adaptive", "--routes", "only one of them")
    if o.steps > 1 and not o.period and o.trace is None:
        raise InputError(
            f"{o.steps} steps that all start at once", "--period", "cycles from one step to the next"
        )
    if o.mapping is None and o.pattern is None and (o.trace is None or o.machine is None):
        raise InputError(
            "nothing to simulate",
            "",
            "a mapping, or --machine with --pattern or --trace (`nmsolve simulate --help`)",
        )


def _of_mapping(o: SimulateOptions, config: RouterConfig, given: InMemory) -> Setting:
    """Return the flows of a mapping: whole steps, or a load."""
    from nmsolve.hw.noc import of_flows, steps_of_flows
    from nmsolve.kinds.loading import load_answer
    from nmsolve.model.routing.flows import flows_of

    loaded = given.loaded or load_answer(o)
    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    if not flows.count:
        raise InputError("no message leaves its core", str(o.mapping), "a mapping with traffic")
    routing = given.routes or _routing(o, loaded.machine, flows, loaded.folder)

    def traffic_at(load: float) -> Traffic:
        traffic: Traffic = _split(of_flows(flows, setting.cycles_per_step(load)), routing)
        return traffic

    once: Trace | None = None
    if o.load is None and not o.sweep:
        once = _split(steps_of_flows(flows, o.steps, o.period, o.seed), routing)
    setting = Setting(loaded.machine, config, routing, traffic_at, once, flows, loaded)
    return setting


def _of_trace(o: SimulateOptions, path: Path, config: RouterConfig, given: InMemory) -> Setting:
    """Packets as a file lists them, on the machine given or that of the mapping."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.noc import read_trace
    from nmsolve.kinds.loading import load_answer
    from nmsolve.model.routing.flows import Flows

    folder = None
    if given.machine is not None:
        machine = given.machine
    elif o.mapping is None:
        assert o.machine is not None
        machine = load_machine(o.machine, chips=opt.chip_grid(o.chips))
    else:
        loaded = given.loaded or load_answer(o)
        machine, folder = loaded.machine, loaded.folder
    trace = read_trace(path, machine, o.period)
    count = np.bincount(trace.flow, trace.count, trace.flows)
    flows = Flows(trace.source, trace.indptr, trace.targets, count / max(trace.steps, 1))
    routing = _routing(o, machine, flows, folder)
    return Setting(machine, config, routing, None, _split(trace, routing), flows, None)


def _of_pattern(o: SimulateOptions, name: str, config: RouterConfig, given: InMemory) -> Setting:
    """Return traffic of a pattern on a machine."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.noc import pattern
    from nmsolve.model.turns import turn_set

    assert o.machine is not None
    machine = given.machine or load_machine(o.machine, chips=opt.chip_grid(o.chips))

    def traffic_at(load: float) -> Traffic:
        return pattern(machine, name, load, config, hotspots=[_middle(machine)])

    traffic_at(o.load or 1e-3)  # a wrong name must not wait
    turns = turn_set(o.route or "xy", machine)  # packets to the own core, too, which no routes have
    return Setting(machine, config, turns, traffic_at, None, None, None)


def _middle(machine: Machine) -> int:
    """Return the usable core nearest to the middle of the board: the hotspot."""
    r, c = np.divmod(np.arange(machine.size), machine.cols)
    far = abs(2 * r - machine.rows + 1) + abs(2 * c - machine.cols + 1)
    return int(np.argmin(np.where(machine.usable, far, np.iinfo(np.int64).max)))


def _split(traffic: Any, routing: Routes | TurnSet) -> Any:
    """Return one flow for every target where routers choose the way."""
    from nmsolve.model.turns import TurnSet

    return traffic.unicast() if isinstance(routing, TurnSet) else traffic


def _routing(o: SimulateOptions, machine: Machine, flows: Flows, folder: Path | None) -> Routes | TurnSet:
    """Return the routes of the given file, of the one beside the mapping, or of the rule."""
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.model.turns import turn_set

    beside = (
        folder / "flow-routes.json" if folder is not None and o.route is None and not o.adaptive else None
    )
    path = o.routes or (beside if beside is not None and beside.exists() else None)
    if path is not None:
        return routes_of_file(path, machine, flows)
    rule = o.route or "xy"
    return turn_set(rule, machine) if o.adaptive else named_routes(machine, flows, rule)


def routes_of_file(path: Path, machine: Machine, flows: Flows) -> Routes:
    """Return the routes of ``flows`` in flow-routes.json, which may hold more; rates may differ, as those of a trace do."""
    from nmsolve.model.routing.check import routes_complaint
    from nmsolve.model.routing.files import read_flow_routes

    file = read_flow_routes(path, machine)
    wrong = routes_complaint(file.problem, file.routes)
    if wrong is not None:
        raise InputError(wrong, str(path), "routes that keep their rules (`nmsolve verify --routes`)")
    if file.problem.flows.hash == flows.hash:
        return file.routes
    known = {_key(file.problem.flows, f): f for f in range(file.problem.flows.count)}
    which = [known.get(_key(flows, f), -1) for f in range(flows.count)]
    if -1 in which:
        raise InputError(
            f"no route for {flows.name(which.index(-1))}",
            str(path),
            "routes of this traffic (`nmsolve route`)",
        )
    return file.routes.taken(np.array(which, np.int64))


def _key(flows: Flows, flow: int) -> tuple[int, ...]:
    return int(flows.source[flow]), *flows.of(flow).tolist()


def router(text: str) -> RouterConfig:
    """Return a preset by name, or the parameters in a .toml file.

    Raises
    ------
    InputError : no such preset or file, an unknown parameter, a wrong value
    """
    from nmsolve.hw.noc import CONFIGS, RouterConfig

    if text in CONFIGS:
        return CONFIGS[text]
    if not text.endswith(".toml"):
        raise InputError(f"unknown router {text!r}", "--config", f"{', '.join(CONFIGS)}, or a .toml file")
    from nmsolve.hw.machine_file import LARGEST_FILE
    from nmsolve.model.files import read_limited, read_table

    table = read_table(read_limited(text, LARGEST_FILE), text)
    strange = sorted(set(table) - set(RouterConfig.__dataclass_fields__))
    if strange:
        raise InputError(
            f"unknown parameter {strange[0]!r}", text, ", ".join(RouterConfig.__dataclass_fields__)
        )
    try:
        return msgspec.convert(table, RouterConfig)
    except msgspec.ValidationError as error:
        raise InputError(str(error), text, "whole numbers, and a name") from None
    except InputError as error:
        raise InputError(error.what, text, error.expected) from None
