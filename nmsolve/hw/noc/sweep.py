"""Latency as a function of load, and the load at which a network saturates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmsolve.hw.noc.config import CONFIG_B, RouterConfig
from nmsolve.hw.noc.result import SimulationResult
from nmsolve.hw.noc.simulate import Progress, simulate
from nmsolve.hw.noc.traffic import Trace, Traffic
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.turns import TurnSet

#: Traffic of a load (flits per core and cycle, or whatever the caller means by it).
TrafficAt = Callable[[float], Traffic | Trace]


@dataclass(frozen=True, eq=False)
class Saturation:
    """Where a network saturates.

    Attributes
    ----------
    stable : the highest load seen to be stable (nan if none was)
    unstable : the lowest load seen not to be (nan if none was)
    accepted : flits per core and cycle delivered there (at ``unstable``; nan if there is none)
    runs : (load, result) in the order of simulation
    ended : ``complete``, ``time`` or ``stopped``
    """

    stable: float
    unstable: float
    accepted: float
    runs: tuple[tuple[float, SimulationResult], ...]
    ended: str


def latency_curve(
    machine: Machine, routing: Routes | TurnSet, traffic_at: TrafficAt, loads: Sequence[float], config: RouterConfig = CONFIG_B,
    *, cycles: int = 10_000, warmup: int = 3_000, seed: int = 0, time_limit: float = math.inf,
    stop: Callable[[], bool] | None = None, progress: Callable[[Progress], None] | None = None,
) -> list[tuple[float, SimulationResult]]:  # fmt: skip
    """Simulate one load after the other, rising, until one is not stable. Arguments as of
    :func:`nmsolve.hw.noc.simulate.simulate`; ``time_limit`` is for all together."""
    deadline = time.perf_counter() + time_limit
    runs: list[tuple[float, SimulationResult]] = []
    for load in sorted(loads):
        result = simulate(
            machine, routing, traffic_at(load), config, cycles=cycles, warmup=warmup, seed=seed,
            time_limit=deadline - time.perf_counter(), stop=stop, progress=progress,
        )  # fmt: skip
        runs.append((load, result))
        if not result.stable:
            break
    return runs


def saturation(
    machine: Machine, routing: Routes | TurnSet, traffic_at: TrafficAt, config: RouterConfig = CONFIG_B, *, low: float = 0.0,
    high: float = 1.0, tolerance: float = 0.01, cycles: int = 20_000, warmup: int = 10_000, seed: int = 0,
    time_limit: float = math.inf, stop: Callable[[], bool] | None = None, progress: Callable[[Progress], None] | None = None,
) -> Saturation:  # fmt: skip
    """Halve the interval between a stable and an unstable load until it is ``tolerance`` of the unstable one.

    Near the edge queues grow slowly: a run of 1,000 cycles calls loads stable that are not, so the window has
    20,000 and no fewer than 5,000 are allowed.

    Raises
    ------
    InputError : ``low`` is not below ``high``, a tolerance that is not positive, a window below 5,000 cycles
    """
    if not 0 <= low < high or not tolerance > 0 or cycles < 5000:
        raise InputError(
            f"loads {low} to {high}, tolerance {tolerance}, {cycles} cycles", "saturation",
            "0 <= low < high, tolerance > 0, 5,000 cycles or more",
        )  # fmt: skip
    deadline = time.perf_counter() + time_limit
    runs: list[tuple[float, SimulationResult]] = []
    stable, unstable, accepted, ended = math.nan, math.nan, math.nan, "complete"
    load = high
    while True:
        result = simulate(
            machine, routing, traffic_at(load), config, cycles=cycles, warmup=warmup, seed=seed,
            time_limit=deadline - time.perf_counter(), stop=stop, progress=progress,
        )  # fmt: skip
        runs.append((load, result))
        if result.ended in ("time", "stopped"):
            ended = result.ended
            break
        if result.stable:
            stable = low = load
        else:
            unstable, high, accepted = load, load, result.accepted
        if (load == high and result.stable) or high - low <= tolerance * high:
            break
        load = (low + high) / 2
    return Saturation(stable, unstable, accepted, tuple(runs), ended)
