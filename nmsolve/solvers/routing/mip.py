"""The Pyomo twin of :mod:`nmsolve.solvers.routing.cpsat`: the same rules under the same names, rates times one power of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.hw.routing.order import number_of
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.routing.cpsat import directions, in_and_out
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.referee import MISSING
from nmsolve.solvers.search.mip import named_rows
from nmsolve.solvers.search.scaling import Scale, fair_unit

Columns = list[dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Variables:
    """``leg``, ``tree``, ``key``: variable by channel for each leg, flow, key; ``order[a, b]``; ``number`` by channel."""

    leg: Columns
    tree: Columns
    key: Columns
    order: dict[tuple[int, int], Any]
    number: dict[int, Any]


@dataclass(frozen=True, eq=False)
class RouteMipModel:
    """A built Pyomo model; ``mapping`` reads a solution of ``stage`` from the values of :meth:`read`."""

    model: Any
    stage: RoutingStage
    data: RouteData
    v: Variables
    claim: Scale

    def read(self) -> list[Any]:
        """Variables of trees, then those of channels in order."""
        return [x for tree in self.v.tree for x in tree.values()] + list(self.v.order.values())

    def mapping(self, values: FloatArray) -> IntArray:
        """The channels of trees, and numbers that allow every turn the model allows."""
        used, at = [], 0
        for tree in self.v.tree:
            used.append([c for c, on in zip(tree, values[at : at + len(tree)] > 0.5, strict=True) if on])
            at += len(tree)
        routes = self.data.routes(used)
        allowed = np.array(
            [ab for ab, on in zip(self.v.order, values[at:] > 0.5, strict=True) if on], np.int64
        )
        pairs = allowed.reshape(-1, 2)
        number = number_of(self.stage.problem, routes, (pairs[:, 0], pairs[:, 1]))
        return self.stage.pack(routes, np.full(self.stage.channels, -1) if number is None else number)

    def first(self) -> FloatArray | None:
        """No start: HiGHS completes none that leaves numbers of channels open."""
        return None


def build(stage: RoutingStage, *, bound: float = 0.0) -> RouteMipModel:
    """State ``stage`` in Pyomo; ``bound`` is a proven lower bound, added as a row. The objective ``reward`` is not linear."""
    import pyomo.environ as pyo

    model, data = pyo.ConcreteModel(name="routes"), RouteData(stage.problem)
    v = _variables(model, data)
    for rule in RULES:
        rule(model, data, v)
    ceilings = named_rows(model, "ceilings")
    for name, most in stage.ceilings:
        cost = measure(model, data, v, name, stage.entries)
        ceilings.add(cost <= most * unit_of(data, name) * (1 + 1e-9) + 1e-6)
    cost, unit = measure(model, data, v, stage.objective, stage.entries), unit_of(data, stage.objective)
    model.cost = pyo.Objective(expr=cost, sense=pyo.minimize)
    if bound > 0:
        model.at_least = pyo.Constraint(expr=cost >= bound * unit * (1 - 1e-9))
    integral = stage.objective in ("turns", MISSING) or stage.problem.integral
    return RouteMipModel(model, stage, data, v, Scale(unit, False, integral))


def unit_of(data: RouteData, name: str) -> float:
    """What loads are multiplied with, so that rates are of a size that solvers work well with; 1 for objectives that count."""
    if name in ("turns", MISSING):
        return 1.0
    return fair_unit(float(data.problem.flows.rate.max(initial=0.0)))


def _variables(model: Any, data: RouteData) -> Variables:
    import pyomo.environ as pyo

    def columns(lists: list[list[int]], name: str, integer: bool) -> Columns:
        index = [(i, c) for i, some in enumerate(lists) for c in some]
        domain = pyo.Binary if integer else pyo.NonNegativeReals
        model.add_component(name, pyo.Var(index, domain=domain, bounds=(0, 1)))
        var = getattr(model, name)
        return [{c: var[i, c] for c in some} for i, some in enumerate(lists)]

    indptr = data.problem.flows.indptr
    leg = columns(data.legs, "z", True)
    own = columns([t if m else [] for t, m in zip(data.trees, data.many, strict=True)], "x", False)
    tree = [own[f] if many else leg[int(indptr[f])] for f, many in enumerate(data.many)]
    shared = columns(
        [u if len(m) > 1 else [] for u, m in zip(data.unions, data.members, strict=True)], "y", False
    )
    key = [tree[m[0]] if len(m) == 1 else shared[i] for i, m in enumerate(data.members)]
    model.p = pyo.Var(data.working.tolist(), bounds=(0, max(1, len(data.working)) - 1))
    pairs = [*data.turns, *(ab for ab in _met(data, key) if ab not in set(data.turns))]
    model.t = pyo.Var(pairs, domain=pyo.Binary)
    order = {ab: model.t[ab] for ab in pairs}
    return Variables(leg, tree, key, order, {c: model.p[c] for c in data.working.tolist()})


def _met(data: RouteData, keys: Columns) -> list[tuple[int, int]]:
    """Pairs of channels that may have to be in order and need not be anyway."""
    allowed, free = set(zip(*(x.tolist() for x in data.follow), strict=True)), set(data.required)
    out: dict[tuple[int, int], None] = {}
    for key in keys:
        into, leaving = in_and_out(data, {c: c for c in key})
        for p, before in into.items():
            for ab in [(a, b) for a in before for b in leaving.get(p, [])]:
                if ab in allowed and ab not in free:
                    out[ab] = None
    return list(out)


def one_path_per_leg(model: Any, data: RouteData, v: Variables) -> None:
    """``sum_out z[s] = 1``, ``sum_in z[t] = 1``, ``sum_in z[p] = sum_out z[p] <= 1``; with detours ``sum_c z[c] <= longest``."""
    rows, flows = named_rows(model, "one_path_per_leg"), data.problem.flows
    for k, z in enumerate(v.leg):
        s, t = int(flows.source[data.leg_flow[k]]), int(flows.targets[k])
        into, out = in_and_out(data, z)
        rows.add(sum(out[s]) == 1)
        rows.add(sum(into[t]) == 1)
        for p in (into.keys() | out.keys()) - {s, t}:
            rows.add(sum(into.get(p, [])) - sum(out.get(p, [])) == 0)
            if into.get(p):
                rows.add(sum(into[p]) <= 1)
        if data.problem.detour:
            rows.add(sum(z.values()) <= int(data.longest[k]))


def trees_of_legs(model: Any, data: RouteData, v: Variables) -> None:
    """``x = max_k z`` of a multicast flow, and ``sum_in x[p] <= 1``."""
    rows, indptr = named_rows(model, "trees_of_legs"), data.problem.flows.indptr
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            _union(rows, tree, v.leg[int(indptr[f]) : int(indptr[f + 1])])
            for into in in_and_out(data, tree)[0].values():
                rows.add(sum(into) <= 1)


def tables_of_keys(model: Any, data: RouteData, v: Variables) -> None:
    """``y = max_f x``; form ``source``: ``sum_in y[p] <= 1``, form ``destination``: ``sum_out y[p] <= 1``."""
    form = data.problem.form
    rows = named_rows(model, "tables_of_keys")
    if form == "flow":
        return
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            _union(rows, key, [v.tree[f] for f in flows])
        for side in in_and_out(data, key)[0 if form == "source" else 1].values():
            rows.add(sum(side) <= 1)


def allowed_turns_only(model: Any, data: RouteData, v: Variables) -> None:
    """``y[a] + y[b] <= 1 + t[a,b]``; turning back and given prohibitions: ``y[a] + y[b] <= 1``."""
    rows, free = named_rows(model, "allowed_turns_only"), set(data.required)
    allowed = set(zip(*(x.tolist() for x in data.follow), strict=True))
    for key in v.key:
        into, out = in_and_out(data, {c: c for c in key})
        for p, before in into.items():
            for a, b in [(a, b) for a in before for b in out.get(p, [])]:
                if (a, b) not in free:
                    rows.add(key[a] + key[b] <= 1 + (v.order[a, b] if (a, b) in allowed else 0))


def growing_numbers(model: Any, data: RouteData, v: Variables) -> None:
    """``p[b] >= p[a] + 1 - C (1 - t[a,b])`` with C channels (Miller, Tucker, Zemlin 1960); straight on ``p[b] >= p[a] + 1``."""
    rows, many = named_rows(model, "growing_numbers"), len(data.working)
    for a, b in data.required:
        rows.add(v.number[b] >= v.number[a] + 1)
    for (a, b), t in v.order.items():
        rows.add(v.number[b] >= v.number[a] + 1 - many * (1 - t))


def squares(model: Any, data: RouteData, v: Variables) -> None:
    """``sum t <= 3`` over the four turns of every square, each way round."""
    rows = named_rows(model, "squares")
    for ring in data.squares:
        rows.add(sum(v.order[ab] for ab in ring) <= 3)


def table_limit(model: Any, data: RouteData, v: Variables) -> None:
    """``sum_i e[i,p] <= limit``, see :func:`table_entries`."""
    rows = named_rows(model, "table_limit")
    if data.problem.table_limit is not None:
        for used in table_entries(model, data, v).values():
            if used:
                rows.add(sum(used, 0 * v.number[int(data.working[0])]) <= data.problem.table_limit)


def table_entries(model: Any, data: RouteData, v: Variables) -> dict[int, list[Any]]:
    """By core: terms that add up to its table entries, or more; ``e[i,p] >= |y[in d] - y[out d]|`` (as in the twin)."""
    import pyomo.environ as pyo

    rows = named_rows(model, "table_entries")
    model.e = pyo.VarList(domain=pyo.NonNegativeReals)
    used: dict[int, list[Any]] = {}
    for i, key in enumerate(v.key):
        into, out = in_and_out(data, {c: c for c in key})
        if data.problem.form == "destination":
            for p, some in out.items():
                used.setdefault(p, []).extend(key[c] for c in some)
            continue
        for p in into.keys() | out.keys() | data.ending[i]:
            if p in data.ending[i]:
                used.setdefault(p, []).append(1)
                continue
            e = model.e.add()
            used.setdefault(p, []).append(e)
            for inside, outside in directions(data, into.get(p, []), out.get(p, [])):
                change = sum(key[c] for c in inside) - sum(key[c] for c in outside)
                rows.add(change <= e)
                rows.add(-change <= e)
    return used


RULES = (
    one_path_per_leg,
    trees_of_legs,
    tables_of_keys,
    allowed_turns_only,
    growing_numbers,
    squares,
    table_limit,
)


def measure(model: Any, data: RouteData, v: Variables, name: str, entries: int) -> Any:
    """The objective: ``L >= sum_f rate[f] sum_v x[f, V l + v]``, the sum of loads, prohibited turns, or missing entries; times
    :func:`unit_of`."""
    import pyomo.environ as pyo

    zero = 0.0 * v.number[int(data.working[0])]
    if name == "turns":
        if data.problem.turns is not None:
            return zero + data.problem.turns.prohibited(data.problem.machine)
        return len(data.turns) - sum((v.order[ab] for ab in data.turns), zero)
    if name == MISSING:
        model.missing = pyo.VarList(domain=pyo.NonNegativeReals)
        rows, missing = named_rows(model, "missing_entries"), []
        for used in table_entries(model, data, v).values():
            missing.append(model.missing.add())
            rows.add(sum(used) <= entries + missing[-1])
        return sum(missing, zero)
    loads: dict[int, Any] = {}
    rate = data.problem.flows.rate * unit_of(data, name)
    for f, tree in enumerate(v.tree):
        for c, x in tree.items():
            link = c // data.problem.channels
            loads[link] = loads.get(link, 0.0) + float(rate[f]) * x
    if name == "total-link":
        return sum(loads.values(), zero)
    rows = named_rows(model, "loads")
    model.max_link = pyo.Var(bounds=(0.0, float(rate.sum())))
    for load in loads.values():
        rows.add(load <= model.max_link)
    return model.max_link + zero


def _union(rows: Any, whole: dict[int, Any], parts: Columns) -> None:
    """``whole[c] >= part[c]`` for every part, ``whole[c] <= sum of parts``."""
    for c, w in whole.items():
        some = [part[c] for part in parts if c in part]
        for z in some:
            rows.add(z <= w)
        rows.add(w <= sum(some))
