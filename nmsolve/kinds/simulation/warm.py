"""Compile the kernels of the simulator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nmsolve.hw.noc import CONFIGS, Trace, Traffic, of_flows, pattern, simulate, steps_of_flows
from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.routing.named import named_routes
from nmsolve.kinds.routing.warm import FAULTY, MESH, TORUS, some_flows
from nmsolve.model.routing.flows import Flows
from nmsolve.model.turns import all_turns, turn_set

#: Cycles before the window and in it, and of a step of a trace.
WARMUP, CYCLES, STEP = 100, 1100, 400


def warm_simulation(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Send small traffic through routers of every kind; returns what was done."""
    work: dict[str, Callable[[], object]] = {
        **{f"routers {name}": partial(_simulate, config) for name, config in CONFIGS.items()},
        "deadlock": _deadlock,
    }
    for run in work.values():
        until_compiled(run)
    return list(work)


def _simulate(config: RouterConfig) -> None:
    """Simulate random traffic and traces, along routes and as turns allow."""
    for machine in (MESH, TORUS, FAULTY):
        for most in (1, 4):
            flows = some_flows(machine, most)
            routes = named_routes(machine, flows, "given")
            for traffic in _traffics(flows):
                if config.virtual_channels % routes.channels == 0:
                    simulate(machine, routes, traffic, config, cycles=CYCLES, warmup=WARMUP)
                if most == 1 and not machine.faulty_links:
                    turns = turn_set("west-first", machine)
                    simulate(machine, turns, traffic, config, cycles=CYCLES, warmup=WARMUP)


def _traffics(flows: Flows) -> tuple[Traffic | Trace, ...]:
    return of_flows(flows, 1e4), steps_of_flows(flows, 2, STEP, 1)


def _deadlock() -> None:
    """All turns at once and more traffic than the routers can take: the ring of packets that wait has to be found."""
    for config in CONFIGS.values():
        simulate(
            MESH,
            all_turns(MESH.size),
            pattern(MESH, "uniform", 1.0, config),
            config,
            cycles=5000,
            warmup=WARMUP,
        )
