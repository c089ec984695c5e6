"""Compiled parts of the search for the fastest batch along a chain: the cheapest plan at a price per core, and an exact search.

A plan within a ceiling on loads costs the sum of its loads plus ``price`` per core. For any price, the least cost of all plans
less price times N is a bound on the sum of loads of every plan with up to N cores (Lagrangian relaxation). Positions, runs and
states are those of :mod:`.chain_kernels`; a state is a number of stages. Times are ticks, sums and costs floats of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.chain_kernels import (
    Chain,
    Limits,
    group_load,
    least_cores,
    least_holding,
    least_streamed,
    least_trained,
    streamed_load,
    trained_load,
)
from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.types import FloatArray, IntArray

#: Part by which sums of so many floats can be off.
OFF = 1e-13


class Arcs(NamedTuple):
    """(A,) each: state before, first position, end of a run; state after it; its cores and load. In falling order of begins."""

    before: IntArray
    begin: IntArray
    end: IntArray
    after: IntArray
    cores: IntArray
    load: FloatArray

    @classmethod
    def room(cls, size: int) -> Arcs:
        """Room for so many."""
        a, b, c, d, e = (np.empty(size, np.int64) for _ in range(5))
        return cls(a, b, c, d, e, np.empty(size))


@plain_callee
def load_of(i: int, j: int, cores: int, stage: int, chain: Chain) -> int:
    """The load of the run [i, j) on so many cores, with room for it, as stage number ``stage`` of training."""
    if chain.offchip > 0.0:
        return int(streamed_load(i, j, cores, chain))
    if chain.kept.shape[0] > 0:
        return int(trained_load(i, j, cores, stage, chain))
    return int(group_load(i, j, cores, chain))


@plain_callee
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


@plain_callee
def fewest(i: int, j: int, ceiling: int, stage: int, chain: Chain) -> int:
    """The fewest cores with which the run keeps the ceiling and its storage fits; C + 1 if none do."""
    largest = chain.work.shape[1]
    if chain.offchip > 0.0:
        return int(least_streamed(i, j, 1, largest, ceiling, chain))
    held = chain.storage[j] - chain.storage[i]
    if chain.live.shape[0] > 0:
        held += chain.live[i, j]
    low = least_holding(held, chain.room)
    if chain.kept.shape[0] > 0:
        return int(least_trained(i, j, low, largest, ceiling, stage, chain))
    return int(least_cores(i, j, low, largest, ceiling, chain))


@plain_callee
def following(state: int, limits: Limits) -> int:
    """The state after one more stage, -1 if there may be none."""
    if limits.rows == 1:
        return 0
    if state + 1 < limits.rows:
        return state + 1
    return state if limits.endless else -1


@plain_callee
def final(state: int, limits: Limits) -> bool:
    """Whether a whole plan may end in this state."""
    return limits.rows == 1 or (state >= limits.least_stages and state >= limits.least_groups)


@kernel
def cheapest(
    ceiling: int, price: float, chain: Chain, limits: Limits, lean: bool, cost: FloatArray, origin: IntArray
) -> int:
    """Fill ``cost`` (rows, L + 1), the least of every prefix in every state, and ``origin`` (rows, L + 1, 3): where the last
    stage begins, in which state, and its cores. Returns the final state of the cheapest plan, -1 if there is none.

    ``lean`` : a prefix that costs no less than one of fewer stages is no better in a plan, and not gone on from.
    """
    lean = lean and limits.least_stages <= 1 and limits.least_groups == 0
    count, largest = chain.work.shape[0] - 1, chain.work.shape[1]
    cost[:] = np.inf
    cost[0, 0] = 0.0
    for j in range(1, count + 1):
        if not chain.cut[j]:
            continue
        for i in range(j - 1, -1, -1):
            if too_long(i, j, ceiling, chain):
                break
            if not chain.cut[i]:
                continue
            fewer = np.inf
            for s in range(cost.shape[0]):
                to = following(s, limits)
                if to < 0 or cost[s, i] >= fewer:
                    continue
                if lean:
                    fewer = cost[s, i]
                least = load_of(i, j, largest, to, chain)
                if cost[s, i] + price + least >= cost[to, j]:
                    continue
                for c in range(fewest(i, j, ceiling, to, chain), largest + 1):
                    base = cost[s, i] + price * c
                    if base + least >= cost[to, j]:
                        break
                    value = base + load_of(i, j, c, to, chain)
                    if value < cost[to, j]:
                        cost[to, j] = value
                        origin[to, j, 0], origin[to, j, 1], origin[to, j, 2] = i, s, c
    best = -1
    for s in range(cost.shape[0]):
        if (
            final(s, limits)
            and np.isfinite(cost[s, count])
            and (best < 0 or cost[s, count] < cost[best, count])
        ):
            best = s
    return best


@plain_callee
def read_plan(state: int, chain: Chain, origin: IntArray, stages: IntArray) -> tuple[int, float, int]:
    """Read the plan that ends in ``state`` into ``stages`` (L, 2), first positions and cores, from its end; -1: no more.

    Returns its cores, the sum of its loads, and the largest.
    """
    j, row, cores, total, worst = chain.work.shape[0] - 1, 0, 0, 0.0, 0
    while j > 0:
        i, before, c = origin[state, j, 0], origin[state, j, 1], origin[state, j, 2]
        load = load_of(i, j, c, state, chain)
        cores, total, worst = cores + c, total + load, max(worst, load)
        stages[row, 0], stages[row, 1] = i, c
        row, j, state = row + 1, i, before
    stages[row:, 0] = -1
    return cores, total, worst


@kernel
def best_price(
    ceiling: int,
    first: float,
    rounds: int,
    chain: Chain,
    limits: Limits,
    known: float,
    stages: IntArray,
    tries: int,
) -> tuple[float, float, float]:
    """Look for the price with the largest bound on the sum of loads within the ceiling; ``first`` > 0 is tried first.

    Returns that bound (inf: no plan keeps the ceiling), its price, and the least time of ``rounds`` micro-batches of the plans
    met that have enough cores, which is in ``stages`` if it is below ``known``.
    """
    rows, count = limits.rows, chain.work.shape[0] - 1
    cost, origin = np.empty((rows, count + 1)), np.zeros((rows, count + 1, 3), np.int64)
    trial = np.empty_like(stages)
    low, high, price = 0.0, -1.0, first
    bound, chosen = -np.inf, first
    for _ in range(tries):
        state = cheapest(ceiling, price, chain, limits, True, cost, origin)
        if state < 0:
            return np.inf, price, known
        paid = price * limits.cores
        found = cost[state, count] - paid - OFF * (cost[state, count] + paid)
        if found > bound:
            bound, chosen = found, price
        cores, total, worst = read_plan(state, chain, origin, trial)
        if cores <= limits.cores:
            value = total + float(rounds - 1) * float(worst)  # may be more than 64 bits hold
            if value < known:
                known = value
                stages[:] = trial
            high = price
        else:
            low = price
        if bound >= known or cores == limits.cores or (high >= 0.0 and high - low <= 1e-5 * high):
            break
        price = 2.0 * price if high < 0.0 else 0.5 * (low + high)
    return bound, chosen, known


@kernel
def arcs_left(
    ceiling: int,
    price: float,
    floor: float,
    below: float,
    rounds: int,
    chain: Chain,
    limits: Limits,
    arcs: Arcs,
) -> int:
    """All stages that a plan within the ceiling whose batch takes less than ``below`` may have.

    A stage is left out if even the cheapest layers before and after it make the plan too slow, at a price per core that is
    right for any price, with a largest load of at least ``floor``. Fills ``arcs`` as far as they go; returns how many there are.
    """
    rows, count, largest = limits.rows, chain.work.shape[0] - 1, chain.work.shape[1]
    cost, origin = np.empty((rows, count + 1)), np.zeros((rows, count + 1, 3), np.int64)
    cheapest(ceiling, price, chain, limits, False, cost, origin)
    rest = np.full((rows, count + 1), np.inf)
    for s in range(rows):
        if final(s, limits):
            rest[s, count] = 0.0
    number = 0
    for i in range(count - 1, -1, -1):
        if not chain.cut[i]:
            continue
        for j in range(i + 1, count + 1):
            if too_long(i, j, ceiling, chain):
                break
            if not chain.cut[j]:
                continue
            for s in range(rows):
                to = following(s, limits)
                if to < 0 or not np.isfinite(rest[to, j]):
                    continue
                for c in range(fewest(i, j, ceiling, to, chain), largest + 1):
                    own = load_of(i, j, c, to, chain)
                    behind = own + price * c + rest[to, j]
                    rest[s, i] = min(rest[s, i], behind)
                    whole = (
                        cost[s, i]
                        + behind
                        - price * limits.cores
                        + float(rounds - 1) * max(floor, float(own))
                    )
                    if whole >= below:
                        continue
                    if number < arcs.load.shape[0]:
                        arcs.before[number], arcs.begin[number], arcs.end[number] = s, i, j
                        arcs.after[number], arcs.cores[number], arcs.load[number] = to, c, own
                    number += 1
    return number


@kernel
def least_sum(number: int, arcs: Arcs, count: int, limits: Limits, stages: IntArray) -> float:
    """The least sum of loads of a plan of the first ``number`` arcs with up to N cores, inf if there is none; the plan in
    ``stages`` (L, 2), from its end."""
    rows, cores = limits.rows, limits.cores
    total = np.full((rows, count + 1, cores + 1), np.inf)
    chosen = np.full((rows, count + 1, cores + 1), -1, np.int64)
    total[0, 0, 0] = 0.0
    for a in range(number - 1, -1, -1):
        source, target = total[arcs.before[a], arcs.begin[a]], total[arcs.after[a], arcs.end[a]]
        mark, c, load = chosen[arcs.after[a], arcs.end[a]], arcs.cores[a], arcs.load[a]
        for n in range(c, cores + 1):
            value = source[n - c] + load
            if value < target[n]:
                target[n], mark[n] = value, a
    best, state, n = np.inf, -1, -1
    for s in range(rows):
        for used in range(cores + 1):
            if final(s, limits) and total[s, count, used] < best:
                best, state, n = total[s, count, used], s, used
    row, j = 0, count
    while state >= 0 and j > 0:
        a = chosen[state, j, n]
        stages[row, 0], stages[row, 1] = arcs.begin[a], arcs.cores[a]
        state, j, n, row = arcs.before[a], arcs.begin[a], n - arcs.cores[a], row + 1
    stages[row:, 0] = -1
    return best


@kernel
def read_loads(stages: IntArray, chain: Chain) -> tuple[float, int]:
    """The sum and the largest of the loads of (L, 2) first positions and cores, from the end of the plan; -1: no more."""
    total, worst, count = 0.0, 0, 0
    while count < stages.shape[0] and stages[count, 0] >= 0:
        count += 1
    end = chain.work.shape[0] - 1
    for row in range(count):
        load = load_of(stages[row, 0], end, stages[row, 1], count - row, chain)
        total, worst, end = total + load, max(worst, load), stages[row, 0]
    return total, worst
