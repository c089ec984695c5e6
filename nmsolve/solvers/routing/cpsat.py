"""The CP-SAT model of routes and prohibited turns (:mod:`.rules`): whole numbers, questions, the reward, hints."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.rules import Variables, measure, prohibited, read, stated
from nmsolve.solvers.search.rows import Built, CpSatRows


def build(
    stage: RoutingStage, *, start: IntArray | None = None, bound: float = 0.0, goal: int | None = None,
    price: tuple[int, int] | None = None,
) -> Built:  # fmt: skip
    """State ``stage`` for CP-SAT.

    Parameters
    ----------
    start : (size,) a known solution; hinted
    bound : a proven lower bound on the objective, added as a row
    goal : ask only for a solution whose objective, in the model's whole numbers, is no more than this
    price : for ``reward``: minimise ``price[0] * prohibited turns - price[1] * channels of multicast trees``
    """
    rows, data = CpSatRows(), RouteData(stage.problem)
    v, scale = stated(rows, data), data.scale(stage.objective)
    if price is not None:
        rows.minimise(price[0] * prohibited(data, v) - price[1] * _tree_channels(data, v))
    else:
        cost = measure(rows, stage, data, v, stage.objective, data.rate)
        row = scale.floor_row(bound)
        if row is not None:
            rows.add(cost >= row)
        if goal is None:
            rows.minimise(cost)
        else:
            rows.add(cost <= goal)
            if stage.objective == "turns":
                one_per_square(rows, data, v, goal)
    for name, most in stage.ceilings:
        if name == "reward":
            reward_ceiling(rows, data, v, most)
        else:
            rows.add(measure(rows, stage, data, v, name, data.rate) <= data.scale(name).ceiling_row(most))
    if start is not None:
        _hint(rows, data, v, *stage.unpack(start))
    return Built(rows.model, scale, partial(read, stage, data, v), data, v)


def one_per_square(rows: CpSatRows, data: RouteData, v: Variables, goal: int) -> None:
    """With no more prohibited turns than squares, both ways round, every one has exactly one: ``sum t = 3``."""
    if goal == len(data.squares):
        for ring in data.squares:
            rows.exactly_one([~v.order[ab] for ab in ring])


def reward_ceiling(rows: CpSatRows, data: RouteData, v: Variables, most: float) -> None:
    """``turns / channels <= ln(most / cc)``, that is ``q * turns <= p * channels`` with the fraction p/q of known counts."""
    from nmsolve.hw.reward import exchange_loss

    cc = exchange_loss(data.problem.machine, data.problem.flows)
    if not any(data.many) or cc <= 0:
        return
    largest = 1 + sum(len(t) for t in data.trees)
    ratio = Fraction(max(0.0, float(np.log(most / cc)))).limit_denominator(largest)
    rows.add(ratio.denominator * prohibited(data, v) <= ratio.numerator * _tree_channels(data, v))


def _tree_channels(data: RouteData, v: Variables) -> Any:
    return sum(sum(tree.values()) for tree, many in zip(v.tree, data.many, strict=True) if many)


def _hint(rows: CpSatRows, data: RouteData, v: Variables, routes: Routes, number: IntArray) -> None:
    """Hint every variable with a known solution."""
    taken = [set(routes.of(f).tolist()) for f in range(routes.count)]
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            for c, x in tree.items():
                rows.hint(x, c in taken[f])
    for k, z in enumerate(v.leg):
        path = _path_back(data, taken[int(data.leg_flow[k])], int(data.problem.flows.targets[k]))
        for c, x in z.items():
            rows.hint(x, c in path)
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            union = set().union(*(taken[f] for f in flows))
            for c, x in key.items():
                rows.hint(x, c in union)
    rank = np.argsort(np.argsort(number[data.working], kind="stable"), kind="stable")
    for c, r in zip(data.working.tolist(), rank.tolist(), strict=True):
        rows.hint(v.number[c], r)
    for (a, b), t in v.order.items():
        rows.hint(t, bool(number[a] < number[b]))


def _path_back(data: RouteData, taken: set[int], target: int) -> set[int]:
    """Return the channels of a tree on the way to one target."""
    enters = {int(data.ends[c]): c for c in taken}
    path: set[int] = set()
    while target in enters and enters[target] not in path:
        path.add(enters[target])
        target = enters[target] // data.problem.channels // 4
    return path
