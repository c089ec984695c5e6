"""The subgraph bound: one Lagrangian over exactly solved sets, stars on the real cores, and metric rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop
from nmsolve.solvers.mapping.bounds.subgraphs.ascent import (
    Multipliers,
    Parts,
    ascend,
    capacities,
    set_values,
    share_out,
)
from nmsolve.solvers.mapping.bounds.subgraphs.choose import grown_sets
from nmsolve.solvers.mapping.bounds.subgraphs.form import Form, build_form
from nmsolve.solvers.mapping.bounds.subgraphs.pool import Pool, component_of, joined, make_pool, price

#: Part of the way from the best point to the model's optimum that is tried next.
TRUST = 0.3
#: Steps of the ascent between two rounds of exact solving, for up to SMALL nodes and beyond.
STEPS_SMALL, STEPS, SMALL = 200, 60, 300
#: Part of its equal share that a set starts with if it comes later.
FIRST_SHARE = 0.3
#: Set sizes, one after the other, and how often sets are grown from every node, for up to SMALL nodes and beyond.
STAGES_SMALL: tuple[tuple[int, int], ...] = ((10, 4), (11, 2), (12, 2))
STAGES: tuple[tuple[int, int], ...] = ((9, 1), (10, 1), (11, 1))
#: What the steps of the climb aim at, above the best value: where no mapping is known, and at least.
DISTANT_GOAL, NEAR_GOAL = 0.2, 0.002
#: Multipliers beyond this are not taken: sums of whole numbers must stay exact.
LARGEST = 2.0**50
#: Sets solved between two looks at the clock.
BATCH = 16
#: A stage ends, after at least this many rounds, when the last few together gain less than a part; a bound is reported when
#: it gained so much.
LEAST_ROUNDS, WINDOW, LEAST_GAIN, TOLD_GAIN = 25, 10, 0.001, 0.002


class Decomposition:
    """A form with its sets: evaluates points exactly and climbs on the model."""

    def __init__(self, form: Form, sets: list[list[int]]) -> None:
        self.form = form
        self.weight = form.weight.astype(np.float64)
        self.theta = 0.5
        self._take(make_pool(form, sets))

    def _take(self, pool: Pool) -> None:
        self.pool = pool
        self.entries = len(pool.pair)
        self.pair_of = np.concatenate([pool.pair, self.form.star_pair])
        self.entry = np.argsort(self.pair_of, kind="stable")
        count = np.bincount(self.pair_of, minlength=len(self.form.pair))
        self.pair_ptr = np.concatenate([[0], np.cumsum(count)])
        self.forget()

    def forget(self) -> None:
        """Begin the climb again: no running means, longer steps."""
        self.theta = min(1.0, 2.0 * self.theta)
        self._smooth, self._crowd = np.zeros(len(self.pair_of)), np.zeros(len(self.form.near))

    def change(self, point: Multipliers, keep: IntArray, sets: list[list[int]]) -> Multipliers:
        """Keep the sets ``keep`` (kept,) and add ``sets``; return the point with what dropped sets had given to other parts.

        A new set gets a small part of every edge, for a set that has nothing shows no direction.
        """
        before = self.entries
        pool, entries = joined(self.pool, keep, make_pool(self.form, sets) if sets else None)
        self._take(pool)
        fresh = self.entries - len(entries)
        degree = np.diff(self.pair_ptr)[pool.pair[len(entries) :]]
        small = FIRST_SHARE * self.weight[pool.pair[len(entries) :]] / degree
        share = np.concatenate([point.share[:before][entries], small, point.share[before:]])
        capacity = np.zeros(len(self.weight))
        tau = point.tau.copy()
        capacities(self.weight, self.form.row, tau, capacity)
        given = np.bincount(self.pair_of, share, len(capacity))
        if fresh:
            share *= (capacity / np.maximum(given, 1e-300))[self.pair_of]
        else:
            share_out(capacity, self.pair_ptr, self.entry, share)
        return Multipliers(share, tau, point.price.copy())

    def start(self) -> Multipliers:
        """Give every part of an edge the same share."""
        share = (self.weight / np.diff(self.pair_ptr))[self.pair_of]
        return Multipliers(share, np.zeros(len(self.form.row)), np.zeros(len(self.form.near)))

    def climb(self, point: Multipliers, upper: float, steps: int) -> float:
        """Move ``point`` to a better one of the model; its value there."""
        form, pool = self.form, self.pool
        parts = Parts(
            form.full, self.weight, form.row, pool.ptr, pool.distance, pool.filled, form.star_ptr, form.near, form.count,
            form.step, self.pair_ptr, self.entry,
        )  # fmt: skip
        value, self.theta = ascend(
            steps, upper, self.theta, parts, point, self._smooth, self._crowd
        )  # fmt: skip
        return float(value)

    def whole(self, point: Multipliers) -> tuple[IntArray, IntArray, IntArray]:
        """Return whole shares, row multipliers and prices near a point, each 1-D, such that no pair gives more than it has."""
        form = self.form
        if not all(np.isfinite(a).all() and np.abs(a).max(initial=0.0) < LARGEST for a in point):
            point = self.start()
        tau = np.floor(point.tau).astype(np.int64)
        capacity = form.weight.copy()
        for column, sign in ((0, -1), (1, -1), (2, 1)):
            np.add.at(capacity, form.row[:, column], sign * tau)
        if (capacity < 0).any():
            tau[:] = 0
            capacity = form.weight.copy()
        share = np.floor(point.share).astype(np.int64)
        given = np.bincount(self.pair_of, share, len(capacity))
        over = np.flatnonzero(given > capacity)
        for q in over.tolist():
            mine = self.entry[self.pair_ptr[q] : self.pair_ptr[q + 1]]
            share[mine] = np.floor(share[mine] * (capacity[q] / given[q]) * (1 - 1e-12)).astype(np.int64)
        return share, tau, np.floor(point.price).astype(np.int64)

    def star_value(self, share: IntArray, prices: IntArray) -> int:
        """Return the exact value of the stars under whole shares (star entries,) and prices (cores,)."""
        form = self.form
        ends = np.repeat(np.arange(form.n), np.diff(form.star_ptr))
        order = np.lexsort((-share, ends))
        rank = np.minimum(np.arange(len(order)) - form.star_ptr[ends], form.near.shape[1] - 1)
        cost = np.full((form.n, len(form.near)), 0, np.int64)
        for c in range(len(form.near)):
            running = np.concatenate([[0], np.cumsum(share[order] * form.near[c][rank])])
            cost[:, c] = running[form.star_ptr[1:]] - running[form.star_ptr[:-1]]
        return int((cost - prices).min(axis=1).sum() + (form.count * prices).sum())


@dataclass(frozen=True)
class Evaluation:
    """A point in whole numbers with its exact value; ``distance`` (E,) of a best placement of every set."""

    total: int
    share: IntArray
    tau: IntArray
    price: IntArray
    distance: IntArray


def evaluate(
    parts: Decomposition, point: Multipliers, should_stop: ShouldStop
) -> tuple[Evaluation | None, IntArray]:
    """Return the exact value of a point, and (sets,) those that took too long; no value with any, or if stopped."""
    share, tau, prices = parts.whole(point)
    count = len(parts.pool.size)
    cost = np.zeros(count, np.int64)
    for at in range(0, count, BATCH):
        if should_stop():
            return None, np.zeros(0, np.int64)
        which = np.arange(at, min(count, at + BATCH))
        price(parts.pool, parts.form.grid, share[: parts.entries], which, cost)
    hard = np.flatnonzero(cost < 0)
    if len(hard):
        return None, hard
    given = share[: parts.entries]
    total = (
        int(cost.sum())
        + parts.form.step * int(given.sum())
        + parts.star_value(share[parts.entries :], prices)
    )
    distance = np.zeros(parts.entries)
    set_values(parts.pool.ptr, given.astype(np.float64), parts.pool.distance, parts.pool.filled, 0, distance)
    return Evaluation(total, share, tau, prices, distance.astype(np.int64)), hard


def subgraph_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better subgraph bounds of a problem that :func:`~.form.refuses_form` lets pass.

    The first bound comes after one exact solution of every small set; the generator ends when the last stage gains little, or is
    stopped.
    """
    form = build_form(problem)
    rng = np.random.default_rng(context.seed)
    parts = Decomposition(form, [])
    point = parts.start()
    told = 0
    for size, times in STAGES_SMALL if form.n <= SMALL else STAGES:
        known = {tuple(row[row >= 0].tolist()) for row in parts.pool.nodes}
        new = [s for s in grown_sets(form, size, times, rng) if tuple(s) not in known]
        if known and not new:
            break
        point = parts.change(point, np.arange(len(known)), new)
        if len(known) == 0:
            point = parts.start()
        climb = Climb(parts, point)
        for found in climb.rounds(context.upper, context.should_stop):
            if found.total > told:
                told = found.total
                value = told / form.denominator
                rounded = round_up(value, form.lattice > 0, form.lattice or 1.0)
                yield Bound(rounded, "subgraphs", "full", certificate(parts, found))
        if context.should_stop():
            break
        point = climb.point


