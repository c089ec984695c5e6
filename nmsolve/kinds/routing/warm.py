"""Compile the kernels of routing: routes by named rules, proofs, loads, estimates, engines, checks of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nmsolve.check.routing.routes import verify_flow_routes
from nmsolve.heuristics.routing.engine import Reroute
from nmsolve.hw.routing.energy import energy_parts
from nmsolve.hw.routing.latency import estimate_latency
from nmsolve.hw.routing.loads import flow_loads
from nmsolve.hw.routing.named import ROUTES, named_routes
from nmsolve.hw.routing.order import number_of
from nmsolve.hw.routing.proof import prove
from nmsolve.hw.routing.turn_routes import disconnected_pair
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.routing.files import write_flow_routes
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.stop import Stop
from nmsolve.model.turns import RULES, turn_set
from nmsolve.model.types import FloatArray
from nmsolve.solvers.routed.faults import FaultPlan, FaultStudy
from nmsolve.solvers.routed.migrate import Placed
from nmsolve.solvers.routing.api import route
from nmsolve.solvers.routing.checker import MISSING, RoutingChecker
from nmsolve.solvers.routing.column_lns import ColumnLns
from nmsolve.solvers.routing.fit import require_routes
from nmsolve.solvers.routing.flow_bound import PriceBound
from nmsolve.solvers.routing.named import NamedRules
from nmsolve.solvers.routing.tolerance import tolerance
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent

#: Seconds for one engine on one stage.
SECONDS = 0.12
#: Engines with kernels of their own.
ENGINES: dict[str, Callable[[], Any]] = {
    "reroute": Reroute,
    "price-bound": PriceBound,
    "column-lns": ColumnLns,
}

MESH = Machine("mesh", (1, 1), (4, 4))
TORUS = replace(MESH, name="torus", torus=True)
FAULTY = replace(MESH, name="faulty", faulty_links=((5, 6), (6, 5)))


def some_flows(machine: Machine, most: int) -> Flows:
    """Four flows from every core, to one up to ``most`` cores each."""
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(machine.size, dtype=np.int32), 4)
    size = rng.integers(1, most + 1, len(source))
    targets = [
        np.sort(rng.permutation(np.delete(np.arange(machine.size), p))[:k])
        for p, k in zip(source, size, strict=True)
    ]
    indptr = np.concatenate([[0], np.cumsum(size)])
    rate: FloatArray = np.ones(len(source)) + rng.integers(0, 8, len(source))
    return Flows(source, indptr, np.concatenate(targets).astype(np.int32), rate)


def warm_routing(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Route, prove, estimate and check small flows; returns what was done."""
    work: dict[str, Callable[[], object]] = {
        "named rules": _named,
        "turns": _turns,
        "loads": _loads,
        "files": _files,
        "faults": _faults,
        **{
            f"{name}, {label}": partial(_engine, name, stage)
            for name in ENGINES
            for label, stage in _stages().items()
        },
        "whole runs": _whole,
    }
    for run in work.values():
        until_compiled(run)
    return list(work)


def _named() -> None:
    """Route by every rule on every kind of machine, the routes proved, weighed and estimated."""
    for machine in (MESH, TORUS, FAULTY):
        for most in (1, 4):
            flows = some_flows(machine, most)
            for rule in ROUTES:
                for dateline in (True, False) if machine.torus else (True,):
                    try:
                        routes = named_routes(machine, flows, rule, dateline)
                    except InputError:  # the rule and the dead links disconnect a pair
                        continue
                    for switching in ("packet", "wormhole"):
                        prove(machine, flows, routes, switching)
                        prove(machine, flows, routes, switching, ejection=True)
                    energy_parts(machine, flows, routes)
                    estimate_latency(machine, flows, routes, cycles_per_step=1000.0)
                    number_of(RoutingProblem(machine, flows, channels=routes.channels), routes)


