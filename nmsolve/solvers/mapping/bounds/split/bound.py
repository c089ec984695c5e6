"""The split bound: certified bounds from the ascent, and what the certificate holds.

For every k x k matrix M with symmetric part S, and multipliers tau >= 0 of rows ``A_k . D >= b_k`` that all mappings
obey, twice the cost of a mapping is at least

``PB(S) + GLB(W - M - sum tau_k A_k) + sum tau_k b_k``

with the projection bound PB and the matrix of least scalar products of Gilmore and Lawler; both linear parts are paid in
one assignment, bounded by prices of the cores. Proofs: docs/bounds.md, "split".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, seats, too_wide, usable_cores
from nmsolve.solvers.mapping.bounds.projection import DiagonalAscent, project
from nmsolve.solvers.mapping.bounds.split.ascent import LARGE, Ascent, Multipliers
from nmsolve.solvers.mapping.bounds.split.form import SplitForm, split_form
from nmsolve.solvers.mapping.bounds.split.rows import Rows
from nmsolve.solvers.mapping.bounds.split.value import assign, lawler_costs

#: Most usable cores: every step costs some k^3.
MAX_SIDE = 1600
#: Digits after the leading one of the largest multiplier that a certificate keeps.
DIGITS = 6
#: A certificate is made once the bound has grown by this part, and at most this part of the time goes into them.
GROWTH, EFFORT = 0.002, 0.1
#: Part of the time, and most steps, for the diagonal shift at the start; the former also on LARGE boards, where the ascent that
#: follows has few steps.
FIRST, FIRST_ROUNDS, FIRST_LARGE = 0.1, 60, 0.4


#: Why the bound cannot take a problem, or None.
refuses_split = takes(
    f"pairs {LIMITS} -several -lone", at_most(MAX_SIDE, usable_cores, "usable cores"), seats(3), too_wide
)


def split_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better certified bounds until the steps are too short to matter, time is up or the optimum is proved."""
    proved = 0.0
    for bound, _ in climb_split(split_form(problem), context):
        if bound.value > proved:
            proved = bound.value
            yield bound
        if proved >= context.upper():
            return


def first_split_bound(problem: MappingProblem, upper: float, should_stop: ShouldStop) -> Bound:
    """Return the bound at the best of the points that the ascent begins with: no less than projection and Gilmore-Lawler."""
    form = split_form(problem)
    shift = first_shift(form, 2.0 * (upper - form.base), should_stop)
    return certified_bound(form, Ascent(form, shift, should_stop).best)[0]


def climb_split(form: SplitForm, context: BoundContext) -> Iterator[tuple[Bound, float]]:
    """Certified bounds on a form, each with its plain value, made during the ascent."""
    clock, upper = context.clock, context.upper
    began = clock()

    large = form.k >= LARGE

    def enough() -> bool:
        return context.should_stop() or clock() - began > (FIRST_LARGE if large else FIRST) * context.seconds

    shift = first_shift(form, 2.0 * (upper() - form.base), enough)
    certified, spent, cost, ending = -np.inf, 0.0, 0.0, False
    if large:  # the projection bound; what follows may take long to pass it
        bound, value = certified_bound(form, Multipliers.spectral(form, shift))
        yield bound, value
        certified = 2.0 * (value - form.base)
    ascent = Ascent(form, shift, context.should_stop)
    while not ending:
        goal = upper()
        ascent.advance(2.0 * (goal - form.base))
        now = clock() - began
        over = ascent.exhausted or context.should_stop() or context.remaining(now) < 1.2 * cost
        reached = form.base + ascent.best.value / 2 >= goal * (1 - 1e-9)
        ending = over or reached or not np.isfinite(ascent.m).all()
        grown = ascent.best.value > certified + GROWTH * abs(certified) or not np.isfinite(certified)
        if ascent.best.value > certified and (ending or (grown and spent + cost <= EFFORT * now)):
            bound, value = certified_bound(form, ascent.best)
            ascent.correct(2.0 * (value - form.base))
            certified = ascent.best.value
            cost = clock() - began - now
            spent += cost
            yield bound, value


def first_shift(form: SplitForm, upper: float, enough: Callable[[], bool]) -> FloatArray:
    """(k,) diagonal shift that makes all traffic's projection bound good, by a short ascent towards ``upper``, a doubled cost."""
    ascent = DiagonalAscent(form.traffic, form.reach, form.mu)
    for _ in range(FIRST_ROUNDS):
        if enough():
            break
        ascent.advance(upper)
    return ascent.best_shift


def certified_bound(form: SplitForm, point: Multipliers) -> tuple[Bound, float]:
    """Return the bound at a point's rounded multipliers, lowered by what floating point may have added; its plain value."""
    m = rounded(point.m)
    np.fill_diagonal(m, rounded(np.diag(point.m)))
    keep = rounded(point.tau) > 0
    rows = Rows.of(point.table[keep], rounded(point.tau)[keep], form)
    value, price = certified_value(form, m, rows)
    used = np.abs(rows.table) > 0
    certificate = {
        "method": "split",
        "multipliers": m.ravel(),
        "sizes": used.sum(axis=1),
        "members": rows.table[used].astype(np.int64),
        "tau": rows.tau,
        "price": price,
    }
    bound = Bound(round_up(value, form.lattice > 0, form.lattice or 1.0), "split", "full", certificate)
    return bound, value


def rounded(values: FloatArray) -> FloatArray:
    """Round values (any shape) to DIGITS decimal digits after the leading one of the largest: any multipliers are valid."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(values)
    out: FloatArray = np.round(values, DIGITS - int(np.floor(np.log10(largest)))) + 0.0
    return out


def certified_value(form: SplitForm, m: FloatArray, rows: Rows) -> tuple[float, FloatArray]:
    """Return the bound (objective units) at the multipliers ``m`` (k, k), less rounding errors, and (k,) prices of the cores.

    Eigenvalues come from a dense decomposition.
    """
    k, mu = form.k, form.mu
    shift = (m + m.T) / 2
    load = shift.sum(axis=1)
    lam = np.linalg.eigvalsh(project(shift))
    weight = np.sort(np.concatenate([mu, np.zeros(k - 1 - len(mu))]))[::-1]
    _, cost = lawler_costs(form, m, rows)
    cost += np.outer(load, (2 / k) * form.reach)
    if len(form.forbidden):
        cost[form.forbidden] = np.inf
    price = np.zeros(k)
    # dearer than any assignment of allowed cells can save elsewhere, and no dearer: prices follow it, also of tiny weights
    dear = (2 * k + 2) * float(np.abs(cost[np.isfinite(cost)]).max())
    assign(np.where(np.isfinite(cost), cost, dear), price)
    price = rounded(price)
    least = (cost - price).min(axis=1)
    linear = float(least[np.isfinite(least)].sum() + price.sum())
    constant = float(load.sum()) * float(form.reach.sum()) / k**2
    farthest = float(form.distance.max())
    pairs = float(rows.tau @ rows.pairs)
    mass = (
        np.abs(form.traffic).sum()
        + 3 * np.abs(m).sum()
        + 2 * pairs
        + np.abs(price).sum() / max(farthest, 1.0)
    )
    size = np.linalg.norm(shift) * np.abs(mu).sum() + np.abs(lam).sum() * np.abs(mu).max(initial=0.0)
    margin = 8 * k * np.finfo(float).eps * (size + max(farthest, 1.0) * mass + rows.tau @ rows.rhs)
    doubled = float(lam @ weight) + linear - constant + rows.paid() - float(margin)
    return form.base + doubled / 2, price
