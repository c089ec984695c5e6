"""Latency as a function of load, and the load at which a network saturates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from nmsolve.hw.noc.caps import Cap, caps
from nmsolve.hw.noc.config import CONFIG_B, RouterConfig
from nmsolve.hw.noc.result import SimulationResult
from nmsolve.hw.noc.simulate import Watched, simulate
from nmsolve.hw.noc.traffic import Trace, Traffic
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet

#: Traffic of a load (flits per core and cycle, or whatever the caller means by it).
TrafficAt = Callable[[float], Traffic | Trace]


#: The window grows by this factor as long as it does not tell whether queues grow, this many times at most.
GROW, TIMES = 4, 2


@dataclass(frozen=True, eq=False)
class Saturation:
    """Where a network saturates.

    Attributes
    ----------
    stable : the highest load seen to be stable (nan if none was), below every cap
    unstable : the lowest load not seen to be: its queues grew, or it is a cap (nan if there is none)
    accepted : flits per core and cycle delivered there (at ``unstable``; nan if it was not simulated)
    caps : the load that links, buffers and ports of cores take at most, by kind (:mod:`nmsolve.hw.noc.caps`)
    runs : (load, result) in the order of simulation, the longest run of every load
    ended : ``complete``, ``time`` or ``stopped``
    """

    stable: float
    unstable: float
    accepted: float
    caps: tuple[Cap, ...]
    runs: tuple[tuple[float, SimulationResult], ...]
    ended: str


def latency_curve(
    machine: Machine, routing: Routes | TurnSet, traffic_at: TrafficAt, loads: Sequence[float], config: RouterConfig = CONFIG_B,
    *, cycles: int = 10_000, warmup: int = 3_000, time_limit: float = math.inf, **how: Unpack[Watched],
) -> list[tuple[float, SimulationResult]]:  # fmt: skip
    """Simulate one load after the other, rising, until one is not stable. Arguments as of
    :func:`nmsolve.hw.noc.simulate.simulate`; ``time_limit`` is for all together."""
    deadline = clock.now() + time_limit
    runs: list[tuple[float, SimulationResult]] = []
    for load in sorted(loads):
        result = simulate(
            machine, routing, traffic_at(load), config, cycles=cycles, warmup=warmup,
            time_limit=deadline - clock.now(), **how,
        )  # fmt: skip
        runs.append((load, result))
        if not result.stable:
            break
    return runs


def saturation(
    machine: Machine, routing: Routes | TurnSet, traffic_at: TrafficAt, config: RouterConfig = CONFIG_B, *, low: float = 0.0,
    high: float = 1.0, tolerance: float = 0.01, cycles: int = 20_000, warmup: int = 10_000, time_limit: float = math.inf,
    **how: Unpack[Watched],
) -> Saturation:  # fmt: skip
    """Halve the interval between a stable and an unstable load until it is ``tolerance`` of the unstable one.

    A load is stable if its packets arrive and the cores' backlogs do not grow: none falls behind by more than ``tolerance / 4``
    of the time that has passed (:attr:`SimulationResult.drift`). It is not if one falls behind by ten times the tolerance.
    In between the window is made four times as long, twice at most (320,000 cycles with the usual 20,000); what
    is not decided then counts as unstable. No load at or above a cap is stable, whatever a run of it looks like.

    Raises
    ------
    InputError : ``low`` is not below ``high``, a tolerance that is not positive, a window below 5,000 cycles
    """
    if not 0 <= low < high or not tolerance > 0 or cycles < 5000:
        raise InputError(
            f"loads {low} to {high}, tolerance {tolerance}, {cycles} cycles", "saturation",
            "0 <= low < high, tolerance > 0, 5,000 cycles or more",
        )  # fmt: skip
    deadline = clock.now() + time_limit
    runs: list[tuple[float, SimulationResult]] = []
    full = traffic_at(high)
    found = tuple(
        replace(cap, factor=cap.factor * high)
        for cap in (caps(machine, routing, full, config) if isinstance(full, Traffic) else ())
    )
    least = min((cap.factor for cap in found), default=math.inf)
    stable, unstable, accepted, ended = math.nan, math.nan, math.nan, "complete"
    load = high = min(high, least)
    while low < high:
        for k in range(TIMES + 1):
            result = simulate(
                machine, routing, traffic_at(load), config, cycles=cycles * GROW**k, warmup=warmup,
                time_limit=deadline - clock.now(), **how,
            )  # fmt: skip
            calm = result.ended == "complete" and result.undelivered == 0
            if not calm or load >= least or not tolerance / 4 < result.drift <= 10 * tolerance:
                break
        if result.ended in ("time", "stopped"):
            runs.append((load, result))
            ended = result.ended
            break
        holds = calm and load < least and result.drift <= tolerance / 4
        runs.append((load, replace(result, judged=holds)))
        if holds:
            stable = low = load
        else:
            unstable, high, accepted = load, load, result.accepted
        if (load == high and stable == load) or high - low <= tolerance * high:
            break
        load = (low + high) / 2
    return Saturation(stable, unstable, accepted, found, tuple(runs), ended)
