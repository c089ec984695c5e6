"""The state of a simulated network, made from machine, routes, traffic and router."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.noc import layout as at
from nmsolve.hw.noc.chance import gap
from nmsolve.hw.noc.config import RouterConfig
from nmsolve.hw.noc.tables import Tables
from nmsolve.hw.noc.traffic import Trace, Traffic
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray, picked

#: Cycles of latency that histograms tell apart; what is longer counts as the last one.
HISTOGRAM = 1 << 14


class FlitState(NamedTuple):
    """A network in one cycle: what every kernel of the simulator reads and changes (columns: layout.py)."""

    fixed: IntArray
    tally: IntArray
    chance: AnyArray
    granted: IntArray
    flits: IntArray
    inputs: Int32Array
    outputs: Int32Array
    ways: Int32Array
    routers: IntArray
    busy: IntArray
    flying: IntArray
    words: IntArray
    returning: IntArray
    waking: IntArray
    link_flits: IntArray
    packets: IntArray
    records: IntArray
    histogram: IntArray
    drained: IntArray
    kind: AnyArray
    onward: AnyArray
    child_start: IntArray
    child: IntArray
    step: AnyArray
    group: IntArray
    arrives: IntArray
    start: IntArray
    sources: IntArray
    source_credits: IntArray
    source_busy: IntArray
    calendar: IntArray
    chances: FloatArray
    flow_start: IntArray
    alias_share: FloatArray
    alias: IntArray
    entry_end: IntArray
    entry_cycle: IntArray
    entry_flow: IntArray
    entry_count: IntArray
    target_start: IntArray
    targets: IntArray
    flow_made: IntArray


def order_of_flows(source: Int32Array) -> IntArray:
    """Return (F,) the flows sorted by ``source`` (F,); kernels number them in this order."""
    return np.argsort(source, kind="stable")


def initial_state(
    machine: Machine, tables: Tables, traffic: Traffic | Trace, order: IntArray, config: RouterConfig, *,
    window: tuple[int, int], drain: bool, seed: int,
) -> FlitState:  # fmt: skip
    """Return an empty network in cycle 0.

    ``tables`` are of the flows in ``order`` (F,); packets made in the cycles of ``window`` are measured.
    """
    cores, v = machine.size, config.virtual_channels
    flows = len(order)
    start, pick = picked(traffic.indptr, order)
    targets = traffic.targets[pick]
    fixed = np.zeros(16, np.int64)
    period = traffic.period if isinstance(traffic, Trace) else 0
    for place, value in (
        (at.CORES, cores), (at.CHANNELS, v), (at.DEPTH, config.buffer_flits), (at.LENGTH, config.packet_flits),
        (at.ROUTE_CYCLES, config.routing), (at.ALLOCATE_CYCLES, config.vc_allocation), (at.INJECT_CYCLES, config.link + 1),
        (at.WINDOW_START, window[0]), (at.WINDOW_END, window[1]), (at.BY_TURNS, not len(tables.arrives)),
        (at.ROOTS, len(tables.arrives) - tables.start[-1]), (at.PERIOD, period), (at.DRAIN, drain),
        (at.FROM_TRACE, isinstance(traffic, Trace)), (at.ANY_CONSUMPTION, config.consumption == "any"),
    ):  # fmt: skip
        fixed[place] = value
    inputs, outputs = _channels(machine, config)
    longest = max(int(outputs[:, (at.RETURN, at.INTERVAL)].max()), int(inputs[:, at.BACK].max()))
    ring = 1 << (max(longest, config.routing, config.vc_allocation, config.link + 1) + 1).bit_length()
    packets = np.zeros((len(inputs) * config.buffer_flits + cores + 1, 6), np.int64)
    packets[:, at.FREE] = np.arange(1, len(packets) + 1)
    packets[-1, at.FREE] = -1
    routers = np.zeros((cores, 40), np.int64)
    records = np.zeros((len(targets), 4), np.int64)
    records[:, 3] = -1
    tally, chance = np.zeros(24, np.int64), np.array([seed], np.uint64)
    steps = traffic.steps if isinstance(traffic, Trace) else 0
    return FlitState._make((
        fixed, tally, chance, np.zeros(64, np.int64), np.zeros(len(inputs) * config.buffer_flits, np.int64), inputs, outputs,
        np.full((len(inputs), 5, 4), -1, np.int32), routers, np.zeros((cores + 31) // 32, np.int64),
        np.zeros((ring, 5 * cores + 1), np.int64), np.zeros((ring, 5 * cores + 1), np.int64),
        np.zeros((ring, 6 * cores + 1), np.int64), np.zeros((ring, 2 * len(inputs) + 5 * cores + 1), np.int64),
        np.zeros(4 * cores, np.int64), packets, records, np.zeros((2, HISTOGRAM), np.int64), np.full(steps, -1, np.int64),
        *tables, *_sources(machine, traffic, order, config, window, tally, chance),
        start, targets.astype(np.int64), np.zeros(flows, np.int64),
    ))  # fmt: skip


def _channels(machine: Machine, config: RouterConfig) -> tuple[Int32Array, Int32Array]:
    """Return rows of all input and output virtual channels."""
    cores, v = machine.size, config.virtual_channels
    number = np.arange(cores * 5 * v)
    core, rest = np.divmod(number, 5 * v)
    port, vc = np.divmod(rest, v)
    ends = np.append(link_ends(machine).reshape(cores, 4), np.full((cores, 1), -1), 1)
    works = np.append(link_works(machine).reshape(cores, 4), np.ones((cores, 1), bool), 1)
    chip = machine.chip_of
    end = np.where(works[core, port], ends[core, port], -1)
    crosses = (end >= 0) & (chip[core] != chip[end])
    wire = np.where(crosses, config.crossing, config.link)
    outputs = np.zeros((len(number), 9), np.int32)
    outputs[:, at.CREDITS] = np.where((end >= 0) | (port == at.CORE), config.buffer_flits, 0)
    outputs[:, at.OWNER] = -1
    outputs[:, at.SINK] = np.where(end >= 0, (end * 5 + port) * v + vc, -1)
    outputs[:, at.DELAY] = config.switch_allocation + config.switch_traversal + wire
    outputs[:, at.LINK] = np.where(end >= 0, 4 * core + port, -1)
    outputs[:, at.PORT] = core * 8 + port
    outputs[:, at.INTERVAL] = np.where(crosses, config.crossing_interval, 1)
    outputs[:, at.RETURN] = outputs[:, at.DELAY] + config.link + config.credit + 1
    inputs = np.zeros((len(number), 10), np.int32)
    inputs[:, at.HOME] = core * 64 + rest
    inputs[:, at.FEEDER] = np.where(port == at.CORE, -1 - (core * v + vc), -1)
    # the source books a credit as it arrives, a router takes ``credit`` cycles more
    inputs[:, at.BACK] = config.switch_allocation + config.link
    fed = outputs[:, at.SINK] >= 0
    inputs[outputs[fed, at.SINK], at.FEEDER] = number[fed]
    inputs[outputs[fed, at.SINK], at.BACK] = config.switch_allocation + wire[fed] + config.credit
    return inputs, outputs


def _sources(
    machine: Machine, traffic: Traffic | Trace, order: IntArray, config: RouterConfig, window: tuple[int, int],
    tally: IntArray, chance: AnyArray,
) -> tuple[AnyArray, ...]:  # fmt: skip
    """Return sources, their credits, which are busy, their calendar, and where their packets come from."""
    cores = machine.size
    source = traffic.source[order]
    flow_start = np.searchsorted(source, np.arange(cores + 1)).astype(np.int64)
    sources = np.zeros((cores, 8), np.int64)
    sources[:, at.PACKET] = -1
    sources[:, at.VC] = config.virtual_channels - 1
    chances: FloatArray = np.zeros(cores)
    share, alias = np.ones(1), np.zeros(1, np.int64)
    entry_end = np.zeros(cores, np.int64)
    cycle = flow = count = np.zeros(1, np.int64)
    if isinstance(traffic, Trace):
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        by_core = np.argsort(traffic.source[traffic.flow], kind="stable")
        cycle, flow, count = traffic.cycle[by_core], place[traffic.flow[by_core]], traffic.count[by_core]
        last = np.searchsorted(source[flow], np.arange(cores), side="right").astype(np.int64)
        first = np.searchsorted(source[flow], np.arange(cores)).astype(np.int64)
        entry_end[:] = last
        some = last > first
        sources[:, at.ENTRY] = first
        sources[:, at.NEXT] = at.NEVER
        sources[some, at.NEXT] = cycle[first[some]]
        sources[some, at.LEFT_OVER] = count[first[some]]
    else:
        rate = traffic.rate[order]
        chances = np.bincount(source, rate, minlength=cores).astype(np.float64)
        share, alias = alias_tables(rate, flow_start)
        for core in range(cores):
            wait = gap(chance, float(chances[core]))
            sources[core, at.NEXT] = at.NEVER if wait >= at.NEVER else wait - 1
    tally[at.BEHIND] = int((sources[:, at.NEXT] < window[1]).sum())
    calendar = np.full(4096, -1, np.int64)
    for core in range(cores):
        due = int(sources[core, at.NEXT])
        if due < at.NEVER:
            bucket = min(due, len(calendar) - 1)
            sources[core, at.ASLEEP] = calendar[bucket]
            calendar[bucket] = core
    credits = np.full(cores * config.virtual_channels, config.buffer_flits, np.int64)
    return (
        sources, credits, np.zeros((cores + 31) // 32, np.int64), calendar, chances, flow_start, share, alias, entry_end, cycle,
        flow, count,
    )  # fmt: skip


def alias_tables(rate: FloatArray, start: IntArray) -> tuple[FloatArray, IntArray]:
    """Return alias tables (Walker 1977) of the flows of every source: ``share`` (F,) and ``alias`` (F,).

    A draw of flow ``f`` keeps it with probability ``share[f]``, else takes ``alias[f]``. ``start`` (sources + 1,) splits
    ``rate`` (F,) by source.
    """
    share, alias = np.ones(len(rate)), np.arange(len(rate))
    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        total = rate[a:b].sum()
        if b - a < 2 or total <= 0:
            continue
        scaled = (rate[a:b] * ((b - a) / total)).tolist()
        small = [k for k, x in enumerate(scaled) if x < 1]
        large = [k for k, x in enumerate(scaled) if x >= 1]
        while small and large:
            s, g = small.pop(), large[-1]
            share[a + s], alias[a + s] = scaled[s], a + g
            scaled[g] -= 1 - scaled[s]
            if scaled[g] < 1:
                small.append(large.pop())
    return share, alias
