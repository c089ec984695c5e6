"""The Gilmore-Lawler bound, for one or several nodes per core.

``C[u, p] = 1/2 sum_j w_(j) near_p(slot(j))`` is the least that node u can cost on core p (weights falling, distances
rising; infinite where u may not be). Every core takes at most K nodes, so the cost of any mapping is at least the
least transport of nodes to cores under C, and, by weak duality, at least

``sum_u min_p (C[u, p] - v_p) + K sum_p v_p``    for every ``v <= 0``.

``v`` is the certificate: whoever checks it needs one sort and one row minimum, no assignment solver.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    ShouldStop,
    nearest,
    neighbour_slots,
    never,
    no_core,
    pair_form,
    room_per_core,
    too_wide,
)

#: Largest nodes x cores, and nodes x places (cores x nodes per core) for the assignment.
MAX_CELLS = 4_500_000


def _too_large(problem: MappingProblem) -> str | None:
    usable = int(problem.machine.usable.sum())
    places = min(usable * room_per_core(problem), usable * problem.n)
    if problem.n * max(places, usable) > MAX_CELLS or usable * usable > MAX_CELLS:
        return f"{problem.n} nodes on {places} places are too many for an assignment problem"
    return None


#: Why the bound cannot take a problem, or None.
refuses_gilmore_lawler = takes(f"pairs {LIMITS}", too_wide, no_core, _too_large)


def gilmore_lawler_bound(problem: MappingProblem, should_stop: ShouldStop = never) -> Bound:
    """Gilmore-Lawler bound of a pairwise problem with the assignment's dual values as certificate.

    Any state of the duals is valid; ``should_stop`` ends their refinement. Value ``inf`` is never returned: where no
    assignment exists (the problem is infeasible) the duals stay 0.
    """
    form = pair_form(problem)
    room = min(room_per_core(problem), problem.n)
    cost = node_core_costs(problem, form)
    dual = _dual_prices(cost, room, should_stop)
    value = dual_value(cost, room, dual)
    if (unpriced := dual_value(cost, room, np.zeros_like(dual))) > value:
        value, dual = unpriced, np.zeros_like(dual)
    certificate = {"method": "gilmore-lawler", "dual": dual}
    rounded = round_up(value, form.lattice > 0, form.lattice or 1.0)
    return Bound(rounded, "gilmore-lawler", "full", certificate)


def dual_value(cost: FloatArray, room: int, dual: FloatArray) -> float:
    """Return ``sum_u min_p (cost[u, p] - dual[p]) + room * sum(dual)``; nodes without any core count 0.

    ``cost`` is (n, k), inf where a node may not be; ``dual`` (k,).
    """
    reduced = (cost - dual).min(axis=1)
    return float(reduced[np.isfinite(reduced)].sum() + room * dual.sum())


def node_core_costs(problem: MappingProblem, form: PairForm) -> FloatArray:
    """Return (n, k) least cost of every node on every usable core (its half of its edges), inf where forbidden."""
    row, weight, slot, count = neighbour_slots(problem, form)
    binned = np.bincount(row * count + slot, weight, form.n * count).reshape(form.n, count)
    near = np.concatenate([nearest(block, which, count) for which, block in form.blocks()])
    near[~np.isfinite(near)] = 0.0
    cost: FloatArray = 0.5 * (binned @ near.T)
    cost[~problem.domains[problem.domain_of][:, form.cores]] = np.inf
    return cost


def _dual_prices(cost: FloatArray, room: int, should_stop: ShouldStop) -> FloatArray:
    """Return (k,) prices <= 0 of the cores: optimal for the assignment if time allows, else on the way there."""
    from scipy.optimize import linear_sum_assignment

    k = cost.shape[1]
    price = np.zeros(k)
    if len(cost) > k * room:  # no assignment places every node
        return price
    try:
        _, place = linear_sum_assignment(np.repeat(cost, room, axis=1) if room > 1 else cost)
    except ValueError:  # no assignment avoids the forbidden cells
        return price
    at: IntArray = place // room
    paid = cost[np.arange(len(cost)), at]
    # Shortest paths in the residual graph: a node may leave its core for p at price[its core] + cost difference.
    for _ in range(k):
        if should_stop():
            break
        lower = np.minimum(price, (cost - (paid - price[at])[:, None]).min(axis=0))
        if (lower >= price - 1e-12 * (1 + np.abs(price))).all():
            break
        price = lower
    return price
