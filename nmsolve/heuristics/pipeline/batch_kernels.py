"""Compiled parts of the search for the best sum over the stages of a chain: the cheapest plan at a price per core, and an exact
search.

Stages have a load, which falls with their cores, and a cost, which need not: of a batch it is the load, else their energy. A plan
within a ceiling on loads is charged its costs plus ``price`` per core. For any price, the least charge of all plans less price
times N is a bound on the sum of costs of every plan with up to N cores (Lagrangian relaxation). Positions, runs and states are
those of :mod:`.chain_kernels`; a state is a number of stages. Loads and costs are whole ticks, sums floats of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.chain_kernels import Limits
from nmsolve.heuristics.pipeline.chain_loads import (
    Chain,
    Costs,
    cost_of,
    fewest,
    group_load,
    least_cost,
    too_long,
)
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray

#: Part by which sums of this many floats can be off.
OFF = 1e-13


class Arcs(NamedTuple):
    """(A,) each: state before, first position, end of a run; state after it; its cores, load and cost. In falling order of
    begins."""

    before: IntArray
    begin: IntArray
    end: IntArray
    after: IntArray
    cores: IntArray
    load: IntArray
    cost: FloatArray

    @classmethod
    def room(cls, size: int) -> Arcs:
        """Room for this many."""
        a, b, c, d, e, f = (np.empty(size, np.int64) for _ in range(6))
        return cls(a, b, c, d, e, f, np.empty(size))


@plain
def following(state: int, limits: Limits) -> int:
    """The state after one more stage, -1 if there may be none."""
    if limits.rows == 1:
        return 0
    return state + 1 if state + 1 < limits.rows else -1


@plain
def final(state: int, limits: Limits) -> bool:
    """Whether a whole plan may end in this state."""
    return limits.rows == 1 or (state >= limits.least_stages and state >= limits.least_groups)


@kernel
def cheapest(
    ceiling: int,
    price: float,
    chain: Chain,
    costs: Costs,
    limits: Limits,
    lean: bool,
    cost: FloatArray,
    origin: IntArray,
) -> int:
    """Fill ``cost`` (rows, L + 1), the least charge of every prefix in every state, and ``origin`` (rows, L + 1, 3): where the
    last stage begins, in which state, and its cores. Returns the final state of the cheapest plan, -1 if there is none.

    ``lean`` : a prefix that costs no less than one of fewer stages is no better in a plan, and not gone on from.
    """
    lean = lean and limits.least_stages <= 1 and limits.least_groups == 0
    count, largest, rises = chain.work.shape[0] - 1, chain.work.shape[1], costs.work.shape[0] > 0
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
                least = least_cost(i, j, 1, chain, costs)
                if cost[s, i] + price + least >= cost[to, j]:
                    continue
                for c in range(fewest(i, j, ceiling, chain), largest + 1):
                    base = cost[s, i] + price * c
                    if rises:  # of loads it is that on the largest group for any c
                        least = least_cost(i, j, c, chain, costs)
                    if base + least >= cost[to, j]:
                        break
                    value = base + cost_of(i, j, c, chain, costs)
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


@plain
def read_plan(
    state: int, chain: Chain, costs: Costs, origin: IntArray, stages: IntArray
) -> tuple[int, float, int]:
    """Read the plan that ends in ``state`` into ``stages`` (L, 2), first positions and cores, from its end; -1: no more.

    Returns its cores, the sum of its costs, and the largest load.
    """
    j, row, cores, total, worst = chain.work.shape[0] - 1, 0, 0, 0.0, 0
    while j > 0:
        i, before, c = origin[state, j, 0], origin[state, j, 1], origin[state, j, 2]
        cores, total = cores + c, total + cost_of(i, j, c, chain, costs)
        worst = max(worst, group_load(i, j, c, chain))
        stages[row, 0], stages[row, 1] = i, c
        row, j, state = row + 1, i, before
    stages[row:, 0] = -1
    return cores, total, worst


@kernel
def best_price(
    ceiling: int,
    first: float,
    unit: float,
    weight: float,
    chain: Chain,
    costs: Costs,
    limits: Limits,
    known: float,
    stages: IntArray,
    tries: int,
) -> tuple[float, float, float]:
    """Look for the price with the largest bound on the sum of costs within the ceiling; ``first`` is tried first, and ``unit``
    after 0.

    Returns that bound (inf: no plan keeps the ceiling), its price, and the least sum of costs and ``weight`` times the largest
    load of the plans met that have enough cores, which is in ``stages`` if it is below ``known``.
    """
    rows, count = limits.rows, chain.work.shape[0] - 1
    cost, origin = np.empty((rows, count + 1)), np.zeros((rows, count + 1, 3), np.int64)
    trial = np.empty_like(stages)
    low, high, price = 0.0, -1.0, first
    bound, chosen = -np.inf, first
    for _ in range(tries):
        state = cheapest(ceiling, price, chain, costs, limits, True, cost, origin)
        if state < 0:
            return np.inf, price, known
        paid = price * limits.cores
        found = cost[state, count] - paid - OFF * (cost[state, count] + paid)
        if found > bound:
            bound, chosen = found, price
        cores, total, worst = read_plan(state, chain, costs, origin, trial)
        if cores <= limits.cores:
            value = total + weight * float(worst)  # may be more than 64 bits hold
            if value < known:
                known = value
                stages[:] = trial
            high = price
        else:
            low = price
        if bound >= known or cores == limits.cores or (high >= 0.0 and high - low <= 1e-5 * high):
            break
        price = 0.5 * (low + high) if high >= 0.0 else 2.0 * price if price > 0.0 else unit
    return bound, chosen, known


@kernel
def arcs_left(
    ceiling: int,
    price: float,
    floor: float,
    below: float,
    weight: float,
    chain: Chain,
    costs: Costs,
    limits: Limits,
    arcs: Arcs,
) -> int:
    """All stages that a plan within the ceiling may have whose costs and ``weight`` times its largest load are below ``below``.

    A stage is left out if even the cheapest layers before and after it make the plan too dear, at a price per core that is right
    for any price, with a largest load of at least ``floor``; or if the same layers on fewer cores cost no more and have no larger
    load, or none above the floor, where every plan is. Fills ``arcs`` as far as they go; returns how many there are.
    """
    rows, count, largest = limits.rows, chain.work.shape[0] - 1, chain.work.shape[1]
    cost, origin = np.empty((rows, count + 1)), np.zeros((rows, count + 1, 3), np.int64)
    cheapest(ceiling, price, chain, costs, limits, False, cost, origin)
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
                cheap, slow = np.inf, np.inf  # of the last one that was not left out for fewer cores
                for c in range(fewest(i, j, ceiling, chain), largest + 1):
                    own, paid = group_load(i, j, c, chain), float(cost_of(i, j, c, chain, costs))
                    behind = paid + price * c + rest[to, j]
                    rest[s, i] = min(rest[s, i], behind)
                    if cheap <= paid and slow <= max(floor, float(own)):
                        continue
                    cheap, slow = paid, max(floor, float(own))
                    whole = cost[s, i] + behind - price * limits.cores + weight * max(floor, float(own))
                    if whole >= below:
                        continue
                    if number < arcs.load.shape[0]:
                        arcs.before[number], arcs.begin[number], arcs.end[number] = s, i, j
                        arcs.after[number], arcs.cores[number] = to, c
                        arcs.load[number], arcs.cost[number] = own, paid
                    number += 1
    return number


@kernel
def least_sum(number: int, arcs: Arcs, count: int, limits: Limits, stages: IntArray) -> float:
    """The least sum of costs of a plan of the first ``number`` arcs with up to N cores, inf if there is none; the plan in
    ``stages`` (L, 2), from its end: of those with this sum, one with the least largest load."""
    rows, cores = limits.rows, limits.cores
    total = np.full((rows, count + 1, cores + 1), np.inf)
    worst = np.zeros((rows, count + 1, cores + 1), np.int64)
    chosen = np.full((rows, count + 1, cores + 1), -1, np.int64)
    total[0, 0, 0] = 0.0
    for a in range(number - 1, -1, -1):
        before, begin, after, end = arcs.before[a], arcs.begin[a], arcs.after[a], arcs.end[a]
        source, target, mark = total[before, begin], total[after, end], chosen[after, end]
        loads, most, c, cost = worst[before, begin], worst[after, end], arcs.cores[a], arcs.cost[a]
        for n in range(c, cores + 1):
            value = source[n - c] + cost
            if value <= target[n] and value < np.inf:
                load = max(loads[n - c], arcs.load[a])
                if value < target[n] or load < most[n]:
                    target[n], most[n], mark[n] = value, load, a
    best, state, n, least = np.inf, -1, -1, np.int64(0)
    for s in range(rows):
        for used in range(cores + 1):
            value = total[s, count, used]
            if final(s, limits) and (
                value < best or (value == best and value < np.inf and worst[s, count, used] < least)
            ):
                best, state, n, least = value, s, used, worst[s, count, used]
    row, j = 0, count
    while state >= 0 and j > 0:
        a = chosen[state, j, n]
        stages[row, 0], stages[row, 1] = arcs.begin[a], arcs.cores[a]
        state, j, n, row = arcs.before[a], arcs.begin[a], n - arcs.cores[a], row + 1
    stages[row:, 0] = -1
    return best


@kernel
def read_costs(stages: IntArray, chain: Chain, costs: Costs) -> tuple[float, int]:
    """The sum of costs and the largest load of (L, 2) first positions and cores, from the end of the plan; -1: no more."""
    total, worst, count = 0.0, 0, 0
    while count < stages.shape[0] and stages[count, 0] >= 0:
        count += 1
    end = chain.work.shape[0] - 1
    for row in range(count):
        begin, cores = stages[row, 0], stages[row, 1]
        total += cost_of(begin, end, cores, chain, costs)
        worst, end = max(worst, group_load(begin, end, cores, chain)), begin
    return total, worst