def _turns() -> None:
    """Turn sets on their own."""
    for machine in (MESH, TORUS, FAULTY):
        flows = some_flows(machine, 1)
        for rule in RULES:
            turns = turn_set(rule, machine)
            if disconnected_pair(machine, turns, flows) is None:
                require_routes(RoutingProblem(machine, flows, turns=turns, detour=8))


def _loads() -> None:
    """Compute loads of the machines' own routes."""
    for machine in (MESH, TORUS, FAULTY):
        for most in (1, 4):
            flow_loads(machine, some_flows(machine, most))


def _files() -> None:
    """Make the traffic of a mapping; write and check its routes."""
    u = np.arange(32)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "flow-routes.json"
        for multicast in (False, True):
            graph = LogicGraph.from_edges(
                32, np.r_[u, u], np.r_[(u + 1) % 32, (u + 9) % 32], multicast=np.full(32, multicast)
            )
            flows = flows_of(graph, u // 2, 16)
            problem = RoutingProblem(MESH, flows)
            routes = named_routes(MESH, flows, "xy")
            write_flow_routes(path, problem, routes, None, number_of(problem, routes))
            verify_flow_routes(graph, MESH, u // 2, path)


def _faults() -> None:
    """Mend routes and move nodes after faults; find which flows survive one."""
    u = np.arange(32)
    for multicast in (False, True):
        graph = LogicGraph.from_edges(
            32, np.r_[u, u], np.r_[(u + 1) % 32, (u + 9) % 32], multicast=np.full(32, multicast)
        )
        flows = flows_of(graph, u // 2, 16)
        problem, routes = RoutingProblem(MESH, flows), named_routes(MESH, flows, "xy")
        study = FaultStudy(Placed(graph, MESH, u // 2, (), 3), problem, routes)
        study.run(FaultPlan(5, trials=8))
        study.run(FaultPlan(3, 1, trials=2))
        tolerance(problem, routes, study.number)


def _stages() -> dict[str, RoutingStage]:
    """Return what is asked of engines, in every form in which their kernels take it."""
    one, many = some_flows(MESH, 1), some_flows(MESH, 3)
    broken = Flows(one.source, one.indptr, one.targets, 0.3 * one.rate)
    west = turn_set("west-first", MESH)
    problems = {
        "single flows": RoutingProblem(MESH, one),
        "broken rates": RoutingProblem(MESH, broken),
        "detours": RoutingProblem(FAULTY, one, detour=2),
        "trees": RoutingProblem(MESH, many),
        "trees by source": RoutingProblem(MESH, many, form="source"),
        "by destination": RoutingProblem(MESH, one, form="destination"),
        "torus": RoutingProblem(TORUS, many, channels=2),
        "given turns": RoutingProblem(MESH, one, turns=west),
    }
    stages = {label: RoutingStage(problem, "max-link") for label, problem in problems.items()}
    small = replace(problems["trees by source"], table_limit=8)
    return {
        **stages,
        "total under a ceiling": RoutingStage(problems["detours"], "total-link", (("max-link", 200.0),)),
        "small tables": RoutingStage(small, "max-link"),
        "missing entries": RoutingStage(replace(small, table_limit=None), MISSING, entries=8),
    }


def _engine(name: str, stage: RoutingStage) -> None:
    """Run one engine from the best named rule on, in this process even if it needs one of its own."""
    engine = ENGINES[name]()
    if engine.refuses(stage) is not None:
        return
    budget = Stop(SECONDS)
    incumbent = Incumbent(RoutingChecker(stage), budget)
    for each in (NamedRules(), engine):
        context = LocalContext(each.name, incumbent, budget, seed=1, workers=1, deadline=budget.deadline)
        each.run(stage, context)


def _whole() -> None:
    """Minimise all objectives one after the other, and route flows that tables hardly hold."""
    for stage in _stages().values():
        if stage.objective == "max-link":
            try:
                route(stage.problem, time_limit=SECONDS, engines=["named", "reroute"], seed=1)
            except InputError:  # the tables are too small: found out by the same kernels
                continue
