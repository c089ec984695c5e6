"""Compiled parts of searches along a chain that add up its stages: what a run of layers takes and costs on some cores, and on how
many it may be.

Positions, runs and stages are those of :mod:`.chain_loads`. Loads fall with the cores; costs need not. Both are whole ticks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.chain_loads import (
    Chain,
    group_load,
    least_cores,
    least_holding,
    off_chip,
)
from nmsolve.model.compiled import embedded, kernel
from nmsolve.model.types import IntArray


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
