"""The core-traffic bound (engine ``cover``): what every core must at least receive and send, whatever nodes it holds.

Every message (or pair of nodes) that touches k cores costs at least ``d0 * rate * (k - 1)`` (:func:`least_apart`). Let
traffic(S) be the sum of the rates of the messages with a node in S. Then any mapping with the node sets S_p on its P cores
costs at least

``d0 * (sum_p traffic(S_p) - sum of all rates)``,

and for any prices pi_u of the nodes, as every node is on one core,

``sum_p traffic(S_p) = sum_u pi_u + sum_p (traffic(S_p) - pi(S_p)) >= sum_u pi_u + P * min_S (traffic(S) - pi(S))``

over sets S that fit on a core (here: of at most as many nodes as the smallest sizes allow, and at least what the other
cores leave over). The minimum is found exactly by branch and bound (:mod:`.core_traffic_kernel`), the prices by a subgradient
method. This is the Lagrangian (Dantzig-Wolfe) bound of partitioning; it uses no distance but the least.
The certificate is pi.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from nmsolve.hw.cost import whole_costs
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.bound_context import (
    CLOSE,
    UNLIMITED,
    BoundContext,
    Duals,
    predicted_multipliers,
)
from nmsolve.solvers.mapping.bounds.core_traffic_kernel import MARGIN, TrafficNets, cheapest_set, cost_of
from nmsolve.solvers.mapping.bounds.nets import message_rows
from nmsolve.solvers.mapping.bounds.pairs import MAX_CORES, pair_form, room_per_core
from nmsolve.solvers.mapping.bounds.parts import least_apart

#: Most nodes, most nodes on a core, and most work of one pricing: tree nodes x (nodes + pins), a third of a second.
MAX_NODES, MAX_ROOM, MAX_WORK = 400, 12, 60e6
#: Step of the ascent: first, factor after STALL vain steps, last; share of the direction kept from step to step.
STEP, SHRINK, STALL, LAST, KEPT = 1.0, 0.7, 8, 1e-3, 0.6
#: Parts of the way from the first prices to predicted ones that are tried, the next where the pricing of one is given up.
BOLD = (1.0, 0.8, 0.6)
#: Prices are multiples of this part of the greatest rate, so that sums of them are exact.
GRAIN = 2.0**-24


def _too_large(problem: MappingProblem) -> str | None:
    room, usable = room_per_core(problem), int(problem.machine.usable.sum())
    if room < 2:
        return "no core can hold two nodes"
    if problem.n > MAX_NODES or room > MAX_ROOM:
        return f"{problem.n} nodes, {room} on a core: the limits are {MAX_NODES} and {MAX_ROOM}"
    if not 2 <= usable <= MAX_CORES or room * usable < problem.n or room >= problem.n:
        return f"{usable} usable cores with room for {room} of {problem.n} nodes each"
    return None


#: Why the bound cannot take a problem, or None.
refuses_core_traffic = takes(f"pairs trees reach {LIMITS}", _too_large)


def traffic_nets(problem: MappingProblem) -> TrafficNets:
    """Return the nets with two or more nodes, equal ones merged."""
    form = pair_form(problem)
    found: dict[tuple[int, ...], float] = {}
    if problem.uses_nets:
        graph, whole = problem.graph, message_rows(problem)
        for i in range(graph.rows):
            part = slice(graph.indptr[i], graph.indptr[i + 1])
            s, targets = int(graph.source[i]), graph.targets[part].tolist()
            groups = [(targets, float(graph.rate[i]))]
            if not whole[i]:
                groups = [([t], w) for t, w in zip(targets, graph.weights[part].tolist(), strict=True)]
            for pins, rate in groups:
                key = tuple(sorted({s, *pins}))
                found[key] = found.get(key, 0.0) + rate
    else:
        u, v = form.rows(), form.indices
        for a, b, w in zip(u.tolist(), v.tolist(), form.weights.tolist(), strict=True):
            if a < b:
                found[a, b] = found.get((a, b), 0.0) + w
    kept = [(key, rate) for key, rate in found.items() if len(key) > 1 and rate > 0]
    node = np.array([u for key, _ in kept for u in key], np.int64)
    pins = np.array([len(key) for key, _ in kept], np.int64)
    order = np.argsort(node, kind="stable")
    net_ptr = np.zeros(problem.n + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=problem.n), out=net_ptr[1:])
    room, parts = room_per_core(problem), int(problem.machine.usable.sum())
    return TrafficNets(
        net_ptr, np.repeat(np.arange(len(kept)), pins)[order], pins, np.array([rate for _, rate in kept]),
        least_apart(problem, form), parts, max(0, problem.n - (parts - 1) * room), room,
    )  # fmt: skip


def core_traffic_bounds(
    problem: MappingProblem, context: BoundContext = UNLIMITED, rounds: int = 2000
) -> Iterator[Bound]:
    """Yield ever better bounds, by at most ``rounds`` steps."""
    c = traffic_nets(problem)
    if len(c.rate) == 0 or not c.unit > 0:
        return
    grain = grain_of(c)
    whole = float(c.rate.sum())
    lattice = _lattice(problem)
    volume = volume_of(c)
    goal = min(context.upper() / c.unit, whole * (float(c.pins.max()) - 1.0)) + whole
    price = volume * (goal / volume.sum())
    best, best_price, told = -np.inf, price, 0.0
    most = int(MAX_WORK / (problem.n + len(c.nets)))
    member, size, direction, step, vain = np.zeros(c.room, np.int64), 0, np.zeros(problem.n), STEP, 0
    aside, tries = (price, direction), list[FloatArray]()
    for turn in range(rounds):
        if context.should_stop() or step < LAST:
            return
        if turn == 1 and context.duals is not None:
            tries = _foreseen(problem, volume, best_price, context.duals)
            if tries:
                aside = price, direction
                price, direction = tries[0], np.zeros(problem.n)
        price = np.rint(price / grain) * grain
        known = cost_of(c, member, size, price) if size >= c.least else np.inf
        known = min(known, 0.0 if c.least == 0 else np.inf) + 2 * MARGIN
        cheapest, tree, found = cheapest_set(c, price, known, most, member)
        value = float(price.sum()) + c.parts * (cheapest - 3 * MARGIN) - whole
        if tries:
            tries = tries[1:] if tree < 0 else []
            if tree < 0 or not value > max(best, 0.0):  # what proves nothing is no place for short steps
                price, direction = (tries[0], direction) if tries else aside
                continue
            step = STEP * CLOSE
        if tree < 0:
            if not np.isfinite(best) and (turn > 0 or context.duals is None):
                return
            # nearer to the best prices the search was short enough; what is predicted may be easier to price, too
            step, vain, price, direction = step * SHRINK, 0, best_price, np.zeros(problem.n)
            continue
        size = found if found >= 0 else size
        if value - best > 1e-7 * abs(value):
            best, best_price, vain = value, price, 0
            claim = round_up(c.unit * (best - 1e-9 * whole), lattice > 0, lattice or 1.0)
            if claim > told:
                told = claim
                yield Bound(claim, "cover", "full", {"method": "cover", "price": price.copy()})
        else:
            vain += 1
            if vain >= STALL:
                step, vain, price = step * SHRINK, 0, best_price
        slope = np.ones(problem.n)
        slope[member[:size]] -= c.parts
        direction = KEPT * direction + slope
        target = min(context.upper() / c.unit, 1.5 * abs(best) + 1.0)
        price = (
            price + step * max(target - value, 1e-3 * abs(target)) / float(direction @ direction) * direction
        )


def grain_of(c: TrafficNets) -> float:
    """Return what prices are multiples of."""
    return GRAIN * float(2.0 ** np.ceil(np.log2(c.rate.max())))


def volume_of(c: TrafficNets) -> FloatArray:
    """Return (n,) the rates of the nets of every node, added up."""
    n = len(c.net_ptr) - 1
    return np.asarray(np.bincount(np.repeat(np.arange(n), np.diff(c.net_ptr)), c.rate[c.nets], n), np.float64)


def _foreseen(
    problem: MappingProblem, volume: FloatArray, first: FloatArray, duals: Duals
) -> list[FloatArray]:
    """Return (n,) prices to try, from predicted ones back towards the ``first`` (n,); none without a prediction."""
    found = predicted_multipliers(duals, pair_traffic(problem), np.zeros(problem.n), room_per_core(problem))
    if found is None:
        return []
    predicted = volume + found[0] - found[1]
    return [first + part * (predicted - first) for part in BOLD]


def pair_traffic(problem: MappingProblem) -> csr_array:
    """Return (n, n) symmetric traffic of a problem's pairs of nodes."""
    form = pair_form(problem)
    return csr_array((form.weights, form.indices, form.indptr), shape=(problem.n, problem.n))


def _lattice(problem: MappingProblem) -> float:
    form = pair_form(problem)
    if not problem.uses_nets:
        return form.lattice
    return float(whole_costs(problem, form.distance))