class Climb:
    """One stage: rounds of exact evaluation and of climbing on the model, between which sets may be dropped.

    ``point`` is the best so far: the centre that the next point stays near.
    """

    def __init__(self, parts: Decomposition, point: Multipliers) -> None:
        self.parts, self.point = parts, point
        self.best: Evaluation | None = None

    def rounds(self, upper: Callable[[], float], should_stop: ShouldStop) -> Iterator[Evaluation]:
        """Evaluations that gain enough to be reported, and the best one at the end and before sets are dropped."""
        query, told = self.point, 0.0
        history: list[int] = []
        while not should_stop():
            found, hard = evaluate(self.parts, query, should_stop)
            if len(hard):
                if self.best is not None:
                    yield self.best
                keep = np.setdiff1d(np.arange(len(self.parts.pool.size)), hard)
                query = self.point = self.parts.change(self.point, keep, [])
                self.best = None
                continue
            if found is None:
                break
            if self.best is None or found.total > self.best.total:
                self.best, self.point = found, query
                if found.total > told * (1 + TOLD_GAIN):
                    told = found.total
                    yield found
            history.append(self.best.total)
            if len(history) > LEAST_ROUNDS and history[-1] < history[-1 - WINDOW] * (1 + LEAST_GAIN):
                break
            query = self._next(upper())
        if self.best is not None:
            yield self.best

    def _next(self, upper: float) -> Multipliers:
        """Return the point to evaluate next: part of the way to where the model is best."""
        assert self.best is not None
        goal = self.best.total * (1 + DISTANT_GOAL)
        if np.isfinite(upper):
            goal = max(self.best.total * (1 + NEAR_GOAL), upper * self.parts.form.denominator)
        high = self.point.copy()
        self.parts.forget()
        steps = STEPS_SMALL if self.parts.form.n <= SMALL else STEPS
        self.parts.climb(high, goal, steps)
        return self.point.toward(high, TRUST)


