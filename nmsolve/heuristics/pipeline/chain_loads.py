"""Compiled loads and costs of runs of layers along a chain, and the fewest cores with which they keep a ceiling.

Positions ``0..L - 1`` count layers along the order at hand; the run ``[i, j)`` holds positions i to j - 1. All times are ticks.
Loads fall with the cores; costs, which searches for sums add up, need not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.pipeline.stages import stream_ticks, streamed_bytes
from nmsolve.model.compiled import embedded, kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: A ceiling above every load: sums of ticks stay below 2^62.
ANY_LOAD = 2**62


class Chain(NamedTuple):
    """One order of the layers.

    Attributes
    ----------
    order : (L,) the layers
    work : (L + 1, C) time on groups of every size; storage, host, stuck : (L + 1,); all are sums over prefixes
    move : (L, L + 1) what :func:`transfers` fills
    live : (L, L + 1) most bytes live at once, what :func:`live_bytes` fills; of shape (0, 0) if none are counted
    room : (C,) most storage of a group of every size, live bytes included
    memory : bytes of a core, where there is off-chip memory
    offchip : ticks in which a core moves a byte beyond that; 0: nothing may be beyond it
    trips : (L + 1,) sums over prefixes of the trips of loops that begin there
    cut : (L + 1,) where a stage may begin
    rest : (L + 1,) time of cores and hosts that the layers from a position on need at least
    overlap : whether a group moves data while it computes
    replicas : most replicas of a stage, which take micro-batches in turns
    side : (C,) cores that a group of every size moves data through at a time
    """

    order: IntArray
    work: IntArray
    move: IntArray
    storage: IntArray
    live: IntArray
    room: IntArray
    memory: int
    offchip: float
    trips: IntArray
    host: IntArray
    stuck: IntArray
    cut: BoolArray
    rest: FloatArray
    overlap: bool
    replicas: int
    side: IntArray


@embedded
def off_chip(i: int, j: int, cores: int, chain: Chain, each: float, ways: int) -> int:
    """Ticks of moving what this many cores do not hold of the run [i, j): ``each`` per byte, ``ways`` bytes at a time."""
    moved = streamed_bytes(chain.storage[j] - chain.storage[i], chain.live[i, j], cores * chain.memory)
    moves = 1 + chain.trips[j] - chain.trips[i]
    return int(stream_ticks(moved, each * float(moves), ways))


@embedded
def group_load(i: int, j: int, cores: int, chain: Chain) -> int:
    """The load of the run [i, j) on this many cores that hold it, or have off-chip memory; it does not rise with them."""
    compute: int = chain.work[j, cores - 1] - chain.work[i, cores - 1]
    side, move = chain.side[cores - 1], chain.move[i, j]
    if side > 1:  # a division takes longer than all the rest
        move = (move + side - 1) // side
    off = 0
    if chain.offchip > 0.0:
        off = off_chip(i, j, cores, chain, chain.offchip, cores)
    load: int = max(compute, max(move, off)) if chain.overlap else compute + move + off
    return load


@embedded
def least_cores(i: int, j: int, low: int, high: int, ceiling: int, chain: Chain) -> int:
    """Fewest cores from ``low`` to ``high`` with which the run [i, j) keeps the ceiling; ``high + 1`` if even ``high`` do not."""
    if low > high or group_load(i, j, high, chain) > ceiling:
        return high + 1
    while low < high:
        middle = (low + high) // 2
        if group_load(i, j, middle, chain) <= ceiling:
            high = middle
        else:
            low = middle + 1
    return low


@plain
def least_holding(held: int, room: IntArray) -> int:
    """Fewest cores with room for so much; more than there are room for if none have."""
    # no fewer hold it: c cores have c times the room of one, but for rounding
    cores = max(1, held // (room[0] + 1)) if room[0] > 1024 else 1
    while cores <= room.shape[0] and held > room[cores - 1]:
        cores += 1
    return cores


@plain
def least_replicated(i: int, j: int, low: int, high: int, ceiling: int, chain: Chain) -> int:
    """As :func:`least_cores`, over all numbers of replicas, each of at least ``low`` cores.

    r replicas keep the ceiling if one of them takes at most r times as long.
    """
    best, largest = high + 1, chain.room.shape[0]
    for r in range(1, chain.replicas + 1):
        top = min(largest, (best - 1) // r)
        if low > top:
            break
        c = least_cores(i, j, low, top, times(ceiling, r), chain)
        if c <= top:
            best = r * c
    return best


@plain
def replicated_load(i: int, j: int, cores: int, chain: Chain) -> int:
    """The load of the run [i, j) on this many cores, with the best number of replicas."""
    held = chain.storage[j] - chain.storage[i]
    if chain.live.shape[0] > 0:
        held += chain.live[i, j]
    best, largest = ANY_LOAD, chain.room.shape[0]
    for r in range(1, min(chain.replicas, cores) + 1):
        c = min(largest, cores // r)
        if chain.offchip == 0.0 and held > chain.room[c - 1]:
            break
        best = min(best, (group_load(i, j, c, chain) + r - 1) // r)
    return best


@plain
def times(ceiling: int, factor: int) -> int:
    """This many ceilings, at most ``ANY_LOAD``."""
    return ANY_LOAD if ceiling >= ANY_LOAD // factor else ceiling * factor


class Costs(NamedTuple):
    """What stages cost; arrays of no size where that is their load.

    Attributes
    ----------
    work : (L + 1, C) of layers on groups of every size, sums over prefixes
    least : the same of the least on as many cores or more
    move : (L, L + 1) of what a run takes in
    offchip : per byte moved off chip
    """

    work: IntArray
    least: IntArray
    move: IntArray
    offchip: float


@embedded
def cost_of(i: int, j: int, cores: int, chain: Chain, costs: Costs) -> int:
    """The cost of the run [i, j) on this many cores, with room for it; its load where that is the cost."""
    if costs.work.shape[0] == 0:
        return int(group_load(i, j, cores, chain))
    moved = moving_cost(i, j, cores, chain, costs)
    return int(costs.work[j, cores - 1] - costs.work[i, cores - 1] + moved)


@embedded
def least_cost(i: int, j: int, cores: int, chain: Chain, costs: Costs) -> int:
    """A cost that the run is not below on this many cores or more. What moves off chip falls with them, as loads do."""
    largest = chain.work.shape[1]
    if costs.work.shape[0] == 0:
        return int(group_load(i, j, largest, chain))
    moved = moving_cost(i, j, largest, chain, costs)
    return int(costs.least[j, cores - 1] - costs.least[i, cores - 1] + moved)


@embedded
def moving_cost(i: int, j: int, cores: int, chain: Chain, costs: Costs) -> int:
    """The cost of what a run takes in, and of what its cores move off chip."""
    taken: int = costs.move[i, j]
    if chain.offchip == 0.0:
        return taken
    return int(taken + off_chip(i, j, cores, chain, costs.offchip, 1))


@kernel
def entering(source: IntArray, tensor: IntArray, used_at: IntArray, used: IntArray, out: IntArray) -> None:
    """Fill ``out`` (L, L + 1): ``tensor`` (T,) of all that come into the run [i, j), each once. Layers are in their own order;
    those that layer l uses are ``used[used_at[l]:used_at[l + 1]]``."""
    count = out.shape[0]
    latest = np.full(source.shape[0], -1, np.int64)  # the run that has it already, by its begin
    for i in range(count):
        amount = np.int64(0)
        for x in range(i, count):
            for k in range(used_at[x], used_at[x + 1]):
                t = used[k]
                if source[t] < i and latest[t] != i:
                    latest[t] = i
                    amount += tensor[t]
            out[i, x + 1] = amount


@embedded
def too_long(i: int, j: int, ceiling: int, chain: Chain) -> bool:
    """Whether no group can have [i, j), nor any longer run."""
    largest = chain.work.shape[1]
    if chain.work[j, largest - 1] - chain.work[i, largest - 1] > ceiling:
        return True
    held = chain.storage[j] - chain.storage[i]
    if chain.live.shape[0] > 0:
        held += chain.live[i, j]
    full: bool = chain.offchip == 0.0 and held > chain.room[largest - 1]
    return full


@embedded
def fewest(i: int, j: int, ceiling: int, chain: Chain) -> int:
    """The fewest cores with which the run keeps the ceiling and its storage fits; C + 1 if none do."""
    largest = chain.work.shape[1]
    if chain.offchip > 0.0:
        return int(least_cores(i, j, 1, largest, ceiling, chain))
    held = chain.storage[j] - chain.storage[i]
    if chain.live.shape[0] > 0:
        held += chain.live[i, j]
    low = least_holding(held, chain.room)
    return int(least_cores(i, j, low, largest, ceiling, chain))
