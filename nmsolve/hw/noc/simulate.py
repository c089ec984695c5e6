"""Simulate a network flit by flit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.advance import advance
from nmsolve.hw.noc.audit import Waiting, check_conservation, find_deadlock
from nmsolve.hw.noc.config import CONFIG_B, RouterConfig
from nmsolve.hw.noc.result import Latency, SimulationResult
from nmsolve.hw.noc.state import FlitState, initial_state, order_of_flows
from nmsolve.hw.noc.tables import Tables, tree_tables, turn_tables
from nmsolve.hw.noc.traffic import Trace, Traffic
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends, require_links
from nmsolve.model.machine import Machine
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import IntArray, picked

#: Cycles between two looks at the clock and at who waits for whom; between two counts of all flits and credits.
CHUNK, AUDIT = 1000, 10_000
#: Cycles that packets of the window get to arrive after it, at least.
LEAST_DRAIN = 10_000


@dataclass(frozen=True)
class Progress:
    """The state of a simulation.

    Attributes
    ----------
    cycle, cycles : simulated, and the window's end (-1: a trace runs until it is drained)
    in_network : flits inside
    delivered : packets delivered (once per target)
    seconds : of wall time so far
    """

    cycle: int
    cycles: int
    in_network: int
    delivered: int
    seconds: float


class Watched(TypedDict, total=False):
    """Arguments of :func:`simulate` that are the same for many runs in a row."""

    seed: int
    stop: Callable[[], bool] | None
    progress: Callable[[Progress], None] | None


def simulate(
    machine: Machine,
    routing: Routes | TurnSet,
    traffic: Traffic | Trace,
    config: RouterConfig = CONFIG_B,
    *,
    cycles: int | None = None,
    warmup: int = 3_000,
    seed: int = 0,
    time_limit: float = math.inf,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SimulationResult:
    """Run ``traffic`` through the routers of a machine.

    Parameters
    ----------
    routing : routes of the traffic's flows, in their order (if they name one virtual channel per link, packets take any; if they
        name as many as the routers have, those), or turns: every head then takes the output with the fewest credits in use among
        those that begin a shortest allowed path, ties at random (unicast flows only)
    cycles : length of the window (10,000); of a trace, the most cycles to run (no limit)
    warmup : cycles before the window (not for traces); after it, packets made in the window get as many cycles as the
        window has, and 10,000 at least, to arrive, while cores go on sending
    seed : of packets and ties
    time_limit : seconds of wall time; looked at every 1,000 cycles, as is ``stop``
    progress : called about every 1,000 cycles

    Returns
    -------
    The result; Ctrl-C, ``stop`` and the time limit end the run, not the result.

    Raises
    ------
    InputError : traffic, routes and machine do not fit together; a flow has no route
    SimulationError : a count of flits or credits did not agree (checked every 10,000 cycles and at the end)
    """
    if (cycles is not None and cycles < 1) or warmup < 0:
        raise InputError(f"{cycles} cycles, warm-up {warmup}", "simulation", "at least 1, at least 0")
    begin = clock.now()
    trace = isinstance(traffic, Trace)
    length = at.NEVER if trace else cycles or 10_000
    window = (0, length) if trace else (warmup, warmup + length)
    last = (cycles or at.NEVER) if trace else window[1] + max(length, LEAST_DRAIN)
    order = order_of_flows(traffic.source)
    tables = _tables(machine, routing, traffic, order, config)
    state = initial_state(machine, tables, traffic, order, config, window=window, drain=trace, seed=seed)
    lags: list[IntArray] = []
    ended, ring = _run(state, window, last, begin + time_limit, stop, progress, begin, lags)
    check_conservation(state)
    return _result(machine, routing, traffic, config, order, state, window, ended, ring, seed, begin, lags)


def _tables(
    machine: Machine,
    routing: Routes | TurnSet,
    traffic: Traffic | Trace,
    order: IntArray,
    config: RouterConfig,
) -> Tables:
    """Return routes as the kernels want them; flows in ``order``."""
    require_links(machine)
    cores = np.append(traffic.source, traffic.targets)
    if len(cores) and not 0 <= cores.min() <= cores.max() < machine.size:
        raise InputError(f"a flow names core {int(cores.max())}", machine.name, f"0..{machine.size - 1}")
    indptr, pick = picked(traffic.indptr, order)
    source, targets = traffic.source[order], traffic.targets[pick]
    if isinstance(routing, TurnSet):
        if len(targets) > len(source):
            raise InputError(
                "multicast flows without routes", "simulation", "routes for them, or unicast flows"
            )
        return turn_tables(machine, routing, source, targets)
    if routing.count != len(source):
        raise InputError(f"{routing.count} routes", "simulation", f"one for each of {len(source)} flows")
    return tree_tables(machine, routing.taken(order), source, indptr, targets, config.virtual_channels)


def _run(
    state: FlitState, window: tuple[int, int], last: int, deadline: float, stop: Callable[[], bool] | None,
    progress: Callable[[Progress], None] | None, begin: float, lags: list[IntArray],
) -> tuple[str, tuple[Waiting, ...]]:  # fmt: skip
    """Advance chunk by chunk; why it ended, and the ring of a deadlock.

    ``lags`` takes, chunk by chunk in the second half of the window, how many cycles every core's next packet has waited.
    """
    tally, drain, (window_begin, window_end) = state.tally, state.fixed[at.DRAIN : at.DRAIN + 1], window
    trace = bool(state.fixed[at.FROM_TRACE])
    try:
        while tally[at.NOW] < last:
            now = int(tally[at.NOW])
            end = now + CHUNK if trace or now >= window_end else min(now + CHUNK, window_end)
            advance(min(end, last), state)
            if not trace and (window_begin + window_end) // 2 < tally[at.NOW] <= window_end:
                lags.append(np.maximum(tally[at.NOW] - state.sources[:, at.NEXT], 0))
            if tally[at.BROKEN] or tally[at.NOW] % AUDIT < CHUNK:
                check_conservation(state)
            if progress is not None:
                inside = int(tally[at.IN] + tally[at.FORKED] - tally[at.DONE])
                done, spent = int(tally[at.PACKETS_DONE]), clock.now() - begin
                progress(Progress(int(tally[at.NOW]), -1 if trace else window_end, inside, done, spent))
            ring = find_deadlock(state)
            if ring:
                return "deadlock", ring
            drain[0] = trace or tally[at.NOW] >= window_end
            if drain[0] and tally[at.OPEN] == 0 and tally[at.BEHIND] == 0:
                return "drained" if trace else "complete", ()
            if clock.now() > deadline:
                return "time", ()
            if stop is not None and stop():
                return "stopped", ()
    except KeyboardInterrupt:
        return "stopped", ()
    return "cycles", ()


def _result(
    machine: Machine, routing: Routes | TurnSet, traffic: Traffic | Trace, config: RouterConfig, order: IntArray,
    state: FlitState, window: tuple[int, int], ended: str, ring: tuple[Waiting, ...], seed: int, begin: float,
    lags: list[IntArray],
) -> SimulationResult:  # fmt: skip
    """Read the result off the state."""
    tally, now = state.tally, int(state.tally[at.NOW])
    trace = isinstance(traffic, Trace)
    cycles = max(min(now, window[1]) - window[0], 0)
    cores = max(int(machine.usable.sum()), 1)
    deliveries = np.add.reduceat(state.records, state.target_start[:-1]) if len(order) else state.records[:0]
    worst = np.maximum.reduceat(state.records, state.target_start[:-1]) if len(order) else state.records[:0]
    packets, latency, longest = (
        np.zeros(len(order), np.int64),
        np.full(len(order), np.nan),
        np.zeros(len(order), np.int64),
    )
    packets[order], longest[order] = deliveries[:, 0], worst[:, 2]
    some = deliveries[:, 0] > 0
    latency[order[some]] = deliveries[some, 1] / deliveries[some, 0]
    count = int(packets.sum())
    mean = [float(tally[k]) / count if count else math.nan for k in (at.LATENCY_SUM, at.NETWORK_SUM)]
    delivered = state.routers[:, at.DELIVERED].copy()
    injected = state.routers[:, at.INJECTED].copy()
    waiting = tuple(Waiting(w.core, w.direction, w.vc, int(order[w.flow])) for w in ring)
    offered = float(injected.sum()) / max(cycles, 1)
    if isinstance(traffic, Traffic):
        offered = float(traffic.rate.sum()) * config.packet_flits
    return SimulationResult(
        config, machine.name, traffic.name, routing.name if isinstance(routing, TurnSet) else "routes", seed,
        0 if trace else window[0], cycles, now, ended, offered / cores, float(delivered.sum()) / max(cycles, 1) / cores,
        Latency(count, mean[0], state.histogram[0].copy()), Latency(count, mean[1], state.histogram[1].copy()),
        int(tally[at.OPEN]), packets, latency, longest, state.link_flits.copy(),
        _through(machine, state.link_flits, injected), injected,
        delivered, int(tally[at.REORDERED]), _drain_times(state, traffic), waiting, clock.now() - begin,
        np.mean(lags, axis=0) if lags else np.zeros(machine.size),
    )  # fmt: skip


def _through(machine: Machine, link_flits: IntArray, injected: IntArray) -> IntArray:
    """Return flits that entered every router."""
    ends = link_ends(machine)
    used = ends >= 0
    entered: IntArray = injected + np.bincount(ends[used], link_flits[used], len(injected)).astype(np.int64)
    return entered


def _drain_times(state: FlitState, traffic: Traffic | Trace) -> IntArray:
    """Return the cycles that every step of a trace needed, -1 where packets of it are still under way."""
    out = state.drained.copy()
    if isinstance(traffic, Trace) and len(out):
        wanted = np.diff(traffic.indptr)[traffic.flow] * traffic.count
        step = traffic.cycle // traffic.period if traffic.period else np.zeros(len(wanted), np.int64)
        missing = int(wanted.sum()) - int(state.tally[at.PACKETS_DONE])
        if missing:  # packets are counted per step only where some are missing
            out[np.unique(step[_late(state, traffic)])] = -1
        out[np.setdiff1d(np.arange(len(out)), step)] = 0
    return out


def _late(state: FlitState, traffic: Trace) -> IntArray:
    """Return entries from the cycle of the oldest packet not delivered on."""
    packets = state.packets
    alive = np.ones(len(packets), bool)
    free = int(state.tally[at.FREE_SLOT])
    while free >= 0:
        alive[free] = False
        free = int(packets[free, at.FREE])
    oldest = min(packets[alive, at.CREATED].min(initial=at.NEVER), state.sources[:, at.NEXT].min())
    return np.flatnonzero(traffic.cycle >= oldest)