def certificate(parts: Decomposition, found: Evaluation) -> dict[str, Any]:
    """Return what a re-check needs: sets with their shares and costs, shares of the stars, metric rows, prices of the cores.

    All numbers are whole, in ``1 / unit`` of weight and ``1 / scale`` of distance; parts that are 0 are left out.
    """
    form = parts.form
    star = found.share[parts.entries :]
    size, nodes, cost, inside = _connected(parts, found)
    used = np.concatenate([*inside, np.zeros(0, np.int64)]).astype(np.int64)
    centre = np.repeat(np.arange(form.n), np.diff(form.star_ptr))
    shone, tight = np.flatnonzero(star), np.flatnonzero(found.tau)
    first, third = form.pair[form.row[tight, 0]], form.pair[form.row[tight, 2]]
    via = np.where((first[:, :1] == third).any(axis=1), first[:, 1], first[:, 0])
    return {
        "method": "subgraphs",
        "unit": form.unit,
        "scale": form.scale,
        "set_size": np.array(size, np.int64),
        "set_nodes": np.array(nodes, np.int64),
        "set_cost": np.array(cost, np.int64),
        "share_count": np.array([len(i) for i in inside], np.int64),
        "share_u": form.pair[parts.pool.pair[used], 0],
        "share_v": form.pair[parts.pool.pair[used], 1],
        "share": found.share[used],
        "star_u": centre[shone],
        "star_v": form.pair[form.star_pair[shone]].sum(axis=1) - centre[shone],
        "star": star[shone],
        "metric_u": third[:, 0],
        "metric_via": via,
        "metric_v": third[:, 1],
        "metric": found.tau[tight],
        "price": found.price[form.class_of],
    }


def _connected(
    parts: Decomposition, found: Evaluation
) -> tuple[list[int], list[int], list[int], list[IntArray]]:
    """Size, nodes, least cost and entries of every part that a set falls into where its shares are 0.

    In a best placement of the set every part is placed as well as it can be on its own.
    """
    pool = parts.pool
    size: list[int] = []
    nodes: list[int] = []
    cost: list[int] = []
    inside: list[IntArray] = []
    for i, (a, z) in enumerate(pairwise(pool.ptr.tolist())):
        k = int(pool.size[i])
        share = found.share[a:z]
        w = np.zeros((k, k), np.int64)
        w[pool.first[a:z], pool.second[a:z]] = share
        label = component_of(w + w.T)
        for c in range(int(label.max()) + 1):
            mine = a + np.flatnonzero((share > 0) & (label[pool.first[a:z]] == c))
            if len(mine):
                size.append(int((label == c).sum()))
                nodes += pool.nodes[i, :k][label == c].tolist()
                cost.append(int((found.share[mine] * found.distance[mine]).sum()))
                inside.append(mine)
    return size, nodes, cost, inside
